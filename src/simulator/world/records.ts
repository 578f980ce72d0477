/**
 * The rows of the simulated world. A million issues must fit in memory, so a row refers to users, labels and
 * milestones by id, times are whole seconds, and no JSON is kept: views build it per request.
 *
 * Arrays in rows are never changed in place, always replaced: an older version of a row (see `World.seen`) keeps its
 * own.
 */
import type { OrderedIndex } from "./ordered-index.ts";

/** UTC epoch in whole seconds: the service's own granularity. */
export type Seconds = number;

/** The account that stands in for deleted ones (GitHub: id 10137, type User, also in webhooks). */
export const GHOST_ID = 10137;

export type AccountType = "User" | "Organization" | "Bot" | "Mannequin";

export interface User {
  readonly id: number;
  login: string;
  /** As which the account of some Apps' bots signs comments; null: its login. */
  loginInComments: string | null;
  type: AccountType;
  siteAdmin: boolean;
  name: string | null;
  company: string | null;
  blog: string | null;
  location: string | null;
  email: string | null;
  bio: string | null;
  readonly createdAt: Seconds;
  updatedAt: Seconds;
  /** Organisations only: who belongs to it. Members may write to its repositories. */
  memberIds: readonly number[];
  /** Those of them who own it, and those whose membership is public. */
  ownerIds: readonly number[];
  publicMemberIds: readonly number[];
  deleted: boolean;
}

export type Visibility = "public" | "private" | "internal";
export type RepositoryRole = "admin" | "maintain" | "push" | "triage" | "pull";

export interface Repository {
  readonly id: number;
  ownerId: number;
  name: string;
  description: string | null;
  homepage: string | null;
  language: string | null;
  visibility: Visibility;
  fork: boolean;
  parentId: number | null;
  archived: boolean;
  disabled: boolean;
  /** Taken down: every read of it or inside it says so. */
  blocked: "dmca" | "tos" | null;
  isTemplate: boolean;
  hasIssues: boolean;
  /** Switched off: whatever stands below `/pulls` is 404 to everybody. */
  hasPullRequests: boolean;
  hasProjects: boolean;
  hasWiki: boolean;
  hasPages: boolean;
  hasDownloads: boolean;
  hasDiscussions: boolean;
  allowForking: boolean;
  allowSquashMerge: boolean;
  allowMergeCommit: boolean;
  allowRebaseMerge: boolean;
  allowAutoMerge: boolean;
  deleteBranchOnMerge: boolean;
  allowUpdateBranch: boolean;
  webCommitSignoffRequired: boolean;
  defaultBranch: string;
  topics: readonly string[];
  /** SPDX id, lower case as the service's `key` ("mit", "apache-2.0"). */
  licenseKey: string | null;
  stargazers: number;
  forks: number;
  subscribers: number;
  /** Kilobytes. */
  size: number;
  readonly createdAt: Seconds;
  updatedAt: Seconds;
  pushedAt: Seconds | null;
  /** Branch name → head commit (40 hex). */
  readonly branches: Map<string, string>;
  /** People with a role of their own, besides the owner and an organisation's members. */
  readonly collaborators: Map<number, RepositoryRole>;
  /** Authors of merged pull requests: what makes a CONTRIBUTOR. */
  readonly contributorIds: Set<number>;
  /** The last number given to an issue or pull request; never reused. */
  lastNumber: number;
  lastMilestoneNumber: number;
  openIssues: number;
  openPulls: number;
  readonly rows: RepositoryRows;
  deleted: boolean;
}

export type TeamRole = "member" | "maintainer";

export interface Team {
  readonly id: number;
  readonly organizationId: number;
  slug: string;
  name: string;
  description: string | null;
  privacy: "closed" | "secret";
  readonly parentId: number | null;
  readonly members: Map<number, TeamRole>;
  /** What it gives its people in repositories, by their ids. */
  readonly repositories: Map<number, RepositoryRole>;
  readonly createdAt: Seconds;
  updatedAt: Seconds;
}

