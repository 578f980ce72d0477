import { sql } from "drizzle-orm";
import type { Queries } from "../../db/connection.ts";
import { REPLICA_LAG_MS } from "./merge-rule.ts";
import type { ResourceKey } from "./resource.ts";
import type { Merged } from "./store.ts";

/** A resource about which upstream must be asked, and when. */
export interface Mark extends ResourceKey {
  /** The newest reason to ask; only a read that begins later, by more than upstream's replicas lag, settles it. */
  askedAt: Date;
  notBefore: Date;
}

/** When a read is certain to show what was true at `moment`, whichever replica answers. */
export function afterLag(moment: Date): Date {
  return new Date(moment.getTime() + REPLICA_LAG_MS + 1_000);
}

/** The marks for what the merge could not decide: to be asked at once, and once more when no replica can lag behind. */
export function marksForTies(merged: Merged[], askedAt: Date): Mark[] {
  return merged
    .filter(({ outcome }) => outcome === "tied")
    .map(({ kind, repositoryId, key }) => ({ kind, repositoryId, key, askedAt, notBefore: askedAt }));
}

/** Stores marks with what gave reason to them, so that no loss of the queue forgets them. */
export async function storeMarks(queries: Pick<Queries, "execute">, marks: Mark[]): Promise<void> {
  if (marks.length === 0) return;
  const rows = marks.map(({ kind, repositoryId, key, askedAt, notBefore }) => ({
    kind,
    r: repositoryId,
    k: key,
    a: askedAt,
    n: notBefore,
  }));
  await queries.execute(sql`
    insert into refresh_marks (kind, repository_id, key, asked_at, not_before)
    select distinct on (kind, r, k) kind, r, k, a, n
      from json_to_recordset(${JSON.stringify(rows)}::json) as x(kind text, r bigint, k bigint, a timestamptz, n timestamptz) order by kind, r, k, n
    on conflict (kind, repository_id, key) do update set
      asked_at = greatest(refresh_marks.asked_at, excluded.asked_at), not_before = least(refresh_marks.not_before, excluded.not_before)`);
}
