import { boolean, integer, pgTable, primaryKey, sql, text } from "../drizzle.ts";
import { id, instant, observed, words } from "./columns.ts";

/**
 * One row is one number of a repository: an issue, or the issue side of a pull request.
 * `id` is null while only the pull request side has been seen; such a row is not served as an issue.
 */
export const issues = pgTable(
  "issues",
  {
    repositoryId: id("repository_id").notNull(),
    number: integer("number").notNull(),
    id: id("id"),
    nodeId: text("node_id"),
    isPullRequest: boolean("is_pull_request").notNull(),
    title: text("title").notNull(),
    body: text("body"),
    state: text("state").notNull(),
    stateReason: text("state_reason"),
    locked: boolean("locked"),
    activeLockReason: text("active_lock_reason"),
    draft: boolean("draft"),
    userId: id("user_id"),
    authorAssociation: text("author_association"),
    milestoneId: id("milestone_id"),
    comments: integer("comments"),
    closedById: id("closed_by_id"),
    createdAt: instant("created_at").notNull(),
    updatedAt: instant("updated_at").notNull(),
    closedAt: instant("closed_at"),
    search: words("search").generatedAlwaysAs(
      sql`setweight(search_words(title), 'A') || setweight(search_words(body), 'B')`,
    ),
    ...observed,
  },
  (table) => [primaryKey({ columns: [table.repositoryId, table.number] })],
);

/** One row is an issue that left for another repository, of which upstream answers with its new place. */
export const issueTransfers = pgTable(
  "issue_transfers",
  {
    repositoryId: id("repository_id").notNull(),
    number: integer("number").notNull(),
    toRepositoryId: id("to_repository_id").notNull(),
    toNumber: integer("to_number").notNull(),
  },
  (table) => [primaryKey({ columns: [table.repositoryId, table.number] })],
);

/**
 * One row says that an issue or pull request carries a label. What lists by label ask of the issue stands in it again; a
 * trigger keeps that true.
 */
export const issueLabels = pgTable(
  "issue_labels",
  {
    repositoryId: id("repository_id").notNull(),
    labelId: id("label_id").notNull(),
    number: integer("number").notNull(),
    state: text("state").notNull(),
    isPullRequest: boolean("is_pull_request").notNull(),
    isShown: boolean("is_shown").notNull(),
    createdAt: instant("created_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.repositoryId, table.number, table.labelId] })],
);

/** One row says that an issue or pull request is assigned to a user. */
export const issueAssignees = pgTable(
  "issue_assignees",
  { repositoryId: id("repository_id").notNull(), userId: id("user_id").notNull(), number: integer("number").notNull() },
  (table) => [primaryKey({ columns: [table.repositoryId, table.userId, table.number] })],
);
