import { and, eq } from "drizzle-orm";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { objectOf, wholeOf } from "../../json.ts";
import type { Kind, ResourceKey } from "../../kinds/contract/kind.ts";
import { resourceOf } from "../../kinds/registry.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { afterLag, type Mark, storeMarks } from "../../mirror/store/marks.ts";
import { mergeObserved } from "../../mirror/store/merge.ts";
import { overruling, requireList, type Seen } from "../../mirror/store/observation.ts";
import { seenBefore } from "../../mirror/store/seen-before.ts";
import { storeTransfer } from "../../mirror/store/transfers.ts";
import { issues } from "../../schema.ts";
import { pages } from "../../upstream/protocol/pagination.ts";
import { MILESTONE_COUNTS } from "../events/events.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { enqueueMarks } from "../marks/marks.ts";
import { PER_PAGE } from "../reads/pages.ts";
import { readAnew, upstreamPathOf } from "../reads/read-anew.ts";
import { compareWithStored, withoutMergeability } from "./comparison.ts";
import type { Drift } from "./report.ts";

/**
 * Rows that stood on no page. They are only suspected, since lists shift while they are read. Rows seen since the audit
 * began are left out.
 */
export async function findUnmet(
  ctx: Pick<Context, "db" | "clock">,
  repository: MirroredRepository,
  kind: Kind,
  auditStartedAt: Date,
): Promise<number[]> {
  const { table, keyColumn } = resourceOf(kind);
  const key = sql.identifier(`t.${keyColumn}`);
  const rows = await ctx.db.query<{ key: number }>(sql`
    with met as (
      select unnest(keys) as key from audit_pages
        where repository_id = ${repository.id} and kind = ${kind} and walked_at >= ${auditStartedAt}
    ) select ${key} as key from ${table} t
      where t.repository_id = ${repository.id} and t.deleted_at is null
        and ${seenBefore(sql`t.seen_at`, { readAt: auditStartedAt, now: ctx.clock.now() })}
        and not exists (select from met where met.key = ${key}) order by 1`);
  return rows.map((row) => row.key);
}

/**
 * Asks for one resource that the lists did not show, and answers the drift. A limit or a lost right is no drift. "off":
 * the repository's issues are switched off, so asking for another one is useless.
 */
export async function auditUnmet(
  ctx: Context,
  repository: MirroredRepository,
  kind: Kind,
  key: number,
  repair: boolean,
): Promise<Drift[] | "off"> {
  const wanted = { kind, repositoryId: repository.id, key };
  const path = await upstreamPathOf(ctx, wanted);
  if (path === null) return [];
  const { observed, outcome, movedTo, isOff } = await readAnew(ctx, wanted, repository, path, { priority: "audit" });
  if (isOff) return "off";
  // Upstream starts to compute the mergeability because of this read.
  const isUncomputed = ({ fields }: Seen) => fields.state === "open" && fields.mergeable === null;
  const overruled = overruling({
    ...observed,
    seen: observed.seen.map((one) => (isUncomputed(one) ? withoutMergeability(one) : one)),
  });
  const marks = repair && outcome === "deleted" ? await marksForCounts(ctx, wanted) : [];
  const drift = await whileMirrored(ctx, repository, async (tx) => {
    if (movedTo) await storeTransfer(tx, { repositoryId: repository.id, number: key }, movedTo);
    const { drift } =
      outcome === "deleted"
        ? { drift: [{ kind, key, drift: "gone" } satisfies Drift] }
        : await compareWithStored(tx, overruled);
    if (repair) await mergeObserved(tx, overruled);
    await storeMarks(tx, marks);
    return drift;
  });
  await enqueueMarks(ctx, marks);
  return drift;
}

/**
 * Who counts what is gone: of an issue its repository and its milestone, of a comment its issue or pull request. They
 * were read before, and a replica that lagged may have answered.
 */
async function marksForCounts(ctx: Context, gone: ResourceKey): Promise<Mark[]> {
  const { kind, repositoryId, key } = gone;
  const askedAt = ctx.clock.now();
  const when = { askedAt, notBefore: afterLag(askedAt) };
  if (kind === "issue") return await marksForCountsOfIssues(ctx, gone, when);
  if (kind !== "issue_comment" && kind !== "review_comment") return [];
  const { table, parent } = resourceOf(kind);
  const counted = kind === "issue_comment" ? "comments" : "review_comments";
  const rows = await ctx.db.query<{ kind: "issue" | "pull_request"; number: number }>(sql`
    select x.kind, x.number from ${table} t
      cross join lateral (select 'issue' as kind, i.number, i.repository_id from issues i where ${kind} = 'issue_comment'
        union all select 'pull_request', p.number, p.repository_id from pull_requests p) x
      where t.repository_id = ${repositoryId} and t.id = ${key} and x.repository_id = ${repositoryId}
        and x.number = t.${sql.identifier(parent?.column ?? "")}`);
  return rows.map(({ kind, number }) => ({ kind, repositoryId, key: number, keys: [counted], ...when }));
}

async function marksForCountsOfIssues(
  { db }: Pick<Context, "db">,
  { repositoryId, key }: ResourceKey,
  when: Pick<Mark, "askedAt" | "notBefore">,
): Promise<Mark[]> {
  const repository: Mark = { kind: "repository", repositoryId: 0, key: repositoryId, ...when };
  const [issue] = await db
    .select({ milestoneId: issues.milestoneId })
    .from(issues)
    .where(and(eq(issues.repositoryId, repositoryId), eq(issues.number, key)));
  if (issue?.milestoneId == null) return [repository];
  return [repository, { kind: "milestone", repositoryId, key: issue.milestoneId, keys: MILESTONE_COUNTS, ...when }];
}

/**
 * A label's only address is its name, which may have changed. So one more read of the whole list settles all suspected
 * labels.
 */
export async function labelsStillUnmet(
  ctx: Context,
  repository: MirroredRepository,
  suspected: readonly number[],
): Promise<number[]> {
  const left = new Set(suspected);
  const list = `/repositories/${repository.id}/labels?${PER_PAGE}`;
  for await (const page of pages(ctx.upstream, list, { priority: "audit" })) {
    if (page.kind !== "ok") return []; // A list that upstream does not show says nothing about its rows.
    for (const label of requireList(page.path, page.body)) {
      const id = wholeOf(objectOf(label).id);
      if (id === null) return []; // This row may be any of them.
      left.delete(id);
    }
  }
  return [...left];
}
