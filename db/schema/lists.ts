import { sql } from "drizzle-orm";
import { boolean, check, index, integer, json, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { int8, listed, timestamptz } from "./columns.ts";

/** One row says that an issue or pull request carries a label. */
export const issueLabels = pgTable(
  "issue_labels",
  {
    repositoryId: int8("repository_id").notNull(),
    labelId: int8("label_id").notNull(),
    number: integer().notNull(),
    state: text().notNull(),
    isPullRequest: boolean("is_pull_request").notNull(),
    isShown: boolean("is_shown").notNull(),
    createdAt: timestamptz("created_at").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.number, table.labelId], name: "issue_labels_pkey" }),
    index("issue_labels_listed").on(
      table.repositoryId,
      table.labelId,
      table.isShown,
      table.isPullRequest,
      table.state,
      table.createdAt,
      table.number,
    ),
  ],
);

/** One row says that an issue or pull request is assigned to a user. */
export const issueAssignees = pgTable(
  "issue_assignees",
  {
    repositoryId: int8("repository_id").notNull(),
    userId: int8("user_id").notNull(),
    number: integer().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.userId, table.number], name: "issue_assignees_pkey" }),
    index("issue_assignees_number").on(table.repositoryId, table.number),
    index("issue_assignees_user").on(table.userId, table.repositoryId, table.number),
  ],
);

/** One row is one list that is held whole: the commits, files or review threads of one pull request. */
export const mirroredLists = pgTable(
  "mirrored_lists",
  {
    repositoryId: int8("repository_id").notNull(),
    list: text().notNull(),
    number: integer().notNull(),
    version: text().notNull(),
    heardAt: timestamptz("heard_at").notNull(),
    readAt: timestamptz("read_at"),
    toldAt: timestamptz("told_at"),
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.list, table.number], name: "mirrored_lists_pkey" }),
    check("mirrored_lists_list_check", sql`(list = ANY (ARRAY['commits'::text, 'files'::text, 'threads'::text]))`),
  ],
);

/** One row is one commit of one pull request, as upstream listed it. */
export const pullRequestCommits = pgTable(
  "pull_request_commits",
  {
    ...listed,
    sha: text().notNull(),
    nodeId: text("node_id"),
    message: text(),
    authorId: int8("author_id"),
    committerId: int8("committer_id"),
    authoredAt: timestamptz("authored_at"),
    committedAt: timestamptz("committed_at"),
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.number, table.position], name: "pull_request_commits_pkey" }),
    index("pull_request_commits_authored").on(table.repositoryId, table.authoredAt),
    index("pull_request_commits_sha").on(table.repositoryId, table.sha),
  ],
);

/** One row is one file that a pull request changes, as upstream listed it. */
export const pullRequestFiles = pgTable(
  "pull_request_files",
  {
    ...listed,
    filename: text().notNull(),
    previousFilename: text("previous_filename"),
    status: text().notNull(),
    additions: integer(),
    deletions: integer(),
    changes: integer(),
    sha: text(),
    headSha: text("head_sha"),
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.number, table.position], name: "pull_request_files_pkey" }),
  ],
);

/** One row is one thread of review comments of one pull request, as upstream listed it. */
export const pullRequestThreads = pgTable(
  "pull_request_threads",
  {
    ...listed,
    nodeId: text("node_id").notNull(),
    rootId: int8("root_id").notNull(),
    isResolved: boolean("is_resolved").notNull(),
    isOutdated: boolean("is_outdated").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.number, table.position], name: "pull_request_threads_pkey" }),
    index("pull_request_threads_node").on(table.nodeId),
    index("pull_request_threads_root").on(table.repositoryId, table.rootId),
  ],
);

/**
 * One row is one commit whose checks and statuses are followed: the head of an open pull request or of the default
 * branch.
 */
export const checkedCommits = pgTable(
  "checked_commits",
  {
    repositoryId: int8("repository_id").notNull(),
    sha: text().notNull(),
    isDefaultHead: boolean("is_default_head").default(false).notNull(),
    heardAt: timestamptz("heard_at").notNull(),
    readAt: timestamptz("read_at"),
    suitesReadAt: timestamptz("suites_read_at"),
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.sha], name: "checked_commits_pkey" }),
    check("checked_commits_sha_check", sql`(sha <> ''::text)`),
  ],
);

/** One row is one branch or tag. */
export const refs = pgTable(
  "refs",
  {
    repositoryId: int8("repository_id").notNull(),
    kind: text().notNull(),
    name: text().notNull(),
    sha: text(),
    commitSha: text("commit_sha"),
    protected: boolean(),
    position: integer(),
    document: json(),
    listed: json(),
    toldAt: timestamptz("told_at"),
    deletedAt: timestamptz("deleted_at"),
    doubt: text(),
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.kind, table.name], name: "refs_pkey" }),
    check("refs_doubt_check", sql`(doubt = ANY (ARRAY['told'::text, 'contradicted'::text]))`),
    check("refs_kind_check", sql`(kind = ANY (ARRAY['heads'::text, 'tags'::text]))`),
  ],
);

/** One row is the list of all branches, or of all tags, of one repository. */
export const refLists = pgTable(
  "ref_lists",
  {
    repositoryId: int8("repository_id").notNull(),
    kind: text().notNull(),
    readAt: timestamptz("read_at"),
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.kind], name: "ref_lists_pkey" }),
    check("ref_lists_kind_check", sql`(kind = ANY (ARRAY['heads'::text, 'tags'::text]))`),
  ],
);

/** One row is one commit of the default branch of one repository. */
export const commits = pgTable(
  "commits",
  {
    repositoryId: int8("repository_id").notNull(),
    sha: text().notNull(),
    position: integer().notNull(),
    nodeId: text("node_id"),
    message: text(),
    authorId: int8("author_id"),
    committerId: int8("committer_id"),
    authoredAt: timestamptz("authored_at"),
    committedAt: timestamptz("committed_at"),
    parents: text().array().notNull(),
    document: json().notNull(),
    detail: json(),
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.sha], name: "commits_pkey" }),
    index("commits_position").on(table.repositoryId, table.position),
  ],
);

/** One row is the history of the default branch of one repository, as far as it is here. */
export const commitLists = pgTable(
  "commit_lists",
  {
    repositoryId: int8("repository_id").primaryKey(),
    headSha: text("head_sha"),
    total: integer(),
    readAt: timestamptz("read_at"),
    readingSha: text("reading_sha"),
    detailedSha: text("detailed_sha"),
  },
  () => [check("commit_lists_total_check", sql`((head_sha IS NULL) OR (total IS NOT NULL))`)],
);

/** One row is one ordered set of keys in which upstream was seen to embed a shared resource in another. */
export const shapes = pgTable("shapes", {
  id: text().primaryKey(),
  keys: text().notNull(),
});
