import { boolean, check, index, integer, pgTable, primaryKey, sql, text } from "../drizzle.ts";
import { bytes, id, idList, instant, jsonText } from "./columns.ts";

/** One row is one wish of what to mirror: `owner/name`, or `owner/*`. */
export const selections = pgTable("selections", {
  pattern: text("pattern").primaryKey(),
  addedAt: instant("added_at").notNull(),
  /** When its repositories were last found; null: never, so what upstream says unchanged is not known here. */
  resolvedAt: instant("resolved_at"),
  /** Why the last attempt to resolve it failed, in words. */
  problem: text("problem"),
});

const SYNC_STATES = ["backfilling", "live", "paused", "gone"] as const;
export type SyncState = (typeof SYNC_STATES)[number];

/** One row is one mirrored repository and how far its sync has come. */
export const repositorySyncs = pgTable(
  "repository_syncs",
  {
    repositoryId: id("repository_id").primaryKey(),
    /** What the states mean, and who moves a repository: `src/sync/following/state.ts`. */
    state: text("state", { enum: SYNC_STATES }).notNull(),
    addedAt: instant("added_at").notNull(),
    backfilledAt: instant("backfilled_at"),
    /** Upstream's changes up to here, by upstream's clock, have been read. */
    issuesSyncedAt: instant("issues_synced_at"),
    commentsSyncedAt: instant("comments_synced_at"),
    reviewCommentsSyncedAt: instant("review_comments_synced_at"),
    pullsSyncedAt: instant("pulls_synced_at"),
    /** When upstream last confirmed what we hold, by our clock. */
    confirmedAt: instant("confirmed_at"),
    problem: text("problem"),
  },
  (table) => [
    check("repository_syncs_state", sql`${table.state} in ('backfilling', 'live', 'paused', 'gone')`),
    check("repository_syncs_pause", sql`${table.state} <> 'paused' or ${table.problem} is not null`),
  ],
);

/** One row is one phase of a repository's backfill and the page it will read next. */
export const backfillPhases = pgTable(
  "backfill_phases",
  {
    repositoryId: id("repository_id").notNull(),
    phase: text("phase").notNull(),
    /** Where to go on: a URL path, or a place among the pull requests as JSON; null before the first page. */
    cursor: text("cursor"),
    pages: integer("pages").notNull().default(0),
    resources: integer("resources").notNull().default(0),
    /** How many pages there will be, when upstream has said so. */
    expectedPages: integer("expected_pages"),
    startedAt: instant("started_at"),
    finishedAt: instant("finished_at"),
  },
  (table) => [primaryKey({ columns: [table.repositoryId, table.phase] })],
);

/** One row is what upstream gave us to ask again without cost. */
export const validators = pgTable(
  "validators",
  {
    /** Names the credential: upstream's ETags depend on the token. */
    credential: text("credential").notNull(),
    /** The request's path and query. */
    path: text("path").notNull(),
    etag: text("etag"),
    lastModified: text("last_modified"),
    /** The `rel="next"` of the answer's Link header, which the ETag does not cover. */
    next: text("next"),
    /** Whether the page was full: then a 304 does not say that there is no next page. */
    isFull: boolean("is_full").notNull(),
    seenAt: instant("seen_at").notNull(),
    /** The answer's body, gzipped, from which its ETag is computed for another token. null: it cannot be. */
    body: bytes("body"),
    /** The request headers that the ETag covers beside the body, in order, with a blank between them; null as the body. */
    variesBy: text("varies_by"),
    /** When it was last of use, to the day. */
    usedAt: instant("used_at").notNull(),
    /** A fingerprint of the token string that the ETag is for, where the credential changes its own; null where it does not. */
    madeFor: text("made_for"),
  },
  (table) => [primaryKey({ columns: [table.credential, table.path] }), index("validators_path").on(table.path)],
);

const RESOURCE_KINDS = [
  "user",
  "repository",
  "label",
  "milestone",
  "issue",
  "pull_request",
  "issue_comment",
  "review",
  "review_comment",
] as const;
export type ResourceKind = (typeof RESOURCE_KINDS)[number];
/** "mergeability": whether the open pull requests of a repository can be merged, where it is not known. */
const MARK_KINDS = [...RESOURCE_KINDS, "mergeability"] as const;
/** What upstream can be asked about. */
export type MarkKind = (typeof MARK_KINDS)[number];

/** One row is one resource about which the mirror must ask upstream: what we were told contradicts itself. */
export const refreshMarks = pgTable(
  "refresh_marks",
  {
    kind: text("kind", { enum: MARK_KINDS }).notNull(),
    repositoryId: id("repository_id").notNull(),
    key: id("key").notNull(),
    /** When the newest reason to ask arose. A read that begins later, by more than upstream's replicas lag, settles it. */
    askedAt: instant("asked_at").notNull(),
    notBefore: instant("not_before").notNull(),
  },
  (table) => [primaryKey({ columns: [table.kind, table.repositoryId, table.key] })],
);

/** One row is the newest audit of a repository: how far it has come and what it found. */
export const audits = pgTable("audits", {
  repositoryId: id("repository_id").primaryKey(),
  repair: boolean("repair").notNull(),
  startedAt: instant("started_at").notNull(),
  finishedAt: instant("finished_at"),
  /** The phase under way; what it read up to is in `audit_pages`. */
  phase: text("phase").notNull(),
  /** The page to go on with, a URL path or a place among the pull requests as JSON; null: the phase's first. */
  cursor: text("cursor"),
  report: jsonText("report").notNull(),
});

/** One row is one page of a list as the newest audit saw it. */
export const auditPages = pgTable(
  "audit_pages",
  {
    repositoryId: id("repository_id").notNull(),
    kind: text("kind").notNull(),
    path: text("path").notNull(),
    /** What stood on it: ids, or numbers of issues and pull requests. */
    keys: idList("keys").notNull(),
    /** Of our rows when they were equal to the page; null: they were not, so that a 304 would prove nothing. */
    fingerprint: text("fingerprint"),
    walkedAt: instant("walked_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.repositoryId, table.kind, table.path] })],
);

/** One row is what the newest sweep saw of a repository, and whether a catch-up is due because of it. */
export const sweeps = pgTable("sweeps", {
  repositoryId: id("repository_id").primaryKey(),
  /** Of the repository itself; null: nothing. */
  shown: text("shown"),
  shownAt: instant("shown_at").notNull(),
  /** Of the lists' ends; null until they were asked for. */
  lists: text("lists"),
  sweptAt: instant("swept_at"),
  /** When it was last found changed; a catch-up that began later has read the change. */
  changedAt: instant("changed_at"),
  /** When it was last found changed without a webhook that told of it, or a delivery was found missing. */
  untoldAt: instant("untold_at"),
});

/** One row is one of our webhooks at upstream and up to where its deliveries have been compared with the inbox. */
export const hookChecks = pgTable(
  "hook_checks",
  {
    repositoryId: id("repository_id").notNull(),
    hookId: id("hook_id").notNull(),
    /** By upstream's clock. */
    checkedUntil: instant("checked_until").notNull(),
    missed: id("missed").notNull().default(0),
  },
  (table) => [primaryKey({ columns: [table.repositoryId, table.hookId] })],
);
