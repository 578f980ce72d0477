import { sql } from "drizzle-orm";
import { boolean, check, index, integer, json, pgTable, primaryKey, text, uuid } from "drizzle-orm/pg-core";
import { int8, timestamptz } from "./columns.ts";
import type { SyncState } from "./states.ts";

/** One row is one wish of what to mirror: owner/name, or owner/*. */
export const selections = pgTable("selections", {
  pattern: text().primaryKey(),
  addedAt: timestamptz("added_at").notNull(),
  resolvedAt: timestamptz("resolved_at"),
  problem: text(),
  accountType: text("account_type"),
  mirrors: text().array(),
  exceptedId: int8("excepted_id"),
});

/** One row is one mirrored repository and how far its sync has come. */
export const repositorySyncs = pgTable(
  "repository_syncs",
  {
    repositoryId: int8("repository_id").primaryKey(),
    state: text().$type<SyncState>().notNull(),
    addedAt: timestamptz("added_at").notNull(),
    backfilledAt: timestamptz("backfilled_at"),
    issuesSyncedAt: timestamptz("issues_synced_at"),
    commentsSyncedAt: timestamptz("comments_synced_at"),
    reviewCommentsSyncedAt: timestamptz("review_comments_synced_at"),
    pullsSyncedAt: timestamptz("pulls_synced_at"),
    confirmedAt: timestamptz("confirmed_at"),
    problem: text(),
    mirrors: text().array().default([]).notNull(),
    checksConfirmedAt: timestamptz("checks_confirmed_at"),
    listsConfirmedAt: timestamptz("lists_confirmed_at"),
    basePushedAt: timestamptz("base_pushed_at"),
    partsChangedAt: timestamptz("parts_changed_at"),
    partsMissing: text("parts_missing"),
    caughtUpAt: timestamptz("caught_up_at"),
  },
  (_table) => [
    check("repository_syncs_pause", sql`((state <> 'paused'::text) OR (problem IS NOT NULL))`),
    check(
      "repository_syncs_state",
      sql`(state = ANY (ARRAY['backfilling'::text, 'live'::text, 'paused'::text, 'gone'::text]))`,
    ),
  ],
);

/** One row is one phase of a repository's backfill and the page it will read next. */
export const backfillPhases = pgTable(
  "backfill_phases",
  {
    repositoryId: int8("repository_id").notNull(),
    phase: text().notNull(),
    cursor: text(),
    pages: integer().default(0).notNull(),
    resources: integer().default(0).notNull(),
    expectedPages: integer("expected_pages"),
    startedAt: timestamptz("started_at"),
    finishedAt: timestamptz("finished_at"),
    windowPlace: text("window_place"),
  },
  (table) => [primaryKey({ columns: [table.repositoryId, table.phase], name: "backfill_phases_pkey" })],
);

/** One row is one account on which our GitHub App is installed, as upstream last showed it. */
export const installations = pgTable("installations", {
  id: int8().primaryKey(),
  account: text().notNull(),
  accountType: text("account_type").notNull(),
  repositorySelection: text("repository_selection").notNull(),
  permissions: json().$type<Record<string, string>>().notNull(),
  events: json().$type<string[]>().notNull(),
  suspendedAt: timestamptz("suspended_at"),
  listedAt: timestamptz("listed_at"),
  toldAt: timestamptz("told_at"),
  accountId: int8("account_id"),
});

/** One row is one repository that an installation of our GitHub App covers, or covered once. */
export const installationRepositories = pgTable(
  "installation_repositories",
  {
    repositoryId: int8("repository_id").primaryKey(),
    installationId: int8("installation_id").notNull(),
    fullName: text("full_name").notNull(),
    page: integer().notNull(),
  },
  (table) => [index("installation_repositories_installation").on(table.installationId)],
);

/**
 * One row is one of our webhooks at upstream and up to where its list of deliveries has been compared with the inbox.
 */
export const hookChecks = pgTable(
  "hook_checks",
  {
    repositoryId: int8("repository_id").notNull(),
    hookId: int8("hook_id").notNull(),
    checkedUntil: timestamptz("checked_until"),
    missed: int8().default(0).notNull(),
    askedAt: timestamptz("asked_at"),
  },
  (table) => [primaryKey({ columns: [table.repositoryId, table.hookId], name: "hook_checks_pkey" })],
);

/** One row is the hook that we registered for a repository at upstream, and what it was last told to send. */
export const hookSubscriptions = pgTable("hook_subscriptions", {
  repositoryId: int8("repository_id").primaryKey(),
  url: text().notNull(),
  events: text().array().notNull(),
  askedAt: timestamptz("asked_at").notNull(),
});

/**
 * The one row says what this database mirrors, so that no start mixes two upstreams in it. No row: no start has said
 * so yet.
 */
export const origin = pgTable(
  "origin",
  {
    singleton: boolean().default(true).primaryKey(),
    upstream: text().notNull(),
    claimedAt: timestamptz("claimed_at").notNull(),
  },
  (_table) => [check("origin_one_row", sql`singleton`)],
);

/** One row is one full name, in lower case, that a repository no longer has. */
export const formerNames = pgTable(
  "former_names",
  {
    fullName: text("full_name").notNull(),
    repositoryId: int8("repository_id").notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.fullName, table.repositoryId], name: "former_names_pkey" }),
    index("former_names_repository").on(table.repositoryId),
  ],
);

/** One row is an issue that left for another repository, of which upstream answers with its new place. */
export const issueTransfers = pgTable(
  "issue_transfers",
  {
    repositoryId: int8("repository_id").notNull(),
    number: integer().notNull(),
    toRepositoryId: int8("to_repository_id").notNull(),
    toNumber: integer("to_number").notNull(),
  },
  (table) => [primaryKey({ columns: [table.repositoryId, table.number], name: "issue_transfers_pkey" })],
);

/** One row is what tells readers whether anything of a repository may have changed since they last looked. */
export const revisions = pgTable("revisions", {
  repositoryId: int8("repository_id").primaryKey(),
  revision: int8().notNull(),
});

/**
 * One row: which history of the database this is. A server that was promoted goes on in another, in which commits may
 * be missing that somebody has seen.
 */
export const eras = pgTable(
  "eras",
  {
    isOne: boolean("is_one").default(true).primaryKey(),
    timeline: text().notNull(),
    id: uuid().notNull(),
  },
  (_table) => [check("eras_one", sql`is_one`)],
);
