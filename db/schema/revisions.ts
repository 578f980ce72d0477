import { bigint, pgTable } from "../drizzle.ts";
import { id } from "./columns.ts";

/** One row is what tells readers whether anything of a repository may have changed; 0 stands for people. */
export const revisions = pgTable("revisions", {
  repositoryId: id("repository_id").primaryKey(),
  revision: bigint("revision", { mode: "number" }).notNull(),
});
