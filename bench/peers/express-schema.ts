import { sql } from "drizzle-orm";
import { bigint, boolean, customType, integer, pgTable, primaryKey, text, timestamp } from "drizzle-orm/pg-core";

/** The mirror's tables as drizzle-orm wants them described, as far as the peer reads them. */
const id = (name: string) => bigint(name, { mode: "number" });
const instant = (name: string) => timestamp(name, { withTimezone: true, mode: "date" });
const jsonText = customType<{ data: string; driverData: string }>({ dataType: () => "json" });
const words = customType<{ data: string }>({ dataType: () => "tsvector" });

const observed = {
  document: jsonText("document").notNull(),
  keyStamps: jsonText("key_stamps"),
  seenAt: instant("seen_at").notNull(),
  seenByRead: customType<{ data: boolean; driverData: boolean }>({ dataType: () => "boolean" })(
    "seen_by_read",
  ).notNull(),
  deletedAt: instant("deleted_at"),
  revision: bigint("revision", { mode: "number" }).notNull().default(sql`nextval('revision')`),
};

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

export const issueAssignees = pgTable(
  "issue_assignees",
  { repositoryId: id("repository_id").notNull(), userId: id("user_id").notNull(), number: integer("number").notNull() },
  (table) => [primaryKey({ columns: [table.repositoryId, table.userId, table.number] })],
);

export const labels = pgTable(
  "labels",
  {
    repositoryId: id("repository_id").notNull(),
    id: id("id").notNull(),
    nodeId: text("node_id"),
    name: text("name").notNull(),
    color: text("color"),
    description: text("description"),
    default: boolean("default"),
    updatedAt: instant("updated_at"),
    ...observed,
  },
  (table) => [primaryKey({ columns: [table.repositoryId, table.id] })],
);

export const milestones = pgTable(
  "milestones",
  {
    repositoryId: id("repository_id").notNull(),
    id: id("id").notNull(),
    nodeId: text("node_id"),
    number: integer("number").notNull(),
    title: text("title").notNull(),
    description: text("description"),
    state: text("state").notNull(),
    creatorId: id("creator_id"),
    openIssues: integer("open_issues"),
    closedIssues: integer("closed_issues"),
    createdAt: instant("created_at"),
    updatedAt: instant("updated_at"),
    dueOn: instant("due_on"),
    closedAt: instant("closed_at"),
    ...observed,
  },
  (table) => [primaryKey({ columns: [table.repositoryId, table.id] })],
);

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
  detail: jsonText("detail"),
  ...observed,
});

export const users = pgTable("users", {
  id: id("id").primaryKey(),
  nodeId: text("node_id"),
  login: text("login").notNull(),
  type: text("type"),
  name: text("name"),
  avatarUrl: text("avatar_url"),
  siteAdmin: boolean("site_admin"),
  updatedAt: instant("updated_at"),
  ...observed,
});
