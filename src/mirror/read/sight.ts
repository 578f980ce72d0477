import { type Sql, sql } from "../../../db/sql.ts";

/**
 * The rights that a token may have in a repository. They are about the repository itself, its issues, pull requests,
 * check runs and suites, commit statuses, and its code with releases. Labels, milestones and assignable people need
 * either issues or pull requests.
 */
export type Right = "metadata" | "issues" | "pulls" | "issues or pulls" | "checks" | "statuses" | "contents";

/** Private repositories, by id. */
type Ids = "all" | readonly number[];

/**
 * The private repositories in which a caller has each right. Every caller sees all of a public one, as upstream shows
 * it to callers without a token. It is not known on which routes upstream refuses a public repository to a token
 * without the permission.
 */
export type Sight = Readonly<Record<Right, Ids>>;

/** The rights that may be given beside the one to the repository itself. */
type Givable = "issues" | "pulls" | "checks" | "statuses" | "contents";

/** Every right in these repositories. */
export function wholeSight(ids: Ids): Sight {
  return sightIn(ids, { issues: true, pulls: true, checks: true, statuses: true, contents: true });
}

const NO_REPOSITORIES: readonly number[] = [];

/** The same rights in each of these repositories: to see the repository, and the given ones. */
export function sightIn(ids: Ids, given: Readonly<Record<Givable, boolean>>): Sight {
  const { issues, pulls, checks, statuses, contents } = given;
  return {
    metadata: ids,
    issues: issues ? ids : NO_REPOSITORIES,
    pulls: pulls ? ids : NO_REPOSITORIES,
    "issues or pulls": issues || pulls ? ids : NO_REPOSITORIES,
    checks: checks ? ids : NO_REPOSITORIES,
    statuses: statuses ? ids : NO_REPOSITORIES,
    contents: contents ? ids : NO_REPOSITORIES,
  };
}

/**
 * Sight from the issues and pull requests that are given in each repository, and the rights about commits that are
 * given in all.
 */
export function sightByKind(
  given: ReadonlyMap<number, { issues: boolean; pulls: boolean }>,
  { code }: { code: boolean },
): Sight {
  const lists = new Map<string, number[]>();
  // Equal lists are one list, so comparing them costs nothing.
  const where = (test: (kinds: { issues: boolean; pulls: boolean }) => boolean) => {
    const ids = [...given].filter(([, kinds]) => test(kinds)).map(([id]) => id);
    return lists.getOrInsertComputed(ids.join(), () => ids);
  };
  return {
    metadata: where(() => true),
    issues: where(({ issues }) => issues),
    pulls: where(({ pulls }) => pulls),
    "issues or pulls": where(({ issues, pulls }) => issues || pulls),
    checks: code ? where(() => true) : NO_REPOSITORIES,
    statuses: code ? where(() => true) : NO_REPOSITORIES,
    contents: code ? where(() => true) : NO_REPOSITORIES,
  };
}

/** Whether they have the right wherever they see the repository. */
export function hasWhereSeen(sight: Sight, right: Right): boolean {
  return sight[right] === sight.metadata;
}

/** Whether they have the right in this repository. */
export function sees(sight: Sight, { id, isPrivate }: { id: number; isPrivate: boolean }, right: Right): boolean {
  const ids = sight[right];
  return !isPrivate || ids === "all" || ids.includes(id);
}

/** The condition under which they have the right in the repository `alias`. */
export function visible(alias: Sql, sight: Sight, right: Right): Sql {
  const ids = sight[right];
  if (ids === "all") return sql`true`;
  if (ids.length === 0) return sql`not ${alias}.private`;
  return sql`(not ${alias}.private or ${alias}.id = any(${ids}::bigint[]))`;
}

/** The condition under which they see `issue`, which may be a pull request, in the repository `alias`. */
export function visibleIssue(alias: Sql, issue: Sql, sight: Sight): Sql {
  const asIssue = visible(alias, sight, "issues");
  if (sight.issues === sight.pulls) return asIssue;
  return sql`case when ${issue}.is_pull_request then ${visible(alias, sight, "pulls")} else ${asIssue} end`;
}
