import type { Queries } from "../../../db/database.ts";
import type { MarkKind, WholeKind } from "../../../db/schema/states.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import type { Fields } from "../../json.ts";
import type { ResourceKey } from "../../kinds/contract/kind.ts";
import { RETRIES } from "../../waits/retries.ts";
import type { Merged } from "./merge.ts";
import { REPLICA_LAG_MS } from "./merge-rule.ts";
import type { Seen } from "./observation.ts";

/** The resources that upstream can be asked about. The key of "mergeability" is the repository's id. */
export interface MarkKey extends Omit<ResourceKey, "kind"> {
  kind: MarkKind;
}

/** Something about which upstream must be asked, and when. */
export interface Mark extends MarkKey {
  /** The newest reason to ask; only a read that begins later, by more than upstream's replicas lag, settles it. */
  askedAt: Date;
  notBefore: Date;
  /** The keys of the resource that are in doubt. Absent: all of them may be wrong. */
  keys?: readonly string[] | null;
}

/** The keys of a mark for a resource that the mirror lacks. Whatever shows the resource settles it. */
export const LACKED_KEYS: readonly string[] = ["id"];
/** Among such keys, this one says that somebody reads lists that show the resource. */
const READ_KEY = "read";

/** Whether nothing is in doubt but that the mirror lacks the resource. */
export function isAboutLack({ keys }: Mark): boolean {
  return keys?.every(isOfLack) ?? false;
}

/** Whether a key of a mark says that the mirror lacks the resource, and not that a value of it may be wrong. */
export function isOfLack(key: string): boolean {
  return key === READ_KEY || LACKED_KEYS.includes(key);
}

/** Whether somebody has lately read lists that lack the resource, so that it should not wait for others. */
export function isReadFor({ keys, askedAt }: Mark, now: Date): boolean {
  return (keys?.includes(READ_KEY) ?? false) && now.getTime() - askedAt.getTime() < READ_FOR_MS;
}

/** So long somebody's read hastens a resource that the list lacks. */
const READ_FOR_MS = 30_000;

/** The reason to ask of a mark that every answer settles which shows the resource at all. */
export function answeredByAny(askedAt: Date): Date {
  return new Date(askedAt.getTime() - REPLICA_LAG_MS - 1_000);
}

/** The issues that the lists of a repository lack, by number, at most 100. `isReadFor`: a read has hastened it before. */
export async function findLacked(db: Queries, repositoryId: number): Promise<{ key: number; isReadFor: boolean }[]> {
  return await db.prepared<{ key: number; isReadFor: boolean }>(sql`
    select m.key, ${READ_KEY} = any(m.keys) as "isReadFor" from refresh_marks m
      where m.kind = 'issue' and m.repository_id = ${repositoryId} and m.keys_at >= m.asked_at
        and m.keys <@ ${sql.array([...LACKED_KEYS, READ_KEY], "text")} order by m.key limit ${MOST_LACKED}`);
}

const MOST_LACKED = 100;

/** A mark that hastens an issue which the lists lack. */
export function lackedMark({ repositoryId, key, now }: { repositoryId: number; key: number; now: Date }): Mark {
  const keys = [...LACKED_KEYS, READ_KEY];
  return { kind: "issue", repositoryId, key, askedAt: answeredByAny(now), notBefore: now, keys };
}

/** The columns that make a `Mark` of a row `m` of `refresh_marks`. */
export const MARK_COLUMNS = sql`m.kind, m.repository_id as "repositoryId", m.key,
  m.asked_at as "askedAt", m.not_before as "notBefore", case when m.keys_at >= m.asked_at then m.keys end as keys`;

/** The time after which every replica shows what was true at `moment`. */
export function afterLag(moment: Date): Date {
  return new Date(moment.getTime() + REPLICA_LAG_MS + 1_000);
}

/**
 * The marks for conflicts of the merge, due at once. A read within the replicas' lag is repeated after it. Deliveries and
 * refreshes put the marks off: to a common moment (`apply.ts`), or to the end of the lag (`refresh.ts`).
 */
export function marksForConflicts(merged: readonly Merged[], askedAt: Date): Mark[] {
  return merged
    .filter(({ outcome }) => outcome === "conflict")
    .map(({ kind, repositoryId, key, conflicting }) => ({
      kind,
      repositoryId,
      key,
      askedAt,
      notBefore: askedAt,
      keys: conflicting,
    }));
}

/** How long upstream is given to work out whether a pull request can be merged before it is asked again. */
const MERGEABILITY_WAIT_MS = RETRIES.mergeability.firstMs;
/**
 * Marks that share a question become due together, once in this time: 120 questions an hour cost a token 120 points.
 */
const ROUND_MS = 30_000;

/** The first common moment of marks that is at least `waitMs` after `moment`. */
export function nextRound(moment: Date, waitMs: number): Date {
  const earliest = moment.getTime() + Math.max(waitMs, MERGEABILITY_WAIT_MS);
  return new Date(Math.ceil(earliest / ROUND_MS) * ROUND_MS);
}

