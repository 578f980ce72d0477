import type { Queries } from "../../../db/database.ts";
import { type FollowedState, MIRRORED } from "../../../db/schema/states.ts";
import { among, sql } from "../../../db/sql.ts";
import { repositorySyncs } from "../../schema.ts";
import { forgetProblems } from "../problems/problems.ts";

/**
 * How a repository is followed. This module alone writes `repository_syncs.state`.
 *
 * - backfilling: a full copy is under way. What it has is served.
 * - live: the copy is complete, and followed.
 * - paused: upstream does not show the repository at the moment. The mirror serves its copy to callers who see private
 *   repositories (`pause.ts`), and catch-ups ask again.
 * - gone: a webhook called the repository deleted, or another has its name, and a read confirmed that upstream shows it no
 *   more; or it was removed here. The rows are kept and not served.
 *
 * A repository moves between the first three in any order, and from each of them to `gone`. Only a selection leads out
 * of `gone`: see `begin`. Jobs run for minutes beside removals, so each of their moves names the states that it may
 * start from. Postgres refuses every other way out of `gone` (0014).
 */
export const FOLLOWED: readonly FollowedState[] = ["backfilling", "live", "paused"];

/** The reason of a pause after a webhook said that the repository was deleted. Only a read can confirm that. */
export const TOLD_DELETED = "a webhook says that it was deleted, and upstream is being asked";

/** The reason of a pause after another repository was seen under its name. It may have been renamed. */
const NAME_TAKEN = "another repository has its name now, and upstream is being asked";
const DELETED = "upstream says it was deleted";
const REPLACED = "another repository has its name now";

/** The reason of a repository that was removed here. A selection `owner/*` does not bring it back. */
const REMOVED_HERE = "removed here";

type Move = { from: readonly FollowedState[] } & (
  | { to: "backfilling" }
  /**
   * `confirmedAt`: when upstream confirmed what we hold, by our clock, unless something is to be decided.
   * `missing`: the parts that it did not show. `caughtUpAt`: when a catch-up began, if that is another time.
   */
  | { to: "live"; confirmedAt?: Date; missing: readonly string[]; backfilledAt?: Date; caughtUpAt?: Date }
  /** `problem`: the reason, in words. */
  | { to: "paused" | "gone"; problem: string }
);

/** Moves a repository. False: it has left the states to start from, since a removal or another job was faster. */
export async function move(queries: Queries, repositoryId: number, change: Move): Promise<boolean> {
  return (await moveAll(queries, [repositoryId], change)).length > 0;
}

/** Moves those of the repositories that are in a state to start from, and answers them. */
export async function moveAll(queries: Queries, repositoryIds: readonly number[], change: Move): Promise<number[]> {
  const problem = "problem" in change ? change.problem : null;
  const { confirmedAt, backfilledAt, missing, caughtUpAt = confirmedAt } = change.to === "live" ? change : {};
  const rows = await queries.query<{ id: number }>(sql`
    update repository_syncs set state = ${change.to}, problem = ${problem},
        confirmed_at = greatest(${confirmedAt ?? null}::timestamptz, confirmed_at),
        caught_up_at = coalesce(${caughtUpAt ?? null}::timestamptz, caught_up_at),
        -- The processes that select and copy have two clocks: a copy ends after it was asked for.
        backfilled_at = coalesce(case when ${backfilledAt ?? null}::timestamptz < added_at then added_at
          else ${backfilledAt ?? null}::timestamptz end, backfilled_at),
        parts_missing = ${missing ? sql`nullif(${missing.join(", ")}::text, '')` : sql`parts_missing`}
      where repository_id = any(${repositoryIds}::bigint[]) and state = any(${change.from}::text[])
      returning repository_id as id`);
  return rows.map(({ id }) => id);
}

/**
 * Upstream does not show the repository, and that is the second sign: the first was a webhook that called it deleted, or
 * another repository of its name. Null: there was none.
 */
export async function confirmAbsence(queries: Queries, repositoryId: number): Promise<"deleted" | "replaced" | null> {
  const [row] = await queries.query<{ problem: string }>(sql`
    update repository_syncs set state = 'gone', problem = case problem when ${TOLD_DELETED} then ${DELETED} else ${REPLACED} end
      where repository_id = ${repositoryId} and state = 'paused' and problem in (${TOLD_DELETED}, ${NAME_TAKEN})
      returning problem`);
  return row ? (row.problem === DELETED ? "deleted" : "replaced") : null;
}

/**
 * Begins to mirror a selected repository. A repository that upstream deleted and restored begins anew. A repository
 * that was removed here begins anew only if the selection names it. False: it is mirrored already, or stays removed.
 */
export async function moveToBackfill(
  queries: Queries,
  repositoryId: number,
  { isNamed, selectedAt }: { isNamed: boolean; selectedAt: Date },
): Promise<boolean> {
  const begun = await queries.count(sql`
    insert into repository_syncs (repository_id, state, added_at) values (${repositoryId}, 'backfilling', ${selectedAt})
    on conflict (repository_id) do update set state = 'backfilling', problem = null, added_at = excluded.added_at
      where repository_syncs.state = 'gone' and (${isNamed}::boolean or repository_syncs.problem is distinct from ${REMOVED_HERE})`);
  if (begun > 0) await forgetProblems(queries, { repositoryIds: [repositoryId] });
  return begun > 0;
}

/**
 * Upstream showed that these names lead to this repository. Answers those that had one before: each is to be asked for.
 * One that upstream did not show lately, and does not show then, is gone.
 */
export async function yieldNames(
  queries: Queries,
  { id, names }: { id: number; names: readonly string[] },
): Promise<{ id: number; isPaused: boolean }[]> {
  return await queries.query(sql`
    with former as (select s.repository_id, s.state, s.problem from repositories r join repository_syncs s on s.repository_id = r.id
      where folded(r.full_name) in (${sql.join(names.map((name) => sql`folded(${name})`))}) and r.id <> ${id}
        and ${MIRRORED} order by r.id for update of s),
    lost as (update repository_syncs s set problem = ${NAME_TAKEN}
      from former f where s.repository_id = f.repository_id and f.state = 'paused' and f.problem is distinct from ${TOLD_DELETED})
    select repository_id as id, state = 'paused' as "isPaused" from former`);
}

/** Removes repositories, whatever their state. */
export async function remove(queries: Queries, repositoryIds: readonly number[]): Promise<void> {
  await queries
    .update(repositorySyncs)
    .set({ state: "gone", problem: REMOVED_HERE })
    .where(among(repositorySyncs.repositoryId, repositoryIds));
  await forgetProblems(queries, { repositoryIds });
}

/** Lets a selection `owner/*` bring back removed repositories whose full names, in lower case, match this pattern. */
export async function forgetRemovals(queries: Queries, like: string): Promise<void> {
  await queries.query(sql`update repository_syncs set problem = null where state = 'gone' and problem = ${REMOVED_HERE}
    and repository_id in (select id from repositories where folded(full_name) like ${like})`);
}

/** The ids among these that are mirrored, live or not. */
export async function findMirrored(queries: Queries, repositoryIds: readonly number[]): Promise<Set<number>> {
  const rows = await queries.prepared<{ id: number }>(sql`
    select repository_id as id from repository_syncs s
      where repository_id = any(${sql.array(repositoryIds, "bigint")}::bigint[]) and ${MIRRORED}`);
  return new Set(rows.map(({ id }) => id));
}
