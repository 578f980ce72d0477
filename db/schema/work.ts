import { sql } from "drizzle-orm";
import { check, index, integer, pgTable, primaryKey, text, uuid } from "drizzle-orm/pg-core";
import { int8, timestamptz } from "./columns.ts";

/** Work under way that must not run twice at once, such as an audit of a repository. The row is deleted at its end. */
export const exclusiveWork = pgTable("exclusive_work", {
  name: text().primaryKey(),
  holder: uuid().notNull(),
  heldUntil: timestamptz("held_until").notNull(),
});

/**
 * One row is one thing at which transactions take turns: one at a time locks the row. Only Tain's own roles may, while
 * Postgres lets every login take advisory locks.
 */
export const turns = pgTable(
  "turns",
  {
    purpose: text().notNull(),
    slot: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.purpose, table.slot], name: "turns_pkey" })],
);

/** One row is one connection that hears what is announced. It is deleted when the connection ends in order. */
export const listeners = pgTable("listeners", {
  pid: integer().primaryKey(),
});

/** One row is one task of upkeep, and up to when it has looked. */
export const upkeep = pgTable("upkeep", {
  task: text().primaryKey(),
  doneUntil: timestamptz("done_until").notNull(),
});

/**
 * One row is one thing that failed when it was last tried, and is left alone until next_at. A success takes the row
 * away.
 */
export const problems = pgTable(
  "problems",
  {
    task: text().notNull(),
    key: text().notNull(),
    repositoryId: int8("repository_id"),
    cause: text().notNull(),
    problem: text().notNull(),
    failures: integer().notNull(),
    since: timestamptz().notNull(),
    failedAt: timestamptz("failed_at").notNull(),
    nextAt: timestamptz("next_at").notNull(),
    credentials: text().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.task, table.key], name: "problems_pkey" }),
    index("problems_next").on(table.task, table.nextAt),
    index("problems_repository").on(table.repositoryId),
  ],
);

/**
 * One row is what all processes counted in a minute, or in a quarter of an hour that is over for long. Null: no process
 * has told of it, so it is not known.
 */
export const activity = pgTable(
  "activity",
  {
    minutes: integer().notNull(),
    beganAt: timestamptz("began_at").notNull(),
    arrived: int8(),
    applied: int8(),
    ignored: int8(),
    lagMs: int8("lag_ms"),
    slowestMs: int8("slowest_ms"),
    spentRequests: int8("spent_requests"),
    spentPoints: int8("spent_points"),
    sparedRequests: int8("spared_requests"),
    sparedPoints: int8("spared_points"),
    byMirror: int8("by_mirror"),
    byKept: int8("by_kept"),
    byForwarding: int8("by_forwarding"),
  },
  (table) => [
    primaryKey({ columns: [table.minutes, table.beganAt], name: "activity_pkey" }),
    check("activity_minutes", sql`(minutes = ANY (ARRAY[1, 15]))`),
  ],
);

/** One row is one migration that was applied to this database. */
export const schemaMigrations = pgTable(
  "schema_migrations",
  {
    version: integer().primaryKey(),
    name: text().notNull(),
    appliedAt: timestamptz("applied_at").default(sql`now()`).notNull(),
    oldestTain: text("oldest_tain"),
  },
  (_table) => [check("schema_migrations_oldest_tain_check", sql`(oldest_tain ~ '^\\d+\\.\\d+\\.\\d+$'::text)`)],
);
