import { boolean, pgTable, text } from "drizzle-orm/pg-core";
import { id, instant } from "./columns.ts";

/** One row is one token of our own, which a caller of the read API shows. */
export const apiTokens = pgTable("api_tokens", {
  /** SHA-256 of the token, lower hex. The token itself is shown once and not kept. */
  hash: text("hash").primaryKey(),
  /** The user that `/user` and `viewer` answer as. */
  userId: id("user_id").notNull(),
  canWrite: boolean("can_write").notNull(),
  createdAt: instant("created_at").notNull(),
  lastUsedAt: instant("last_used_at"),
  revokedAt: instant("revoked_at"),
});
