import { table } from "./table.ts";

/** One row is one wish of what to mirror: `owner/name`, or `owner/*`. */
export const selections = table("selections", {
  pattern: "text",
  added_at: "timestamptz",
  /** When its repositories were last found; null: never, so what upstream says unchanged is not known here. */
  resolved_at: "timestamptz?",
  /** Why the last attempt to resolve it failed, in words. */
  problem: "text?",
});

export type SyncState = "backfilling" | "live" | "paused" | "gone";

/** One row is one mirrored repository and how far its sync has come. */
export const repositorySyncs = table("repository_syncs", {
  repository_id: "bigint",
  /** What the states mean, and who moves a repository: `src/sync/following/state.ts`. */
  state: "text",
  added_at: "timestamptz",
  backfilled_at: "timestamptz?",
  /** Upstream's changes up to here, by upstream's clock, have been read. */
  issues_synced_at: "timestamptz?",
  comments_synced_at: "timestamptz?",
  review_comments_synced_at: "timestamptz?",
  pulls_synced_at: "timestamptz?",
  /** When upstream last confirmed what we hold, by our clock. */
  confirmed_at: "timestamptz?",
  problem: "text?",
});

/** One row is one phase of a repository's backfill and the page it will read next. */
export const backfillPhases = table("backfill_phases", {
  repository_id: "bigint",
  phase: "text",
  /** Where to go on: a URL path, or a place among the pull requests as JSON; null before the first page. */
  cursor: "text?",
  pages: "integer",
  resources: "integer",
  /** How many pages there will be, when upstream has said so. */
  expected_pages: "integer?",
  started_at: "timestamptz?",
  finished_at: "timestamptz?",
});

/** One row is what upstream gave us to ask again without cost. */
export const validators = table("validators", {
  /** Names the credential: upstream's ETags depend on the token. */
  credential: "text",
  /** The request's path and query. */
  path: "text",
  etag: "text?",
  last_modified: "text?",
  /** The `rel="next"` of the answer's Link header, which the ETag does not cover. */
  next: "text?",
  /** Whether the page was full: then a 304 does not say that there is no next page. */
  is_full: "boolean",
  seen_at: "timestamptz",
  /** The answer's body, gzipped, from which its ETag is computed for another token. null: it cannot be. */
  body: "bytea?",
  /** The request headers that the ETag covers beside the body, in order, with a blank between them; null as the body. */
  varies_by: "text?",
  /** When it was last of use, to the day. */
  used_at: "timestamptz",
  /** A fingerprint of the token string that the ETag is for, where the credential changes its own; null where it does not. */
  made_for: "text?",
});

export type ResourceKind =
  | "user"
  | "repository"
  | "label"
  | "milestone"
  | "issue"
  | "pull_request"
  | "issue_comment"
  | "review"
  | "review_comment";
/**
 * What upstream can be asked about. "mergeability": whether the open pull requests of a repository can be merged, where it is
 * not known.
 */
export type MarkKind = ResourceKind | "mergeability";

/** One row is one resource about which the mirror must ask upstream: what we were told contradicts itself. */
export const refreshMarks = table("refresh_marks", {
  kind: "text",
  repository_id: "bigint",
  key: "bigint",
  /** When the newest reason to ask arose. A read that begins later, by more than upstream's replicas lag, settles it. */
  asked_at: "timestamptz",
  not_before: "timestamptz",
});

/** One row is the newest audit of a repository: how far it has come and what it found. */
export const audits = table("audits", {
  repository_id: "bigint",
  repair: "boolean",
  started_at: "timestamptz",
  finished_at: "timestamptz?",
  /** The phase under way; what it read up to is in `audit_pages`. */
  phase: "text",
  /** The page to go on with, a URL path or a place among the pull requests as JSON; null: the phase's first. */
  cursor: "text?",
  report: "json",
});

/** One row is one page of a list as the newest audit saw it. */
export const auditPages = table("audit_pages", {
  repository_id: "bigint",
  kind: "text",
  path: "text",
  /** What stood on it: ids, or numbers of issues and pull requests. */
  keys: "bigint[]",
  /** The fingerprint of our rows when they equalled the page. Null: they did not, so a 304 would prove nothing. */
  fingerprint: "text?",
  walked_at: "timestamptz",
});

/** One row is what the newest sweep saw of a repository, and whether a catch-up is due because of it. */
export const sweeps = table("sweeps", {
  repository_id: "bigint",
  /** Of the repository itself; null: nothing. */
  shown: "text?",
  shown_at: "timestamptz",
  /** Of the lists' ends; null until they were asked for. */
  lists: "text?",
  swept_at: "timestamptz?",
  /** When it was last found changed; a catch-up that began later has read the change. */
  changed_at: "timestamptz?",
  /** When it was last found changed without a webhook that told of it, or a delivery was found missing. */
  untold_at: "timestamptz?",
});

/** One row is one of our webhooks at upstream and up to where its deliveries have been compared with the inbox. */
export const hookChecks = table("hook_checks", {
  repository_id: "bigint",
  hook_id: "bigint",
  /** By upstream's clock. */
  checked_until: "timestamptz",
  missed: "bigint",
});
