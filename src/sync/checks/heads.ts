import type { Queries } from "../../../db/database.ts";
import { type Sql, sql } from "../../../db/sql.ts";
import { REPLICA_LAG_MS } from "../../mirror/store/merge-rule.ts";

/** A commit whose checks are followed, and what of it is to be read. */
export interface UnreadHead {
  sha: string;
  /** Its check runs, its statuses, its suites. */
  runs: boolean;
  statuses: boolean;
  suites: boolean;
}

/** The heads `h.sha` of a repository's open pull requests and of its default branch, as far as the mirror knows them. */
export function headsOf(repositoryId: Sql): Sql {
  return sql`(select p.head_sha as sha from pull_requests p where p.repository_id = ${repositoryId} and p.state = 'open'
      and p.deleted_at is null and p.head_sha is not null
    union select d.sha from checked_commits d where d.repository_id = ${repositoryId} and d.is_default_head) h`;
}

const LAG = sql`${`${REPLICA_LAG_MS} milliseconds`}::interval`;
/** Of a row `c` of `checked_commits`, or none: its checks were not read since every replica knew of the commit. */
const IS_UNREAD = sql`(c.read_at is null or c.read_at <= c.heard_at + ${LAG})`;
/** The same, and a read would change that: one that was read before has to wait until every replica knows of it. */
function isDue(now: Date): Sql {
  return sql`(c.read_at is null or (c.read_at <= c.heard_at + ${LAG} and c.heard_at + ${LAG} < ${now}))`;
}
/** Webhooks show statuses without it. */
const LACKS_IDS = sql`exists (select from commit_statuses t where t.repository_id = r.id and t.sha = h.sha
  and t.node_id is null and t.deleted_at is null)`;
const LACKS_SUITES = sql`(c.suites_read_at is null and exists (select from check_runs t where t.repository_id = r.id
  and t.head_sha = h.sha and t.deleted_at is null))`;

/** The condition that something of the checks of the repository `r` has still to be read. */
export const HAS_UNREAD_CHECKS = sql`(
  not exists (select from checked_commits d where d.repository_id = r.id and d.is_default_head)
  or exists (select from ${headsOf(sql`r.id`)} left join checked_commits c on c.repository_id = r.id and c.sha = h.sha
    where ${IS_UNREAD} or ${LACKS_IDS} or ${LACKS_SUITES}))`;

/** What has to be read now of the heads that are known. */
export async function findDueHeads(db: Queries, repositoryId: number, now: Date): Promise<UnreadHead[]> {
  const due = isDue(now);
  return await db.query<UnreadHead>(sql`
    select h.sha, ${due} as runs, ${due} or ${LACKS_IDS} as statuses, ${due} or ${LACKS_SUITES} as suites
      from repositories r cross join lateral ${headsOf(sql`r.id`)}
      left join checked_commits c on c.repository_id = r.id and c.sha = h.sha
      where r.id = ${repositoryId} and (${due} or ${LACKS_IDS} or ${LACKS_SUITES}) order by h.sha`);
}

/** Whether nothing of the checks of the heads has to be read. */
export async function areChecksRead(db: Queries, repositoryId: number): Promise<boolean> {
  return (
    (await db.count(sql`select from repositories r where r.id = ${repositoryId} and not ${HAS_UNREAD_CHECKS}`)) > 0
  );
}
