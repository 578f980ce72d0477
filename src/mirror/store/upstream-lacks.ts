import type { Queries } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";

/** How long something counts as missing on a server. The server may be upgraded, and a token get another scope. */
const BELIEVED = "24 hours";

/** Whether upstream was found to lack this lately. */
export async function isLacking(db: Queries, what: string, now: Date): Promise<boolean> {
  const rows = await db.prepared(sql`
    select from upstream_lacks where what = ${what} and learnt_at > ${now}::timestamptz - ${BELIEVED}::interval`);
  return rows.length > 0;
}

/** Keeps for a day that upstream lacks this, for all repositories together. */
export async function learnLack(
  db: Queries,
  what: string,
  { reason, now }: { reason: string; now: Date },
): Promise<void> {
  await db.prepared(sql`
    insert into upstream_lacks (what, reason, learnt_at) values (${what}, ${reason}, ${now})
      on conflict (what) do update set reason = excluded.reason, learnt_at = excluded.learnt_at`);
}
