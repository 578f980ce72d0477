import { pgTable, text } from "../drizzle.ts";

/** One row is one ordered set of keys in which upstream was seen to embed a shared resource in another. */
export const shapes = pgTable("shapes", {
  /** A hash of the keys. */
  id: text("id").primaryKey(),
  keys: text("keys").notNull(),
});
