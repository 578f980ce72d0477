import type { Context } from "../../context.ts";
import { type ListedAudit, listAudits } from "../../sync/audit/list.ts";
import type { Drift } from "../../sync/audit/report.ts";
import { counted, grouped, type Output, spanOf, styled, tableLines } from "../terminal/output.ts";

const MOST_AUDITS = 1_000;
/** How many differences are shown for each audit. */
const DRIFT_OF_EACH = 3;

/**
 * Shows the newest audit of each repository, those that found something first. @param names `owner/name`; none: of all
 */
export async function listNewest(ctx: Context, names: readonly string[], output: Output): Promise<number> {
  const wanted = new Set(names.map((name) => name.toLowerCase()));
  const audits = (await listAudits(ctx, MOST_AUDITS)).filter(
    ({ repository }) => wanted.size === 0 || wanted.has(repository.toLowerCase()),
  );
  output.document({ audits });
  const none = wanted.size === 0 ? "No repository has been audited yet" : "None of these has been audited yet";
  output.line(audits.length === 0 ? `${none}: each is, by itself, once in AUDIT_PERIOD` : auditsTable(audits, ctx));
  return 0;
}

/** Pure but for colours. */
function auditsTable(audits: readonly ListedAudit[], { clock }: Pick<Context, "clock">): string {
  const now = clock.now().getTime();
  const rows = audits.map(({ repository, found, finishedAt, repaired, resources, notCompared, drift }) => [
    repository,
    found > 0
      ? styled("yellow", `${counted(found, "difference")}${repaired ? ", repaired" : ""}`)
      : finishedAt === null
        ? "nothing so far"
        : styled("green", notCompared.length > 0 ? "equal, as far as shown" : "equal"),
    finishedAt === null ? "under way" : `${spanOf(now - finishedAt.getTime())} ago`,
    grouped(resources),
    [
      ...drift.slice(0, DRIFT_OF_EACH).map(driftText),
      ...(found > DRIFT_OF_EACH ? ["…"] : []),
      ...(notCompared.length > 0 ? [`not compared: ${notCompared.map(({ part }) => part).join(", ")}`] : []),
    ].join("; "),
  ]);
  return tableLines(["REPOSITORY", "FOUND", "ENDED", "COMPARED", "IN WHAT"], rows);
}

/** `issue 5 differs in body, updated_at`. Pure. */
export function driftText({ kind, key, drift, fields = [] }: Drift): string {
  const what = `${kind.replaceAll("_", " ")} ${key}`;
  switch (drift) {
    case "absent":
      return `${what} was not in the mirror`;
    case "gone":
      return `${what} is no more at upstream`;
    case "differs":
      return `${what} differs in ${fields.join(", ")}`;
    default:
      return drift satisfies never;
  }
}
