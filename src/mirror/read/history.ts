import type { Database } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import type { StoredDocument } from "../render/rendering.ts";
import { HAS_LISTS, LIST_VERSION, longestOf } from "../store/lists.ts";
import { findDocuments, findEach } from "./each.ts";
import { findCommits } from "./lists.ts";
import type { PageSource } from "./pages.ts";
import { IS_PLACE_UNSURE } from "./refs.ts";

/** A commit by its hash. */
export interface CommitPlace {
  repositoryId: number;
  sha: string;
}

/** The history of a commit, or its part between two moments of its committers' clocks; null: without a bound. */
export interface HistoryPart extends CommitPlace {
  since: Date | null;
  until: Date | null;
}

/** What of a history is here. */
export interface HeldHistory {
  /** The place of the commit that it is of. */
  from: number;
  /** How many commits it has, and how many of them, the newest, are here. */
  total: number;
  held: number;
}

/**
 * The rows `c` of a history, from the place `from` on. A commit's date may lie before its parent's. Upstream overlooks
 * that, too: `git log --since` ends at commits that are older.
 */
const isAmong = ({ since, until }: Pick<HistoryPart, "since" | "until">) =>
  sql`(${since}::timestamptz is null or c.committed_at >= ${since}::timestamptz)
    and (${until}::timestamptz is null or c.committed_at <= ${until}::timestamptz)`;

/**
 * The history of a commit, as far as it is here; null: upstream has to say. What follows a commit in the stored order is its
 * history only if all that was listed before leads to it alone.
 */
export async function findHistory(db: Database, part: HistoryPart): Promise<HeldHistory | null> {
  const { repositoryId, sha, since, until } = part;
  const [found] = await db.prepared<HeldHistory & { behind: number; oldest: Date | null }>(sql`
    select f.position as "from", count(*) filter (where ${isAmong(part)}) as held,
        l.total - (select count(*) from commits a where a.repository_id = f.repository_id) as behind,
        (array_agg(c.committed_at order by c.position desc))[1] as oldest, 0 as total
      from commits f
      join commit_lists l on l.repository_id = f.repository_id and l.head_sha is not null
      join commits c on c.repository_id = f.repository_id and c.position >= f.position
      where f.repository_id = ${repositoryId} and f.sha = ${sha}
        and not exists (select from commits b cross join unnest(b.parents) as q(sha)
          where b.repository_id = f.repository_id and b.position < f.position and q.sha <> f.sha
            and not exists (select from commits d
              where d.repository_id = f.repository_id and d.sha = q.sha and d.position < f.position))
      group by f.repository_id, f.position, l.total`);
  if (!found) return null;
  const { from, held, behind, oldest } = found;
  if (behind === 0) return { from, held, total: held };
  // Those behind are older than all that is here.
  if (oldest === null || (until !== null && until < oldest)) return null;
  if (since === null) return { from, held, total: held + behind };
  return since > oldest ? { from, held, total: held } : null;
}

/** Commits of a history, newest first. */
export async function findHistoryPage(
  db: Database,
  part: HistoryPart & Pick<HeldHistory, "from">,
  { offset, limit }: { offset: number; limit: number },
): Promise<StoredDocument[]> {
  const { repositoryId, from } = part;
  const rows = await db.prepared<{ document: string }>(sql`
    select c.document::text as document from commits c
      where c.repository_id = ${repositoryId} and c.position >= ${from} and ${isAmong(part)}
      order by c.position limit ${limit} offset ${offset}`);
  return rows.map(({ document }) => ({ repositoryId, document }));
}

/** These commits, as the history shows them; null: it has them not. */
export async function findHistoryCommits(
  db: Database,
  commits: readonly CommitPlace[],
): Promise<(StoredDocument | null)[]> {
  return await findDocuments(
    db,
    commits,
    ["repositoryId", "sha"],
    (x) => sql`select x.at, c.document::text as document from ${x} join commits c using (repository_id, sha)`,
  );
}

/** A commit as lists show it, if the history or the list of some pull request has it. */
export async function findListedCommit(db: Database, place: CommitPlace): Promise<StoredDocument | null> {
  const [ofHistory] = await findHistoryCommits(db, [place]);
  const [found = null] = ofHistory ? [ofHistory] : await findCommits(db, [place]);
  return found;
}

