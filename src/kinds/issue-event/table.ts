import { boolean, index, integer, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { int8, observed, timestamptz } from "../../../db/schema/columns.ts";

/** One row is one thing that happened to an issue or pull request, such as that it was closed. Rows never change. */
export const issueEvents = pgTable(
  "issue_events",
  {
    repositoryId: int8("repository_id").notNull(),
    id: int8().notNull(),
    nodeId: text("node_id"),
    issueNumber: integer("issue_number").notNull(),
    event: text().notNull(),
    actorId: int8("actor_id"),
    subjectId: int8("subject_id"),
    label: text(),
    milestone: text(),
    titleFrom: text("title_from"),
    titleTo: text("title_to"),
    commitId: text("commit_id"),
    createdAt: timestamptz("created_at").notNull(),
    ...observed,
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.id], name: "issue_events_pkey" }),
    index("issue_events_issue").on(table.repositoryId, table.issueNumber, table.createdAt, table.id),
    index("issue_events_created").on(table.repositoryId, table.createdAt),
    index("issue_events_actor").on(table.actorId, table.repositoryId, table.issueNumber),
  ],
);

/** One row is the list of what happened in one repository: from when on it is here, and when it was read. */
export const issueEventLists = pgTable("issue_event_lists", {
  repositoryId: int8("repository_id").primaryKey(),
  readAt: timestamptz("read_at"),
  walkedAt: timestamptz("walked_at"),
  beginsAt: timestamptz("begins_at"),
  isHalfStored: boolean("is_half_stored").default(false).notNull(),
});
