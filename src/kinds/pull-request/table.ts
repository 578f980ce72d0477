import { sql } from "drizzle-orm";
import { boolean, index, integer, json, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { int8, observed, timestamptz } from "../../../db/schema/columns.ts";

/** One row is one pull request; the issue side of it is the row of `issues` with the same number. */
export const pullRequests = pgTable(
  "pull_requests",
  {
    repositoryId: int8("repository_id").notNull(),
    number: integer().notNull(),
    id: int8(),
    nodeId: text("node_id"),
    title: text().notNull(),
    body: text(),
    state: text().notNull(),
    locked: boolean(),
    draft: boolean(),
    userId: int8("user_id"),
    authorAssociation: text("author_association"),
    milestoneId: int8("milestone_id"),
    headLabel: text("head_label"),
    headRef: text("head_ref"),
    headSha: text("head_sha"),
    headRepositoryId: int8("head_repository_id"),
    baseRef: text("base_ref"),
    baseSha: text("base_sha"),
    mergeCommitSha: text("merge_commit_sha"),
    merged: boolean(),
    mergedById: int8("merged_by_id"),
    mergeable: boolean(),
    mergeableState: text("mergeable_state"),
    comments: integer(),
    reviewComments: integer("review_comments"),
    commits: integer(),
    additions: integer(),
    deletions: integer(),
    changedFiles: integer("changed_files"),
    createdAt: timestamptz("created_at").notNull(),
    updatedAt: timestamptz("updated_at").notNull(),
    closedAt: timestamptz("closed_at"),
    mergedAt: timestamptz("merged_at"),
    detail: json(),
    ...observed,
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.number], name: "pull_requests_pkey" }),
    index("pull_requests_created").on(table.repositoryId, table.createdAt, table.number),
    index("pull_requests_id").on(table.id),
    index("pull_requests_open_created")
      .on(table.repositoryId, table.createdAt, table.number)
      .where(sql`(state = 'open'::text)`),
    index("pull_requests_shown")
      .on(table.repositoryId, table.state)
      .where(sql`((id IS NOT NULL) AND (deleted_at IS NULL))`),
    index("pull_requests_updated").on(table.repositoryId, table.updatedAt, table.number),
  ],
);