/** Everything inside a repository, with the indexes that make a page cheap at a million rows. */
interface RepositoryRows {
  /** By number; a hole is a number that was never given, or whose issue is gone (see `tombstones`). */
  readonly byNumber: (Issue | undefined)[];
  readonly issuesByCreated: OrderedIndex<Issue>;
  readonly issuesByUpdated: OrderedIndex<Issue>;
  /** Only pull requests, by creation. */
  readonly pullsByCreated: OrderedIndex<Issue>;
  readonly commentsById: OrderedIndex<Comment>;
  readonly commentsByUpdated: OrderedIndex<Comment>;
  readonly reviewCommentsById: OrderedIndex<ReviewComment>;
  readonly reviewCommentsByUpdated: OrderedIndex<ReviewComment>;
  readonly labels: Map<number, Label>;
  readonly milestones: Map<number, Milestone>;
  /** By number of the issue that is gone. */
  readonly tombstones: Map<number, Tombstone>;
  readonly hooks: Map<number, Hook>;
}

export interface Label {
  readonly id: number;
  readonly repository: Repository;
  name: string;
  /** Six hexadecimal digits without `#`, lower case. */
  color: string;
  description: string | null;
  readonly isDefault: boolean;
  readonly createdAt: Seconds;
  updatedAt: Seconds;
  deleted: boolean;
}

export interface Milestone {
  readonly id: number;
  readonly repository: Repository;
  readonly number: number;
  title: string;
  description: string | null;
  state: "open" | "closed";
  readonly creatorId: number | null;
  openIssues: number;
  closedIssues: number;
  readonly createdAt: Seconds;
  updatedAt: Seconds;
  closedAt: Seconds | null;
  dueOn: Seconds | null;
  deleted: boolean;
}

export type StateReason = "completed" | "not_planned" | "duplicate" | "reopened";
export type LockReason = "off-topic" | "too heated" | "resolved" | "spam";
export type Association =
  | "COLLABORATOR"
  | "CONTRIBUTOR"
  | "FIRST_TIMER"
  | "FIRST_TIME_CONTRIBUTOR"
  | "MANNEQUIN"
  | "MEMBER"
  | "NONE"
  | "OWNER";

type ReactionContent = "+1" | "-1" | "laugh" | "hooray" | "confused" | "heart" | "rocket" | "eyes";
export type Reactions = Readonly<Partial<Record<ReactionContent, number>>>;

/** How issues hang together, by their ids. Both ends name each other. */
export interface IssueLinks {
  readonly parentId: number | null;
  /** In the order that people gave them. */
  readonly subIssueIds: readonly number[];
  readonly blockedByIds: readonly number[];
  readonly blockingIds: readonly number[];
}

/** What an organisation's issues can be. */
export interface IssueType {
  readonly id: number;
  readonly name: string;
  readonly description: string | null;
  readonly color: string;
  readonly createdAt: Seconds;
}

/** An issue, or (with `pull`) the issue side of a pull request. */
export interface Issue {
  /** The issue's id: also what `/issues` shows for a pull request, whose own id is `pull.id`. */
  readonly id: number;
  readonly repository: Repository;
  readonly number: number;
  title: string;
  body: string | null;
  /** `GHOST_ID` for a deleted author; null where the service answers `user: null`. */
  authorId: number | null;
  state: "open" | "closed";
  stateReason: StateReason | null;
  closedAt: Seconds | null;
  closedById: number | null;
  /** Stays when it is reopened. */
  lastClosedAt: Seconds | null;
  locked: boolean;
  lockReason: LockReason | null;
  pinned: boolean;
  assigneeIds: readonly number[];
  labelIds: readonly number[];
  milestoneId: number | null;
  typeId: number | null;
  /** Null: to no other. Never changed in place. */
  links: IssueLinks | null;
  readonly createdAt: Seconds;
  updatedAt: Seconds;
  /** When the title or body was last edited; GraphQL's `lastEditedAt`. */
  editedAt: Seconds | null;
  /** Set where the world knows better than what can be derived (loaded histories). */
  association: Association | null;
  reactions: Reactions | null;
  /** Conversation, ascending by id. Its length is the `comments` counter, unless `commentsBeyond` adds to it. */
  thread: readonly Comment[];
  /** Comments that are counted but not held (histories that know only the number). */
  commentsBeyond: number;
  pull: Pull | null;
  deleted: boolean;
}

