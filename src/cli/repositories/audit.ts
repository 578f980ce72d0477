import type { Context } from "../../context.ts";
import { type AuditPhase, AuditUnderWayError, audit as auditRepository } from "../../sync/audit/audit.ts";
import { type AuditReport, driftCount } from "../../sync/audit/report.ts";
import { RemovedError } from "../../sync/problems/errors.ts";
import { RepositoryUnavailableError } from "../../sync/reads/pages.ts";
import type { QuotaSpentError } from "../../upstream/protocol/errors.ts";
import { Waits, wait } from "../../waits/repeated.ts";
import { RETRIES } from "../../waits/retries.ts";
import { type Command, CommandError, type Given, UsageError } from "../terminal/command.ts";
import { leavingSignal } from "../terminal/leaving.ts";
import { openInstance } from "../terminal/open-instance.ts";
import { counted, type Output, PLAIN_MS, spanOf, styled } from "../terminal/output.ts";
import { findMatches, type MatchedRepository, readNames } from "../terminal/patterns.ts";
import { driftText, listNewest } from "./audit-list.ts";

export const audit: Command = {
  name: "audit",
  takes: "owner/name…",
  flags: {
    repair: "put right what is found; without it nothing is changed",
    list: "compare nothing: show what the newest audits found, of all repositories where none is named",
  },
  about: `
Reads every list of the repository and compares it with the mirror, value by value: for about
one request or point per hundred resources, and for nothing where upstream confirms that a
page is as it was. The same happens by itself, with repair, once in AUDIT_PERIOD. While the
quota is spent it waits. Exit code 1 when something differs and was not repaired.`,
  run: runAudit,
};

const MAX_SHOWN = 40;

async function runAudit({ words, flags, env, resources, within }: Given, output: Output): Promise<number> {
  const names = readNames(words);
  if (flags.has("list") && flags.has("repair"))
    throw new UsageError("--list changes nothing: leave out --repair, or --list");
  if (flags.has("list")) return await listNewest((await openInstance(env, resources, within)).ctx, names, output);
  if (names.length === 0) throw new UsageError("tain audit needs to know which repository: owner/name");
  const { ctx } = await openInstance(env, resources, within);
  const repositories: MatchedRepository[] = [];
  for (const name of names) repositories.push(await chooseLive(ctx, name));

  const leaving = leavingSignal(resources, within);
  const reports: AuditReport[] = [];
  try {
    for (const repository of repositories) {
      const report = await auditOne(ctx, repository, { repair: flags.has("repair"), signal: leaving }, output);
      reports.push(report);
      output.line(reportText(report));
    }
  } catch (error) {
    if (!leaving.aborted) throw error;
    output.note("\ntain: stopped on the way; what was found until then is told by no report");
    return 130;
  }
  output.document({ event: "done", audits: reports });
  return reports.every((report) => driftCount(report) === 0 || report.repaired) ? 0 : 1;
}

/** @throws CommandError when there is nothing to compare yet */
async function chooseLive(ctx: Context, name: string): Promise<MatchedRepository> {
  const match = (await findMatches(ctx, name)).find(({ state }) => state !== "gone");
  if (!match) throw new CommandError(`${name} is not mirrored: \`tain add ${name}\` begins to`);
  if (match.state === "backfilling")
    throw new CommandError(`${match.fullName} is being copied: once it is live (\`tain backfill\`) it can be compared`);
  return match;
}

async function auditOne(
  ctx: Context,
  { id: repositoryId, fullName }: MatchedRepository,
  { repair, signal }: { repair: boolean; signal: AbortSignal },
  output: Output,
): Promise<AuditReport> {
  const view = new AuditProgress(output, fullName);
  const untilQuota = async ({ message, resetAt }: QuotaSpentError) => {
    view.clear();
    output.note(`tain: ${message}; the audit goes on then`);
    const waitMs = Math.max(1_000, resetAt.getTime() - ctx.clock.now().getTime());
    await wait(waitMs, signal);
  };
  const waits = new Waits({ policy: RETRIES.othersAudit, random: ctx.random, signal });
  for (;;) {
    try {
      const onProgress = view.show.bind(view);
      const report = await auditRepository(ctx, { repositoryId, repair, anew: true, signal, onProgress, untilQuota });
      if (!report) throw new CommandError(`${fullName} is mirrored no more, or is just being copied`);
      return report;
    } catch (error) {
      if (error instanceof RepositoryUnavailableError || error instanceof RemovedError)
        throw new CommandError(`${error.message}. Nothing was changed`, { cause: error });
      if (!(error instanceof AuditUnderWayError)) throw error;
      if (!(await waits.next()))
        throw new CommandError(`${error.message}: wait until it has ended, or stop it`, { cause: error });
    } finally {
      view.clear();
    }
  }
}

/**
 * Shows the progress: on a terminal one line that is drawn over, otherwise a line or, with --json, a document now and
 * then.
 */
class AuditProgress {
  readonly #output: Output;
  readonly #fullName: string;
  #isDrawn = false;
  #saidAt = performance.now();

  constructor(output: Output, fullName: string) {
    this.#output = output;
    this.#fullName = fullName;
  }

  show({ phase, report }: { phase: AuditPhase; report: AuditReport }): void {
    const output = this.#output;
    const found = driftCount(report);
    const line = `${this.#fullName}: ${phase}; ${readSoFar(report)}, ${counted(found, "difference")} found`;
    if (output.isTerminal) {
      output.raw(`\r\x1b[K${line.slice(0, output.width - 1)}`);
      this.#isDrawn = true;
      return;
    }
    if (performance.now() - this.#saidAt < PLAIN_MS) return;
    this.#saidAt = performance.now();
    const { repository, pages, unchangedPages, resources, counts } = report;
    output.document({ event: "progress", repository, phase, pages, unchangedPages, resources, counts });
    output.line(line);
  }

  clear(): void {
    if (this.#isDrawn) this.#output.raw("\r\x1b[K");
    this.#isDrawn = false;
  }
}

function readSoFar({ resources, pages, unchangedPages }: AuditReport): string {
  const free = unchangedPages > 0 ? ` (${unchangedPages} of them confirmed unchanged, for nothing)` : "";
  return `${counted(resources, "resource")} on ${counted(pages, "page")}${free}`;
}

/** The final report as text. Pure but for colours and the time it took. */
function reportText(report: AuditReport): string {
  const { repository, repaired, drift, notCompared, changing, startedAt, finishedAt } = report;
  const found = driftCount(report);
  const took = spanOf(Date.parse(finishedAt ?? startedAt) - Date.parse(startedAt));
  const compared = `${readSoFar(report)}, compared in ${took}`;
  const left = notCompared.map(({ part, reason }) => `  its ${part} were not compared: ${reason}`);
  if (changing > 0) left.push(`  ${counted(changing, "resource")} changed while they were compared, and may differ`);
  const verdict = left.length > 0 ? "no difference in what was compared" : "equal to upstream";
  if (found === 0) return [`${repository}: ${styled("green", verdict)}; ${compared}`, ...left].join("\n");
  const rest = found - Math.min(drift.length, MAX_SHOWN);
  return [
    `${repository}: ${styled("yellow", `${counted(found, "difference")} found`)}; ${compared}`,
    ...drift.slice(0, MAX_SHOWN).map((one) => `  ${driftText(one)}`),
    ...(rest > 0 ? [`  and ${rest} more (--json lists the first thousand)`] : []),
    ...left,
    repaired ? `All of it was put right` : `Nothing was changed: \`tain audit --repair ${repository}\` puts it right`,
  ].join("\n");
}
