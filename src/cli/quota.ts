import { type Asked, askedLately } from "../api/callers/spared.ts";
import { type Spender, spenders } from "../api/callers/spenders.ts";
import { copiesEndedAt } from "../health/copies.ts";
import { openStores } from "../stores.ts";
import { quotaHistory } from "../upstream/quota/history.ts";
import { type Outlook, withOutlooks } from "../upstream/quota/outlook.ts";
import { type QuotaReport, quotaReport } from "../upstream/quota/report.ts";
import { type Command, type Given, listOf } from "./terminal/command.ts";
import { LIMIT, readLimit } from "./terminal/listing.ts";
import { openBy } from "./terminal/open-stores.ts";
import { grouped, type Output, plain, spanOf, styled, tableLines } from "./terminal/output.ts";

export const quota: Command = {
  name: "quota",
  values: { limit: LIMIT },
  about: `
Shows what is left of each credential's quota, when it will be spent at the pace of the last
minutes, and what took it within the last hour: by class, route and caller. Then who asked the
API most, where their answers came from, and how much of their own quota that spared: requests,
and points of GraphQL. Upstream is not asked. With --json the hour is there as well, by fifteen
seconds.`,
  run: runQuota,
};

const NO_QUOTA = "No answer of upstream's has told a quota yet.";

async function runQuota({ values, env, resources }: Given, output: Output): Promise<number> {
  const limit = readLimit(values);
  const { ctx } = await openBy(openStores, env, resources);
  const [reports, history, spent, asked, endedAt] = await Promise.all([
    quotaReport(ctx),
    quotaHistory(ctx),
    spenders(ctx, limit),
    askedLately(ctx, limit),
    copiesEndedAt(ctx),
  ]);
  const ahead = withOutlooks(reports, history, endedAt);
  output.document({ quota: ahead, spent, asked, history });
  const now = ctx.clock.now().getTime();
  const none = history === null ? "Redis does not answer, so what is left is not known." : NO_QUOTA;
  output.line(quotaText(ahead, now) || none);
  output.line();
  output.line(spentText(spent));
  if (asked && asked.length > 0) {
    output.line();
    output.line(askedText(asked));
  }
  return 0;
}

/** Pure but for colours. */
function spentText(spent: readonly Spender[] | null): string {
  if (spent === null) return "Redis does not answer, so it is not known what was spent within the last hour.";
  if (spent.length === 0) return "Nothing was spent within the last hour.";
  const rows = spent.map((each) => [
    each.class,
    plain(each.route),
    plain(each.who ?? "the mirror"),
    each.bucket,
    grouped(each.cost),
  ]);
  return tableLines(["SPENT BY", "ON", "FOR", "BUCKET", "WITHIN AN HOUR"], rows);
}

/** Pure. */
function askedText(asked: readonly Asked[]): string {
  const rows = asked.map(({ who, asked: all, answers: { mirror, kept, cache, forwarded }, spared }) => [
    plain(who),
    grouped(all),
    grouped(mirror + kept),
    grouped(cache),
    grouped(forwarded),
    grouped(spared.requests),
    grouped(spared.points),
  ]);
  const columns = [
    "ASKED WITHIN AN HOUR BY",
    "IN ALL",
    "MIRROR",
    "CACHE",
    "FORWARDED",
    "REQUESTS SPARED",
    "POINTS SPARED",
  ];
  return tableLines(columns, rows);
}

/** What is left, credential by credential; empty where nothing is known. Pure but for colours. */
export function quotaText(reports: readonly (QuotaReport & { outlook?: Outlook | null })[], now: number): string {
  const inUse = reports.filter(
    ({ remaining, blockedUntil, rejectedUntil }) => remaining !== null || blockedUntil || rejectedUntil,
  );
  const rows = inUse.map((report) => {
    const { name, sharedWith, bucket, limit, remaining, resetAt, blockedUntil, problem, outlook } = report;
    const notes = [
      problem !== null ? styled("red", "cannot be used") : null,
      blockedUntil && `upstream asked for silence for ${spanOf(blockedUntil.getTime() - now)}`,
      outlook && problem === null ? outlookText(outlook, now) : null,
      sharedWith.length > 0 ? `the same user's as ${listOf(sharedWith)}` : null,
    ];
    return [
      name,
      bucket,
      remaining === null ? "?" : `${grouped(remaining)} of ${grouped(limit ?? 0)}`,
      resetAt ? `in ${spanOf(resetAt.getTime() - now)}` : "-",
      notes.filter((note) => note !== null).join("; "),
    ];
  });
  const tables = rows.length > 0 ? [tableLines(["UPSTREAM CREDENTIAL", "BUCKET", "LEFT", "RESETS", "NOTE"], rows)] : [];
  // Each problem is printed once for its credential, not for each bucket.
  const problems = new Map(reports.flatMap(({ name, problem }) => (problem === null ? [] : [[name, problem]])));
  const words = [...problems].map(([name, problem]) => `${styled("red", `The ${name} cannot be used`)}: ${problem}.`);
  return [...tables, ...words].join("\n");
}

/** Pure but for colours. */
function outlookText({ perMinute, leftAtReset, spentAt }: Outlook, now: number): string {
  if (perMinute < 0.05) return "nothing is spent at the moment";
  const pace = `${perMinute < 10 ? perMinute.toFixed(1) : grouped(perMinute)} a minute`;
  if (spentAt !== null) return styled("yellow", `${pace}: spent in ${spanOf(spentAt.getTime() - now)}`);
  return `${pace}: about ${grouped(leftAtReset)} are left then`;
}
