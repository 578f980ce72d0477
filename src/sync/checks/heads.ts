import type { Queries } from "../../../db/database.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import { roundAfter } from "../../mirror/store/marks.ts";
import { REPLICA_LAG_MS } from "../../mirror/store/merge-rule.ts";

/** A commit whose checks are followed, and which of its lists have to be read. */
export interface UnreadHead {
  sha: string;
  /** Whether the check runs have to be read; likewise the statuses and the suites. */
  runs: boolean;
  statuses: boolean;
  suites: boolean;
  /** An open pull request that has it as its head; null: it is the default branch's alone. */
  pull: { key: number; nodeId: string } | null;
}

/**
 * The heads `h.sha` of a repository's open pull requests and of its default branch, as far as the mirror knows them.
 */
export function headsOf(repositoryId: SQL): SQL {
  return sql`(select p.head_sha as sha from pull_requests p where p.repository_id = ${repositoryId} and p.state = 'open'
      and p.deleted_at is null and p.head_sha is not null
    union select d.sha from checked_commits d where d.repository_id = ${repositoryId} and d.is_default_head) h`;
}

const LAG = sql`${`${REPLICA_LAG_MS} milliseconds`}::interval`;
/**
 * Whether the checks of a row `c` of `checked_commits` were not read since every replica knew the commit. The row may
 * be absent.
 */
const IS_UNREAD = sql`(c.read_at is null or c.read_at <= c.heard_at + ${LAG})`;
/**
 * Whether a head is unread and a read would now be believed: a head that was read too early waits until every replica
 * knows it. Reads happen at the common moments of marks, so that one question serves all waiting heads.
 */
function isHeadDue(now: Date): SQL {
  return sql`(c.read_at is null or (${IS_UNREAD} and ${roundAfter(sql`c.heard_at`)} <= ${now}))`;
}
/** Whether a status `t` lacks its global id, which webhooks do not show. `which` narrows the statuses. */
const lacksIds = (
  which: SQL,
) => sql`exists (select from commit_statuses t where t.repository_id = r.id and t.sha = h.sha
  and t.node_id is null and t.deleted_at is null and ${which})`;
/** Whether some suites are unknown, and there are check runs `t` that meet `which`. */
const lacksSuites = (which: SQL) => sql`(c.suites_read_at is null and exists (select from check_runs t
  where t.repository_id = r.id and t.head_sha = h.sha and t.deleted_at is null and ${which}))`;
const ANY_ROW = sql`true`;

/** The condition that something of the checks of the repository `r` has still to be read. */
export const HAS_UNREAD_CHECKS = sql`(
  not exists (select from checked_commits d where d.repository_id = r.id and d.is_default_head)
  or exists (select from ${headsOf(sql`r.id`)} left join checked_commits c on c.repository_id = r.id and c.sha = h.sha
    where ${IS_UNREAD} or ${lacksIds(ANY_ROW)} or ${lacksSuites(ANY_ROW)}))`;

/** The heads with something to read now. */
export async function findDueHeads(db: Queries, repositoryId: number, now: Date): Promise<UnreadHead[]> {
  const due = isHeadDue(now);
  const waited = sql`${roundAfter(sql`t.seen_at`)} <= ${now}`;
  const [ids, suites] = [lacksIds(waited), lacksSuites(waited)];
  return await db.query<UnreadHead>(sql`
    select h.sha, ${due} as runs, ${due} or ${ids} as statuses, ${due} or ${suites} as suites,
        (select json_build_object('key', p.number, 'nodeId', p.node_id) from pull_requests p
          where p.repository_id = r.id and p.head_sha = h.sha and p.state = 'open' and p.deleted_at is null
            and p.node_id is not null order by p.number limit 1) as pull
      from repositories r cross join lateral ${headsOf(sql`r.id`)}
      left join checked_commits c on c.repository_id = r.id and c.sha = h.sha
      where r.id = ${repositoryId} and (${due} or ${ids} or ${suites}) order by h.sha`);
}

/** Whether all checks of the heads are read. */
export async function areChecksRead(db: Queries, repositoryId: number): Promise<boolean> {
  return (
    (await db.count(sql`select from repositories r where r.id = ${repositoryId} and not ${HAS_UNREAD_CHECKS}`)) > 0
  );
}
