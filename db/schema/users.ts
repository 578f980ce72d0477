import { boolean, pgTable, text } from "../drizzle.ts";
import { id, instant, observed } from "./columns.ts";

/** One row is one account: a person, bot or organisation, mirrored once however often it is embedded. */
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
