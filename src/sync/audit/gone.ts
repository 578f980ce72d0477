import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { mergeObserved } from "../../mirror/store/merge.ts";
import { REPLICA_LAG_MS } from "../../mirror/store/merge-rule.ts";
import type { Seen } from "../../mirror/store/observation.ts";
import { keyIn, requireList } from "../../mirror/store/representation.ts";
import { type Kind, resourceOf } from "../../mirror/store/resource.ts";
import { pages } from "../../upstream/client/pagination.ts";
import { whileMirrored } from "../following/while-mirrored.ts";
import { PAGE_SIZE } from "../reads/pages.ts";
import { readAnew, upstreamPathOf } from "../reads/read-anew.ts";
import { compareWithStored, overruling, withoutMergeability } from "./comparison.ts";
import type { Drift } from "./report.ts";

/** A row on no page is only suspected: lists shift while they are read. Rows seen since the audit began are not. */
export async function findUnmet(
  ctx: Pick<Context, "db">,
  repository: MirroredRepository,
  kind: Kind,
  auditStartedAt: Date,
): Promise<number[]> {
  const { table, keyColumn } = resourceOf(kind);
  const key = sql.identifier(`t.${keyColumn}`);
  const rows = await ctx.db.query<{ key: string }>(sql`
    with met as (
      select unnest(keys) as key from audit_pages
        where repository_id = ${repository.id} and kind = ${kind} and walked_at >= ${auditStartedAt}
    ) select ${key}::text as key from ${sql.identifier(table.name)} t
      where t.repository_id = ${repository.id} and t.deleted_at is null and t.seen_at < ${settledBefore(auditStartedAt)}
        and not exists (select from met where met.key = ${key}) order by 1`);
  return rows.map((row) => Number(row.key));
}

/** A row that is newer may be unknown to the replica that answers. */
export function settledBefore(auditStartedAt: Date): Date {
  return new Date(auditStartedAt.getTime() - REPLICA_LAG_MS);
}

/**
 * Asks for one resource that the lists did not show, and answers the drift. A limit or a lost right is no drift. "off": issues are
 * switched off, so it would be the same of any other.
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
  const { observed, outcome, isOff } = await readAnew(ctx, wanted, repository, path, "audit");
  if (isOff) return "off";
  // It is worked out only because this read has asked.
  const isUncomputed = ({ fields }: Seen) => fields.state === "open" && fields.mergeable === null;
  const overruled = overruling({
    ...observed,
    seen: observed.seen.map((one) => (isUncomputed(one) ? withoutMergeability(one) : one)),
  });
  return whileMirrored(ctx, repository, async (tx) => {
    const { drift } =
      outcome === "deleted"
        ? { drift: [{ kind, key, drift: "gone" } satisfies Drift] }
        : await compareWithStored(tx, overruled);
    if (repair) await mergeObserved(tx, overruled);
    return drift;
  });
}

/** A label has no address but its name, which may have changed; so the whole list is read again, once for all of them. */
export async function labelsStillUnmet(
  ctx: Context,
  repository: MirroredRepository,
  suspected: readonly number[],
): Promise<number[]> {
  const left = new Set(suspected);
  const list = `/repositories/${repository.id}/labels?per_page=${PAGE_SIZE}`;
  for await (const page of pages(ctx.upstream, list, { priority: "audit" })) {
    if (page.kind !== "ok") return []; // Lists that are not shown say nothing of their rows.
    for (const label of requireList(page.path, page.body)) left.delete(keyIn("label", label));
  }
  return [...left];
}
