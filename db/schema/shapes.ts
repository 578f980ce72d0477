import { integer, pgTable, text } from "drizzle-orm/pg-core";

/** One row is one ordered set of keys in which upstream was seen to embed a shared resource in another. */
export const shapes = pgTable("shapes", {
  id: integer("id").primaryKey().generatedAlwaysAsIdentity(),
  keys: text("keys").notNull().unique(),
});
