import type { Transaction } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import { LONGEST_KEY } from "../../mirror/store/fitting.ts";
import { type Mark, repositoryMark } from "../../mirror/store/marks.ts";
import { REPLICA_LAG_MS } from "../../mirror/store/merge-rule.ts";
import type { MergedDeliveries } from "../events/read.ts";
import { HAS_UNREAD_CHECKS } from "./heads.ts";

/**
 * How old a push may be for its commit to count as new. A later delivery may be a repetition, and the commit may have
 * checks by then.
 */
const BORN_MS = 60_000;

/**
 * Stores the heads that deliveries name, and the commits whose checks are unknown now. Answers a mark for each
 * repository to read.
 */
export async function hearChecks(tx: Transaction, { seen, shown, parts, askedAt }: MergedDeliveries): Promise<Mark[]> {
  const own = (repositoryId: number | null) =>
    repositoryId !== null && (parts.get(repositoryId)?.includes("checks") ?? false);
  const moved = shown.flatMap(({ repositoryId, movedRef }) =>
    repositoryId !== null && movedRef !== null && own(repositoryId) ? [{ r: repositoryId, ref: movedRef }] : [],
  );
  const born = shown.flatMap(({ repositoryId, bornHead }) =>
    bornHead !== null &&
    bornHead.sha.length <= LONGEST_KEY &&
    own(repositoryId) &&
    askedAt.getTime() - bornHead.at < BORN_MS
      ? [{ r: repositoryId, sha: bornHead.sha }]
      : [],
  );
  const suites = seen.flatMap(({ kind, repositoryId, key, fields: { head_sha: sha } }) =>
    kind === "check_suite" && typeof sha === "string" && own(repositoryId) ? [{ r: repositoryId, id: key, sha }] : [],
  );
  const about = seen.filter(
    ({ kind, repositoryId }) => (kind === "pull_request" || kind === "status") && own(repositoryId),
  );
  const ids = new Set(
    [...moved, ...born, ...suites].map(({ r }) => r).concat(about.map(({ repositoryId }) => repositoryId)),
  );
  if (ids.size === 0) return [];
  if (moved.length > 0)
    await tx.query(sql`
      update checked_commits c set is_default_head = false
        from repositories r, json_to_recordset(${sql.json(moved)}) as x(r bigint, ref text)
        where c.repository_id = x.r and c.is_default_head and r.id = x.r and x.ref = 'refs/heads/' || r.default_branch`);
  // A new commit had no checks before its push, and webhooks tell of each one since. So its checks count as read. Not
  // so where upstream has never shown the mirror any checks: they may be hidden.
  if (born.length > 0)
    await tx.query(sql`
      insert into checked_commits as c (repository_id, sha, heard_at, read_at)
        select distinct x.r, x.sha, ${askedAt}::timestamptz, ${askedAt}::timestamptz
          from json_to_recordset(${sql.json(born)}) as x(r bigint, sha text)
          join repository_syncs s on s.repository_id = x.r and s.checks_confirmed_at is not null order by 1, 2
        on conflict (repository_id, sha) do update set read_at = excluded.read_at
          where c.read_at is null and c.heard_at > ${new Date(askedAt.getTime() - REPLICA_LAG_MS)}`);
  if (suites.length > 0)
    await tx.query(sql`
      update checked_commits c set suites_read_at = null
        from json_to_recordset(${sql.json(suites)}) as x(r bigint, id bigint, sha text)
        where c.repository_id = x.r and c.sha = x.sha and c.suites_read_at is not null
          and not exists (select from check_suites s where s.repository_id = x.r and s.id = x.id)`);
  await tx.query(sql`
    insert into checked_commits (repository_id, sha, heard_at)
      select distinct p.repository_id, p.head_sha, ${askedAt}::timestamptz from pull_requests p
        where p.repository_id = any(${[...ids]}::bigint[]) and p.number = any(${about.map(({ key }) => key)}::bigint[])
          and p.state = 'open' and p.deleted_at is null and length(p.head_sha) <= ${LONGEST_KEY} order by 1, 2
      on conflict do nothing`);
  const unread = await tx.query<{ id: number }>(sql`
    select r.id from repositories r where r.id = any(${[...ids]}::bigint[]) and ${HAS_UNREAD_CHECKS} order by 1`);
  tx.touch(unread.map(({ id }) => id));
  return unread.map(({ id }) => repositoryMark("checks", id, askedAt));
}
