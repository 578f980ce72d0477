// Queries for the things that the page shows, of a list for its newest: of tain_v1, whose columns have a contract (docs/sql.md).

/** The repositories, in SQL. */
export const REPOSITORIES_SQL =
  "select repository, description, confirmed_at from tain_v1.repositories order by repository;";

/**
 * The newest issues and pull requests of a repository, in SQL.
 * @param {string} repository
 */
export function newestSql(repository) {
  const columns = "number, title, state, author, labels, updated_at";
  return ["issues", "pull_requests"]
    .map(
      (view) =>
        `select ${columns} from tain_v1.${view}\n  where repository = ${quoted(repository)} order by created_at desc limit 30;`,
    )
    .join("\n");
}

/**
 * An issue or a pull request with what belongs to it, in SQL.
 * @param {string} repository
 * @param {"issues" | "pull"} kind
 * @param {number} number
 */
export function oneSql(repository, kind, number) {
  const views = kind === "pull" ? ["pull_requests", "reviews", "review_comments"] : ["issues"];
  return [...views, "comments", "issue_events"]
    .map((view) => `select * from tain_v1.${view} where repository = ${quoted(repository)} and number = ${number};`)
    .join("\n");
}

/** A text in SQL. @param {string} text */
function quoted(text) {
  return `'${text.replaceAll("'", "''")}'`;
}
