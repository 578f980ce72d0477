import { boolean, integer, pgTable, primaryKey, text } from "../drizzle.ts";
import { id, instant, jsonText, observed } from "./columns.ts";

/** One row is one repository that upstream showed us: a mirrored one, or one met as the head of a pull request. */
export const repositories = pgTable("repositories", {
  id: id("id").primaryKey(),
  nodeId: text("node_id"),
  name: text("name").notNull(),
  fullName: text("full_name").notNull(),
  ownerId: id("owner_id"),
  htmlUrl: text("html_url"),
  private: boolean("private").notNull(),
  visibility: text("visibility"),
  description: text("description"),
  fork: boolean("fork"),
  archived: boolean("archived"),
  disabled: boolean("disabled"),
  hasIssues: boolean("has_issues"),
  defaultBranch: text("default_branch"),
  language: text("language"),
  stargazersCount: integer("stargazers_count"),
  forksCount: integer("forks_count"),
  openIssuesCount: integer("open_issues_count"),
  size: integer("size"),
  createdAt: instant("created_at"),
  updatedAt: instant("updated_at"),
  pushedAt: instant("pushed_at"),
  /** The keys that upstream sends only for a single repository. */
  detail: jsonText("detail"),
  ...observed,
});

/** One row is one name that a repository no longer has; upstream redirects it until the name is taken again. */
export const formerNames = pgTable(
  "former_names",
  { fullName: text("full_name").notNull(), repositoryId: id("repository_id").notNull() },
  (table) => [primaryKey({ columns: [table.fullName, table.repositoryId] })],
);
