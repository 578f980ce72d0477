import { bigint, boolean, integer, pgTable, text } from "../drizzle.ts";
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
  /** The repositories that it is for, beside the public ones. Null together with `ownerIds`: all that is mirrored. */
  repositoryIds: bigint("repository_ids", { mode: "number" }).array(),
  /** Accounts all of whose repositories it is for, also those that come to be mirrored later. */
  ownerIds: bigint("owner_ids", { mode: "number" }).array(),
  /** An hour, for this token alone. 0: no limit. Null: its user's common quota. */
  hourlyLimit: integer("hourly_limit"),
});
