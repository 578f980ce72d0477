import { sql } from "drizzle-orm";
import { boolean, index, pgTable, text } from "drizzle-orm/pg-core";
import { int8, observed, timestamptz } from "../../../db/schema/columns.ts";

/** One row is one account: a person, bot or organisation, mirrored once however often it is embedded. */
export const users = pgTable(
  "users",
  {
    id: int8().primaryKey(),
    nodeId: text("node_id"),
    login: text().notNull(),
    type: text(),
    name: text(),
    avatarUrl: text("avatar_url"),
    siteAdmin: boolean("site_admin"),
    updatedAt: timestamptz("updated_at"),
    ...observed,
  },
  (table) => [
    index("users_folded_login").on(sql`folded(login)`),
    index("users_login").on(sql`lower(login)`),
    index("users_node_id").on(table.nodeId),
  ],
);

/** One row is one account that may have a name, and when upstream is to be asked for it: no event tells of a new one. */
export const accountNames = pgTable(
  "account_names",
  {
    userId: int8("user_id").primaryKey(),
    dueAt: timestamptz("due_at").notNull(),
  },
  (table) => [index("account_names_due").on(table.dueAt)],
);
