import { index, integer, pgTable, text } from "../drizzle.ts";
import { id, instant, jsonText } from "./columns.ts";

/** One row is one account on which our GitHub App is installed, as upstream last showed it. */
export const installations = pgTable("installations", {
  id: id("id").primaryKey(),
  account: text("account").notNull(),
  accountType: text("account_type").notNull(),
  /** `all` or `selected`. */
  repositorySelection: text("repository_selection").notNull(),
  permissions: jsonText("permissions").notNull(),
  events: jsonText("events").notNull(),
  suspendedAt: instant("suspended_at"),
  /** When its repositories were last listed in full; null: they are to be. */
  listedAt: instant("listed_at"),
  /** When a webhook last told of it; null once a later read has seen that. */
  toldAt: instant("told_at"),
});

/** One row is one repository that an installation covers, or covered once. There is one at most: that of its owner. */
export const installationRepositories = pgTable(
  "installation_repositories",
  {
    repositoryId: id("repository_id").primaryKey(),
    installationId: id("installation_id").notNull(),
    /** `owner/name`, as it was listed. */
    fullName: text("full_name").notNull(),
    /** On which page of upstream's list it stood: a page that has not changed still holds it. 0: it is covered no more. */
    page: integer("page").notNull(),
  },
  (table) => [index("installation_repositories_installation").on(table.installationId)],
);

/** One row is one of our tokens for upstream and whose it is. */
export const tokenOwners = pgTable("token_owners", {
  fingerprint: text("fingerprint").primaryKey(),
  userId: id("user_id").notNull(),
  login: text("login").notNull(),
});
