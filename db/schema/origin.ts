import { boolean, check, pgTable, sql, text } from "../drizzle.ts";
import { instant } from "./columns.ts";

/** The one row says what this database mirrors, so that no start mixes two upstreams in it. */
export const origin = pgTable(
  "origin",
  {
    singleton: boolean("singleton").primaryKey().default(true),
    /** The REST address of upstream, or "simulator". */
    upstream: text("upstream").notNull(),
    claimedAt: instant("claimed_at").notNull(),
  },
  (table) => [check("origin_one_row", sql`${table.singleton}`)],
);
