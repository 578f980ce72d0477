import { sql } from "../sql.ts";

export const DELIVERY_STATUSES = ["pending", "applied", "ignored", "failed"] as const;
/**
 * The state of a delivery. Only `src/inbox` writes it.
 *
 * - pending: acknowledged, and to be applied.
 * - applied, ignored: settled. A redelivery changes nothing.
 * - failed: its job has failed for good. A redelivery makes it pending again; an operator can do so with any delivery.
 */
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** What the states mean, and who moves a repository: `src/sync/following/state.ts`. */
export type SyncState = "backfilling" | "live" | "paused" | "gone";
/** The states of a mirrored repository. */
export type FollowedState = Exclude<SyncState, "gone">;

/**
 * Whether a repository is mirrored, by its row `s` of `repository_syncs`. One that is gone keeps its rows, which are
 * not served.
 */
export const MIRRORED = sql`s.state <> 'gone'`;

/** Whose token somebody showed: one of ours, or one of upstream's. */
export type TokenOf = "own" | "upstream";

/** What is known of a write: upstream's answer, that upstream has seen nothing of it, or neither. */
export type WriteOutcome = "answered" | "unsent" | "unknown";

/** What a target hears about. */
export type TargetScope = "repository" | "organization" | "everything";
/** Who registered a target: a caller of the hooks API, or an operator. */
export type TargetMadeBy = "api" | "operator";
export type TargetContentType = "json" | "form";

export const TARGET_FORMATS = ["slack", "teams", "discord", "cloudevents"] as const;
/** How events are told to a target that does not want them as upstream sent them. */
export type TargetFormat = (typeof TARGET_FORMATS)[number];

export type ResourceKind =
  | "user"
  | "repository"
  | "label"
  | "milestone"
  | "issue"
  | "pull_request"
  | "issue_comment"
  | "issue_event"
  | "review"
  | "review_comment"
  | "check_run"
  | "check_suite"
  | "status"
  | "release"
  | "deployment"
  | "deployment_status"
  | "workflow"
  | "workflow_run"
  | "workflow_job";
/**
 * What upstream is asked about for a whole repository at once.
 *
 * - mergeability: whether the open pull requests of a repository can be merged, where it is not known.
 * - checks: the check runs and statuses of a repository's heads, where they are not known.
 * - lists: the lists of a repository that are held whole, such as the commits of its pull requests.
 * - commits: the history of the default branch.
 * - releases: the list of releases, and which is the latest.
 * - deployments: the list of deployments, and the statuses of the newest.
 * - actions: the lists of workflows and of their runs, and the jobs that were asked for.
 * - issue-events: the list of what happened to issues and pull requests.
 * - refs: the branches and tags.
 * - people: the lists of people and teams, also those of the organisation that owns the repository.
 */
export const WHOLE_KINDS = [
  "mergeability",
  "checks",
  "lists",
  "commits",
  "releases",
  "deployments",
  "actions",
  "issue-events",
  "refs",
  "people",
] as const;
export type WholeKind = (typeof WHOLE_KINDS)[number];
export type MarkKind = ResourceKind | WholeKind;
