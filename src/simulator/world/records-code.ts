/**
 * Rows of what hangs on code: commits, what machines say of them, tags, releases and deployments. See `records.ts` for
 * what rows are.
 */
import type { Repository, Seconds } from "./records.ts";

export interface Commit {
  readonly sha: string;
  readonly message: string;
  /** Null: an address that belongs to no account. */
  readonly authorId: number | null;
  readonly committerId: number | null;
  readonly authoredAt: Seconds;
  readonly committedAt: Seconds;
  /** Null until they are asked for: a branch that was pushed once has as many commits as its pull request says. */
  parents: readonly string[] | null;
}

export interface FileChange {
  readonly filename: string;
  readonly status: "added" | "modified" | "removed" | "renamed";
  /** The blob's sha; of a removed file, its last blob's. */
  readonly sha: string;
  readonly additions: number;
  readonly deletions: number;
  readonly previousFilename: string | null;
  /** Shown without a patch, whatever its size. */
  readonly binary: boolean;
}

/** An App as checks show it; every installed App is one. */
export interface CheckApp {
  readonly id: number;
  readonly clientId: string;
  readonly slug: string;
  readonly name: string;
  readonly ownerId: number;
  readonly permissions: Readonly<Record<string, string>>;
  readonly events: readonly string[];
  readonly createdAt: Seconds;
  readonly updatedAt: Seconds;
}

export const CHECK_STATUSES = ["queued", "in_progress", "completed", "waiting", "requested", "pending"] as const;
export type CheckStatus = (typeof CHECK_STATUSES)[number];
export const CHECK_CONCLUSIONS = [
  "success",
  "failure",
  "neutral",
  "cancelled",
  "skipped",
  "timed_out",
  "action_required",
  "stale",
] as const;
export type CheckConclusion = (typeof CHECK_CONCLUSIONS)[number];

/** What one App says of one commit: the sum of its runs. */
export interface CheckSuite {
  readonly id: number;
  readonly repository: Repository;
  readonly app: CheckApp;
  readonly headSha: string;
  /** Null for a commit that came from a fork. */
  readonly headBranch: string | null;
  readonly before: string | null;
  status: CheckStatus;
  conclusion: CheckConclusion | null;
  readonly createdAt: Seconds;
  updatedAt: Seconds;
  /** Ascending by id; reruns beside what they supersede. */
  runs: readonly CheckRun[];
  deleted: boolean;
}

export interface CheckRun {
  readonly id: number;
  readonly suite: CheckSuite;
  name: string;
  externalId: string;
  detailsUrl: string | null;
  status: CheckStatus;
  conclusion: CheckConclusion | null;
  startedAt: Seconds | null;
  completedAt: Seconds | null;
  output: { readonly title: string | null; readonly summary: string | null; readonly text: string | null };
  annotations: readonly Annotation[];
  readonly createdAt: Seconds;
  deleted: boolean;
}

export interface Annotation {
  readonly path: string;
  readonly startLine: number;
  readonly endLine: number;
  readonly startColumn: number | null;
  readonly endColumn: number | null;
  readonly level: "notice" | "warning" | "failure";
  readonly title: string | null;
  readonly message: string;
  readonly rawDetails: string | null;
}

export const STATUS_STATES = ["error", "failure", "pending", "success"] as const;
export type StatusState = (typeof STATUS_STATES)[number];

/** One thing said once: it is never changed, only said anew. */
export interface CommitStatus {
  readonly id: number;
  readonly repository: Repository;
  readonly sha: string;
  readonly state: StatusState;
  readonly description: string | null;
  readonly targetUrl: string | null;
  readonly context: string;
  readonly creatorId: number;
  readonly createdAt: Seconds;
  readonly updatedAt: Seconds;
  deleted: boolean;
}

export interface Tag {
  readonly name: string;
  /** The commit that it names. */
  readonly sha: string;
  /** An annotated tag is an object of its own. */
  readonly object: {
    readonly sha: string;
    readonly message: string;
    readonly taggerId: number;
    readonly at: Seconds;
  } | null;
}

export interface Release {
  readonly id: number;
  readonly repository: Repository;
  readonly authorId: number;
  tagName: string;
  targetCommitish: string;
  name: string | null;
  body: string | null;
  draft: boolean;
  prerelease: boolean;
  /** Null: the newest is; true: this one, until another is made so; false: never. */
  makeLatest: boolean | null;
  /** When its commit was made. */
  createdAt: Seconds;
  updatedAt: Seconds;
  publishedAt: Seconds | null;
  assets: readonly ReleaseAsset[];
  deleted: boolean;
}

export interface ReleaseAsset {
  readonly id: number;
  readonly name: string;
  readonly label: string | null;
  readonly contentType: string;
  readonly size: number;
  readonly downloads: number;
  readonly uploaderId: number;
  readonly createdAt: Seconds;
}

export const DEPLOYMENT_STATES = [
  "error",
  "failure",
  "inactive",
  "in_progress",
  "queued",
  "pending",
  "success",
] as const;
export type DeploymentStatusState = (typeof DEPLOYMENT_STATES)[number];

/** Asks for a commit to be brought to an environment. Its statuses say what became of it. */
export interface Deployment {
  readonly id: number;
  readonly repository: Repository;
  readonly creatorId: number;
  /** The commit that `ref` named then. */
  readonly sha: string;
  /** As it was given: a branch, a tag or a sha. */
  readonly ref: string;
  readonly task: string;
  readonly payload: string | Readonly<Record<string, unknown>>;
  readonly originalEnvironment: string;
  /** A status may change it. */
  environment: string;
  readonly description: string | null;
  readonly transientEnvironment: boolean;
  readonly productionEnvironment: boolean;
  readonly createdAt: Seconds;
  updatedAt: Seconds;
  /** Ascending by id. */
  statuses: readonly DeploymentStatus[];
  deleted: boolean;
}

/** One thing said once: it is never changed, only said anew. */
export interface DeploymentStatus {
  readonly id: number;
  readonly deployment: Deployment;
  readonly creatorId: number;
  readonly state: DeploymentStatusState;
  readonly description: string;
  readonly environment: string;
  /** Shown as `target_url` as well: that is its old name. */
  readonly logUrl: string;
  readonly environmentUrl: string;
  readonly createdAt: Seconds;
  readonly updatedAt: Seconds;
  deleted: boolean;
}