/** `nextRound` in SQL, without a wait. */
export function roundAfter(moment: SQL): SQL {
  const [wait, round] = [MERGEABILITY_WAIT_MS / 1_000, ROUND_MS / 1_000];
  return sql`to_timestamp(ceil((extract(epoch from ${moment}) + ${wait}::integer) / ${round}::integer) * ${round}::integer)`;
}

/** For a row of `pull_requests`: upstream has still to say whether it can be merged, or the merge commit. */
export const IS_MERGEABILITY_UNKNOWN = sql`id is not null and state = 'open' and deleted_at is null
  and (mergeable is null or (mergeable and merge_commit_sha is null))`;

/** Whether a representation shows that upstream is still computing the mergeability. */
function lacksMergeability({ mergeable, merge_commit_sha }: Fields): boolean {
  return mergeable === null || merge_commit_sha === null;
}

/**
 * Upstream computes mergeability only when it is asked, and the request behind these observations made it begin. So it
 * has to be asked again. Answers one mark per repository that has such open pull requests among `seen`.
 */
export async function marksForMergeability(db: Queries, seen: readonly Seen[], askedAt: Date): Promise<Mark[]> {
  const isUnknown = ({ kind, fields, deleted }: Seen) =>
    kind === "pull_request" && !deleted && fields.state !== "closed" && lacksMergeability(fields);
  const keys = seen.filter(isUnknown).map(({ repositoryId, key }) => ({ r: repositoryId, k: key }));
  if (keys.length === 0) return [];
  const rows = await db.prepared<{ id: number }>(sql`
    select distinct p.repository_id as id from pull_requests p
      join json_to_recordset(${sql.json(keys)}) as x(r bigint, k integer)
        on p.repository_id = x.r and p.number = x.k
      where ${IS_MERGEABILITY_UNKNOWN} order by 1`);
  return rows.map(({ id }) => mergeabilityMark(id, askedAt));
}

export function mergeabilityMark(repositoryId: number, askedAt: Date): Mark {
  return {
    kind: "mergeability",
    repositoryId,
    key: repositoryId,
    askedAt,
    notBefore: nextRound(askedAt, MERGEABILITY_WAIT_MS),
  };
}

/** A mark of these kinds stands for all resources of that kind in a repository. */
export type RepositoryMarkKind = Exclude<WholeKind, "mergeability">;

/** A mark for all of a kind in a repository. It is due at once: until it is settled, upstream answers callers. */
export function repositoryMark(kind: RepositoryMarkKind, repositoryId: number, askedAt: Date): Mark {
  return { kind, repositoryId, key: repositoryId, askedAt, notBefore: askedAt };
}

/**
 * Stores marks in the transaction of their cause, so that no loss of the queue forgets them. Several of one resource are
 * one, for all their keys.
 */
export async function storeMarks(db: Queries, marks: readonly Mark[]): Promise<void> {
  await withMarks(
    db,
    marks,
    (x) => sql`
      insert into refresh_marks as m (kind, repository_id, key, asked_at, not_before, keys, keys_at)
        select kind, r, k, max(a), min(n), case when bool_and(s is not null)
            then coalesce(array_agg(distinct one) filter (where one is not null), '{}') end, max(a)
          from ${x} left join lateral unnest(s) as one on true group by kind, r, k order by kind, r, k
        on conflict (kind, repository_id, key) do update
          set asked_at = greatest(m.asked_at, excluded.asked_at),
            not_before = least(m.not_before, excluded.not_before),
            keys = case when m.keys_at >= m.asked_at and m.keys is not null and excluded.keys is not null
              then array(select distinct unnest(m.keys || excluded.keys)) end,
            keys_at = greatest(m.asked_at, excluded.asked_at)`,
  );
}

/**
 * Runs a statement in which the table `x` holds the marks: kind, repository, key, and when they were asked and are due.
 * Does nothing if there are no marks.
 */
export async function withMarks<Row>(db: Queries, marks: readonly Mark[], statement: (x: SQL) => SQL): Promise<Row[]> {
  if (marks.length === 0) return [];
  const rows = marks.map(({ kind, repositoryId, key, askedAt, notBefore, keys }) => ({
    kind,
    r: repositoryId,
    k: key,
    a: askedAt,
    n: notBefore,
    s: keys ?? null,
  }));
  const x = sql`json_to_recordset(${sql.json(rows)})
    as x(kind text, r bigint, k bigint, a timestamptz, n timestamptz, s text[])`;
  return await db.prepared<Row>(statement(x));
}

/** Makes the marks due that were asked for after `since`, as if asked for at `now`. Answers how many there are. */
export async function askAgainSince(db: Queries, since: Date, now: Date): Promise<number> {
  return await db.count(sql`update refresh_marks set asked_at = ${now}, not_before = ${now} where asked_at > ${since}`);
}
