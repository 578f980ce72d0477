import { sql } from "drizzle-orm";
import { boolean, index, integer, json, pgTable, text } from "drizzle-orm/pg-core";
import { int8, observed, timestamptz } from "../../../db/schema/columns.ts";

/** One row is one repository that upstream showed us: a mirrored one, or one met as the head of a pull request. */
export const repositories = pgTable(
  "repositories",
  {
    id: int8().primaryKey(),
    nodeId: text("node_id"),
    name: text().notNull(),
    fullName: text("full_name").notNull(),
    ownerId: int8("owner_id"),
    htmlUrl: text("html_url"),
    private: boolean().notNull(),
    visibility: text(),
    description: text(),
    fork: boolean(),
    archived: boolean(),
    disabled: boolean(),
    hasIssues: boolean("has_issues"),
    defaultBranch: text("default_branch"),
    language: text(),
    stargazersCount: integer("stargazers_count"),
    forksCount: integer("forks_count"),
    openIssuesCount: integer("open_issues_count"),
    size: integer(),
    createdAt: timestamptz("created_at"),
    updatedAt: timestamptz("updated_at"),
    pushedAt: timestamptz("pushed_at"),
    detail: json(),
    ...observed,
  },
  (table) => [
    index("repositories_folded_full_name").on(sql`folded(full_name)`),
    index("repositories_full_name").on(sql`lower(full_name)`),
    index("repositories_node_id").on(table.nodeId),
    index("repositories_owner").on(table.ownerId),
  ],
);
