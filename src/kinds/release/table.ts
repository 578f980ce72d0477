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
    index("releases_created").on(table.repositoryId, table.createdAt.desc().nullsFirst(), table.id.desc().nullsFirst()),
    index("releases_tag").on(table.repositoryId, table.tagName),
  ],
);

/**
 * One row is the list of releases of one repository: whether it is all here, and which of them upstream calls the
 * latest.
 */
export const releaseLists = pgTable("release_lists", {
  repositoryId: int8("repository_id").primaryKey(),
  heardAt: timestamptz("heard_at"),
  readAt: timestamptz("read_at"),
  isHalfStored: boolean("is_half_stored").default(false).notNull(),
  showsDrafts: boolean("shows_drafts").default(false).notNull(),
  latestId: int8("latest_id"),
  latestReadAt: timestamptz("latest_read_at"),
});
