import { sql } from "../../../db/sql.ts";
import { REPLICA_LAG_MS } from "../../mirror/store/merge-rule.ts";

const CONFIRMED = sql`(s.caught_up_at - ${`${REPLICA_LAG_MS} milliseconds`}::interval)`;

/**
 * Whether a webhook has changed the row `t` since the last catch-up of its repository, the row `s` of
 * `repository_syncs`. Then an unchanged answer of upstream does not prove that our row is right: webhooks of one moment
 * may have come in another order. Postgres cannot read the keys of a row that has one with a NUL, so such a row counts
 * as changed.
 */
export const PUSHED_SINCE_CONFIRMED = sql`((not t.seen_by_read and t.seen_at > ${CONFIRMED}) or position('\\u0000' in t.key_stamps::text) > 0 or exists (
  select from json_each(case when position('\\u0000' in t.key_stamps::text) > 0 then '{}' else t.key_stamps::text end::json)
    as k(key, stamp) where not (stamp ->> 2)::boolean
    and to_timestamp((stamp ->> 1)::float8 / 1000) > ${CONFIRMED}))`;
