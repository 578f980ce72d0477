import { index, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { int8, observed, timestamptz } from "../../../db/schema/columns.ts";

/** One row is one check suite: the check runs of one App for one push. */
export const checkSuites = pgTable(
  "check_suites",
  {
    repositoryId: int8("repository_id").notNull(),
    id: int8().notNull(),
    nodeId: text("node_id"),
    headSha: text("head_sha").notNull(),
    headBranch: text("head_branch"),
    appId: int8("app_id"),
    status: text(),
    conclusion: text(),
    createdAt: timestamptz("created_at"),
    updatedAt: timestamptz("updated_at"),
    ...observed,
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.id], name: "check_suites_pkey" }),
    index("check_suites_head").on(table.repositoryId, table.headSha),
  ],
);
