import { sql } from "../../../db/sql.ts";
import { REPLICA_LAG_MS } from "../../mirror/store/merge-rule.ts";

const CONFIRMED = sql`(s.confirmed_at - ${`${REPLICA_LAG_MS} milliseconds`}::interval)`;

/**
 * Whether a webhook has changed the row `t` since upstream last confirmed its repository, the row `s` of
 * `repository_syncs`. Then an unchanged answer of upstream does not prove that our row is right: webhooks of one moment
 * may have come in another order.
 */
export const PUSHED_SINCE_CONFIRMED = sql`((not t.seen_by_read and t.seen_at > ${CONFIRMED}) or exists (
  select from json_each(t.key_stamps::json) as k(key, stamp) where not (stamp ->> 2)::boolean
    and to_timestamp((stamp ->> 1)::float8 / 1000) > ${CONFIRMED}))`;
