/**
 * `status:` of a search: the state of the checks of a pull request's head, by the rule of rollups. It is known only for
 * open pull requests.
 */
import type { Database } from "../../../db/database.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import { FAILED_STATES, PASSED_STATES } from "../read/checks.ts";
import { MIRRORED_REPOSITORIES, visible } from "../read/repositories.ts";
import { isScope, loginOf, type Searcher, type SearchNames } from "./names.ts";
import { type Clause, qualifiersIn, UnmirroredSearchError } from "./query.ts";

const STATES: readonly string[] = ["success", "failure", "pending"];

/**
 * Pull requests `t` with the states of their heads' checks: the last run of each suite and name, and the last status of
 * each context.
 */
export const ROLLED_UP_PULLS = sql`pull_requests t cross join lateral (
  select count(*) > 0 as has_any, coalesce(bool_or(state = any(${[...FAILED_STATES]}::text[])), false) as has_failed,
      coalesce(bool_or(state = 'ERROR'), false) as has_error, coalesce(bool_and(state = any(${[...PASSED_STATES]}::text[])), false) as has_passed
    from ((select distinct on (u.check_suite_id, u.name)
        upper(case when u.status = 'completed' then coalesce(u.conclusion, u.status) else u.status end) as state
        from check_runs u where u.repository_id = t.repository_id and u.head_sha = t.head_sha and u.deleted_at is null
        order by u.check_suite_id, u.name, u.id desc)
      union all (select distinct on (folded(u.context)) upper(u.state) from commit_statuses u
        where u.repository_id = t.repository_id and u.sha = t.head_sha and u.deleted_at is null
        order by folded(u.context), u.created_at desc, u.id desc)) each_last) rolled`;

/** The condition that the pull request is open, and its checks are in one of these states. */
export function standsIn(values: readonly string[]): SQL {
  const wanted = values.map((value) => value.toLowerCase());
  const rollup = sql`case when rolled.has_failed then 'failure' when rolled.has_passed then 'success' else 'pending' end`;
  return sql`t.deleted_at is null and t.state = 'open' and rolled.has_any and ${rollup} = any(${wanted}::text[])`;
}

/**
 * Refuses a search by check state unless the state of every candidate is known. The search has to ask for open pull
 * requests. The checks of all their heads have to be mirrored, and the caller has to see them. A status with an error
 * is refused too, since nobody knows how upstream counts it.
 * @throws UnmirroredSearchError
 */
export async function requireCheckStates(
  db: Database,
  clauses: readonly Clause[],
  names: SearchNames,
  { access, readsCode }: Searcher,
): Promise<void> {
  const asked = [...qualifiersIn(clauses)].filter(({ name }) => name === "status");
  if (asked.length === 0) return;
  const qualifiers = clauses.flatMap((clause) => (clause.kind === "qualifier" ? [clause] : []));
  const isOpen = qualifiers.some(
    ({ name, values }) =>
      (name === "is" || name === "state") && values.every((value) => value.toLowerCase() === "open"),
  );
  const isPlain = qualifiers.filter(({ name }) => name === "status").length === asked.length;
  const areKnown = asked.every(({ values }) => values.every((value) => STATES.includes(value.toLowerCase())));
  if (!isOpen || !isPlain || !areKnown || !readsCode)
    throw new UnmirroredSearchError(
      `"status:" is searched here beside "is:open" alone, for ${STATES.join(", ")}, by callers who are known to read checks.`,
    );
  const scopes = qualifiers.filter(({ name }) => isScope(name));
  const ids = scopes.flatMap(({ name, values }) =>
    values.flatMap(
      (value) =>
        (name === "repo" ? names.repositories.get(value.toLowerCase()) : names.owners.get(loginOf(value))) ?? [],
    ),
  );
  const { tables, isMirrored } = MIRRORED_REPOSITORIES;
  const sees = (right: "pulls" | "checks" | "statuses") => visible(sql`r`, access, right);
  const unknown = await db.count(sql`
    select from ${tables} cross join ${ROLLED_UP_PULLS}
      where t.repository_id = r.id and ${isMirrored} and ${sees("pulls")} and t.state = 'open' and t.deleted_at is null
        and ${scopes.length === 0 ? sql`true` : sql`r.id = any(${ids}::bigint[])`}
        and ((rolled.has_error and not rolled.has_failed)
          or not (${sees("checks")} and ${sees("statuses")} and 'checks' = any(s.mirrors)
            and exists (select from checked_commits c
              where c.repository_id = t.repository_id and c.sha = t.head_sha and c.read_at is not null)
            and not exists (select from commit_statuses u
              where u.repository_id = t.repository_id and u.sha = t.head_sha and u.node_id is null and u.deleted_at is null)))
      limit 1`);
  if (unknown > 0)
    throw new UnmirroredSearchError(
      '"status:" cannot be searched here: the checks of some open pull requests are not held.',
    );
}
