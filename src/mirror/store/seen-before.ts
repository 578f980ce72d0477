import { type SQL, sql } from "../../../db/sql.ts";
import { OUR_CLOCKS_APART_MS, REPLICA_LAG_MS } from "./merge-rule.ts";

/**
 * Whether something was seen so long before a read that every replica knew it. `seenAt` is a column by our clock. A time
 * that lies ahead of `now` is unknown, as in `knownTime`, and counts as long ago.
 */
export function seenBefore(seenAt: SQL, { readAt, now }: { readAt: Date; now: Date }): SQL {
  const settled = new Date(readAt.getTime() - REPLICA_LAG_MS);
  const ahead = new Date(now.getTime() + OUR_CLOCKS_APART_MS);
  return sql`(${seenAt} < ${settled} or ${seenAt} > ${ahead})`;
}
