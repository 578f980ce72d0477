import { boolean, index, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { int8, observed, timestamptz } from "../../../db/schema/columns.ts";

/** One row is one release, with its assets in the document. */
export const releases = pgTable(
  "releases",
  {
    repositoryId: int8("repository_id").notNull(),
    id: int8().notNull(),
    nodeId: text("node_id"),
    tagName: text("tag_name").notNull(),
    targetCommitish: text("target_commitish"),
    name: text(),
    draft: boolean().notNull(),
    prerelease: boolean(),
    authorId: int8("author_id"),
    createdAt: timestamptz("created_at").notNull(),
    publishedAt: timestamptz("published_at"),
    updatedAt: timestamptz("updated_at"),
    ...observed,
  },
  (table) => [
    primaryKey({ columns: [table.repositoryId, table.id], name: "releases_pkey" }),
    index("releases_created").on(table.repositoryId, table.createdAt.desc(), table.id.desc()),
    index("releases_tag").on(table.repositoryId, table.tagName),
  ],
);
