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
