import { sql } from "drizzle-orm";
import { boolean, index, integer, json, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { bytea, int8, timestamptz } from "./columns.ts";

/**
 * One row is something about which the mirror must ask upstream: what we were told contradicts itself, or upstream did
 * not know it yet.
 */
export const refreshMarks = pgTable(
  "refresh_marks",
  {
    kind: text().notNull(),
    repositoryId: int8("repository_id").notNull(),
    key: int8().notNull(),
    askedAt: timestamptz("asked_at").notNull(),
    notBefore: timestamptz("not_before").notNull(),
    keys: text().array(),
    keysAt: timestamptz("keys_at"),
  },
  (table) => [
    primaryKey({ columns: [table.kind, table.repositoryId, table.key], name: "refresh_marks_pkey" }),
    index("refresh_marks_not_before").on(table.notBefore),
  ],
);

/** One row is what the newest sweep saw of a repository, and whether a catch-up is due because of it. */
export const sweeps = pgTable("sweeps", {
  repositoryId: int8("repository_id").primaryKey(),
  shown: text(),
  sweptAt: timestamptz("swept_at"),
  changedAt: timestamptz("changed_at"),
  untoldAt: timestamptz("untold_at"),
  othersUntoldAt: timestamptz("others_untold_at"),
  shownAt: timestamptz("shown_at").notNull(),
  lists: text(),
  ours: text(),
  oursRevision: int8("ours_revision"),
  heldUntil: timestamptz("held_until"),
  heldAt: timestamptz("held_at"),
  unheld: text(),
  late: text(),
});

/** One row is what upstream gave us to ask the same question again without cost. */
export const validators = pgTable(
  "validators",
  {
    credential: text().notNull(),
    path: text().notNull(),
    etag: text(),
    lastModified: text("last_modified"),
    next: text(),
    isFull: boolean("is_full").notNull(),
    seenAt: timestamptz("seen_at").notNull(),
    body: bytea(),
    variesBy: text("varies_by"),
    usedAt: timestamptz("used_at").notNull(),
    madeFor: text("made_for"),
  },
  (table) => [
    primaryKey({ columns: [table.credential, table.path], name: "validators_pkey" }),
    index("validators_bodies").on(table.usedAt).where(sql`(body IS NOT NULL)`),
    index("validators_path").on(table.path),
    index("validators_used").on(table.usedAt),
  ],
);

/**
 * One row is one GraphQL query or list of REST that was too heavy for upstream in a repository, and how much of it
 * upstream can bear. Without a row all is asked for that may be.
 */
export const graphqlSizes = pgTable(
  "graphql_sizes",
  {
    repositoryId: int8("repository_id").notNull(),
    query: text().notNull(),
    size: integer().notNull(),
    proved: integer().notNull(),
    isRetreating: boolean("is_retreating").notNull(),
    answered: integer().notNull(),
    wait: integer().notNull(),
    learntAt: timestamptz("learnt_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.repositoryId, table.query], name: "graphql_sizes_pkey" })],
);

/** One row is the newest audit of a repository: a full comparison of mirror and upstream. */
export const audits = pgTable("audits", {
  repositoryId: int8("repository_id").primaryKey(),
  repair: boolean().notNull(),
  startedAt: timestamptz("started_at").notNull(),
  finishedAt: timestamptz("finished_at"),
  phase: text().notNull(),
  cursor: text(),
  report: json().notNull(),
});

/** One row is one page of a list as the newest audit saw it, so that the next can ask for it conditionally. */
export const auditPages = pgTable(
  "audit_pages",
  {
    repositoryId: int8("repository_id").notNull(),
    kind: text().notNull(),
    path: text().notNull(),
    keys: int8().array().notNull(),
    fingerprint: text(),
    walkedAt: timestamptz("walked_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.repositoryId, table.kind, table.path], name: "audit_pages_pkey" })],
);

/**
 * One row is one thing that this upstream does not have, such as an older enterprise server. It is asked for again
 * after a day.
 */
export const upstreamLacks = pgTable("upstream_lacks", {
  what: text().primaryKey(),
  reason: text().notNull(),
  learntAt: timestamptz("learnt_at").notNull(),
});
