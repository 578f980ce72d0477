import type { Transaction } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import { resources } from "../../kinds/registry.ts";
import { answeredByAny, LACKED_KEYS, type Mark, nextRound } from "../../mirror/store/marks.ts";
import { REPLICA_LAG_MS } from "../../mirror/store/merge-rule.ts";
import type { Seen } from "../../mirror/store/observation.ts";

/**
 * Marks for resources that others name and the mirror lacks. A review is told with its comments, in the same second, so
 * nothing else shows that its webhook was lost. It may still be told: then its mark costs nothing.
 */
export async function marksForLost(tx: Transaction, seen: readonly Seen[], askedAt: Date): Promise<Mark[]> {
  const marks: Mark[] = [];
  for (const { kind, table, upstream } of resources) {
    const { namedBy } = upstream;
    const naming = seen.filter(({ kind: of, deleted }) => of === namedBy?.kind && !deleted);
    if (!namedBy || naming.length === 0) continue;
    const named = sql`n.${sql.identifier(namedBy.column)}`;
    const rows = await tx.prepared<{ repositoryId: number; key: number }>(sql`
      select distinct x.r as "repositoryId", ${named} as key
        from unnest(${sql.array(
          naming.map(({ repositoryId }) => repositoryId),
          "bigint",
        )}, ${sql.array(
          naming.map(({ key }) => key),
          "bigint",
        )}) as x(r, k)
        join ${namedBy.table} n on n.repository_id = x.r and n.id = x.k and ${named} is not null
        where not exists (select from ${table} t where t.repository_id = x.r and t.id = ${named}) order by 1, 2`);
    const settledBy = answeredByAny(askedAt);
    const notBefore = nextRound(askedAt, REPLICA_LAG_MS);
    marks.push(...rows.map((row) => ({ kind, ...row, askedAt: settledBy, notBefore, keys: LACKED_KEYS })));
  }
  return marks;
}