/** A commit with its statistics and files; null: they are not here. */
export async function findDetailedCommit(
  db: Database,
  { repositoryId, sha }: CommitPlace,
): Promise<(StoredDocument & { committedAt: Date | null }) | null> {
  const [row] = await db.prepared<{ document: string; detail: string; committedAt: Date | null }>(sql`
    select c.document::text as document, c.detail::text as detail, c.committed_at as "committedAt" from commits c
      where c.repository_id = ${repositoryId} and c.sha = ${sha} and c.detail::text <> '{}'`);
  return row ? { repositoryId, ...row } : null;
}

/** The same for connections: a history by its repository and the place that it begins at. */
export function historySource(part: Pick<HistoryPart, "since" | "until">): PageSource {
  return {
    from: sql`commits c`,
    repositoryId: sql`c.repository_id`,
    document: sql`c.document`,
    conditions: [sql`c.repository_id = x.r`, sql`c.position >= x.n`, isAmong(part)],
    key: sql`c.position`,
    keyType: sql`integer`,
    // Places grow less with each push, and cursors hold no number below zero.
    rowId: sql`(c.position::bigint + 2147483648)`,
    direction: "asc",
  };
}

/**
 * The pull request that brought each of these commits; null: none did. Undefined: upstream has to say.
 *
 * GitHub docs, "List pull requests associated with a commit": the merged pull request that introduced a commit of the
 * default branch; of any other commit also the open ones. A merge is known by its commit, and other commits by the lists of
 * pull requests. Not documented are the order of several, and what counts for a commit that was rebased: upstream answers
 * these, and where a list is not here.
 */
export async function findPullsOfCommits(
  db: Database,
  commits: readonly CommitPlace[],
): Promise<(number | null | undefined)[]> {
  const found = await findEach<{ numbers: number[] }>(
    db,
    commits,
    ["repositoryId", "sha"],
    (table) => sql`
    with x as (select * from ${table}),
      -- The history of the branch as it is now says what belongs to it.
      k as materialized (
        select x.*, c.sha is not null as is_default, c.authored_at, c.message,
            coalesce(c.committed_at, t.committed_at) - ${CLOCKS_APART}::interval as committed_at
          from x join repositories r on r.id = x.repository_id
          join commit_lists l on l.repository_id = x.repository_id
          join refs f on f.repository_id = x.repository_id and f.kind = 'heads' and f.name = r.default_branch
            and f.sha = l.head_sha and f.deleted_at is null and not ${IS_PLACE_UNSURE}
          left join commits c on c.repository_id = x.repository_id and c.sha = x.sha
          left join lateral (select t.committed_at from pull_request_commits t
            where t.repository_id = x.repository_id and t.sha = x.sha limit 1) t on true
          where c.sha is not null or t.committed_at > (select min(o.committed_at) from commits o where o.repository_id = x.repository_id)),
      p as materialized (
        select p.repository_id, p.number, p.merged_at, p.updated_at, p.merge_commit_sha,
            coalesce(p.commits, 0) <= ${longestOf("commits")} and exists (select from mirrored_lists l where l.repository_id = p.repository_id and l.list = 'commits'
              and l.number = p.number and l.read_at is not null and ${HAS_LISTS} and l.version = ${LIST_VERSION}) as is_held
          from pull_requests p
          where p.repository_id in (select repository_id from k) and p.updated_at >= (select min(committed_at) from k)
            and p.id is not null and p.deleted_at is null and (p.merged_at is not null or p.state = 'open')),
      n as (
        select m.at, array_agg(m.number) as numbers from (
          select k.at, p.number from k join p on p.repository_id = k.repository_id and p.merge_commit_sha = k.sha and p.merged_at is not null
          union
          select k.at, p.number from k join pull_request_commits t on t.repository_id = k.repository_id and t.sha = k.sha
            join p on p.repository_id = k.repository_id and p.number = t.number and p.is_held
              and (p.merged_at is not null or not k.is_default)) m
          group by m.at)
    select k.at, coalesce(n.numbers, '{}') as numbers from k left join n on n.at = k.at
      where case when k.is_default then n.at is not null
          or not exists (select from p where p.repository_id = k.repository_id and p.merged_at >= k.committed_at and not p.is_held)
            and not exists (select from pull_request_commits t where t.repository_id = k.repository_id
              and t.authored_at = k.authored_at and t.message = k.message)
        else not exists (select from p where p.repository_id = k.repository_id and p.updated_at >= k.committed_at and not p.is_held) end`,
  );
  return found.map((row) => {
    if (row === null || row.numbers.length > 1) return undefined;
    return row.numbers[0] ?? null;
  });
}

/** How far the clock of a committer may go before upstream's. */
const CLOCKS_APART = "1 day";