/** An end of a pull request. */
export interface PullEnd {
  readonly ref: string;
  readonly sha: string;
  /** `owner:ref`; stays when the owner or the fork is gone. */
  readonly label: string;
  readonly userId: number | null;
  /** Null once the fork is deleted. */
  readonly repositoryId: number | null;
}

export interface Pull {
  readonly id: number;
  head: PullEnd;
  base: PullEnd;
  draft: boolean;
  mergedAt: Seconds | null;
  mergedById: number | null;
  /** The test merge while open, the commit that landed once merged. */
  mergeCommitSha: string | null;
  /** What the background job finds (or found); shown only once it has run, see `mergeableKnownAt`. */
  mergeable: boolean;
  /** When the job's answer begins to be shown, in epoch milliseconds; null until a single read asks for it. */
  mergeableKnownAt: number | null;
  maintainerCanModify: boolean;
  requestedReviewerIds: readonly number[];
  commits: number;
  additions: number;
  deletions: number;
  changedFiles: number;
  /** Ascending by id. */
  reviews: readonly Review[];
  /** Ascending by id; the length is the `review_comments` counter. */
  reviewComments: readonly ReviewComment[];
}

/** A row that is a pull request: `pull` is there. */
export type PullIssue = Issue & { readonly pull: Pull };

export interface Comment {
  readonly id: number;
  issue: Issue;
  authorId: number | null;
  body: string;
  readonly createdAt: Seconds;
  updatedAt: Seconds;
  association: Association | null;
  reactions: Reactions | null;
  deleted: boolean;
}

export type ReviewState = "APPROVED" | "CHANGES_REQUESTED" | "COMMENTED" | "DISMISSED" | "PENDING";

export interface Review {
  readonly id: number;
  readonly issue: PullIssue;
  authorId: number | null;
  body: string;
  state: ReviewState;
  /** Null while pending. */
  submittedAt: Seconds | null;
  /** Not in REST; the webhook and GraphQL show it. */
  updatedAt: Seconds;
  readonly createdAt: Seconds;
  readonly commitId: string | null;
  association: Association | null;
  deleted: boolean;
}

export interface ReviewComment {
  readonly id: number;
  readonly issue: PullIssue;
  readonly reviewId: number | null;
  readonly inReplyToId: number | null;
  authorId: number | null;
  body: string;
  readonly path: string;
  readonly diffHunk: string;
  position: number | null;
  readonly originalPosition: number | null;
  line: number | null;
  readonly originalLine: number | null;
  readonly startLine: number | null;
  readonly originalStartLine: number | null;
  readonly side: "LEFT" | "RIGHT";
  readonly startSide: "LEFT" | "RIGHT" | null;
  readonly subjectType: "line" | "file";
  commitId: string;
  readonly originalCommitId: string;
  readonly createdAt: Seconds;
  updatedAt: Seconds;
  association: Association | null;
  reactions: Reactions | null;
  deleted: boolean;
}

/** What is left of an issue: deleted answers 410, transferred answers 301 to `to` (404 when `to` is gone). */
interface Tombstone {
  readonly kind: "deleted" | "transferred";
  readonly last: Issue;
  readonly to: Issue | null;
  /** Epoch milliseconds. */
  readonly at: number;
}

/** What every webhook has, a repository's or an App's. */
export interface Endpoint {
  readonly id: number;
  active: boolean;
  events: readonly string[];
  url: string;
  contentType: "json" | "form";
  insecureSsl: "0" | "1";
  /** Signs; never shown. */
  secret: string | null;
  readonly createdAt: Seconds;
  updatedAt: Seconds;
  lastResponse: { readonly code: number | null; readonly status: string; readonly message: string | null };
}

/** A repository's webhook. */
export interface Hook extends Endpoint {
  readonly repository: Repository;
  deleted: boolean;
}

/** The recorded documents of one issue or pull request. */
export interface RecordedDocuments {
  readonly issue?: Readonly<Record<string, unknown>>;
  readonly pull?: Readonly<Record<string, unknown>>;
}
