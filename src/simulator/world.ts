/**
 * The truth of the simulated service, in memory: rows, lookups, ids, time, and the list of who listens to changes.
 *
 * `add…` methods put a finished row in place without rules or events: for worlds that are generated or loaded. Changes
 * as a person would make them are the functions in `changes/`: they change the truth, apply the service's rules for
 * `updated_at` and counters, and tell the event. All of them begin with `(world, by, …)`, `by` being a user's id.
 */
import type { Clock } from "./clock.ts";
import type { WorldEvent } from "./event.ts";
import type { RecordedDocuments } from "./histories-recorded.ts";
import { type NodeKind, nodeId } from "./node-id.ts";
import { OrderedIndex } from "./ordered-index.ts";
import { type Random, seededRandom } from "./random.ts";
import {
  type Comment,
  GHOST_ID,
  type Hook,
  type Issue,
  type Label,
  type Milestone,
  type Pull,
  type PullIssue,
  type Repository,
  type Review,
  type ReviewComment,
  type Seconds,
  type User,
} from "./records.ts";
import { ReplicaLag, type Row } from "./replica-lag.ts";

/** What the service's documentation leaves open: whether these move an issue's `updated_at`. */
export interface UncertainBumps {
  readonly reopen: boolean;
  readonly titleEdit: boolean;
  readonly lock: boolean;
  readonly pin: boolean;
  readonly commentEdit: boolean;
  readonly commentDelete: boolean;
  readonly labelDelete: boolean;
}

// Where nobody knows, the simulator takes the answer that is harder for a mirror.
const HARD_BUMPS: UncertainBumps = {
  reopen: true,
  titleEdit: true,
  lock: false,
  pin: false,
  commentEdit: false,
  commentDelete: false,
  labelDelete: false,
};

export interface WorldOptions {
  readonly clock?: Clock;
  readonly seed?: number;
  /** Objects created before this have node ids of the old form. Default: 2021-09-01, between the last old and the first new id of a real history. */
  readonly legacyNodeIdsBefore?: Seconds;
  readonly bumps?: Partial<UncertainBumps>;
  /** How long after the first single read of an open pull request its `mergeable` becomes known. Default 2,000. */
  readonly mergeableDelayMs?: number;
}

type IdKind =
  | "user"
  | "repository"
  | "label"
  | "milestone"
  | "issue"
  | "pull"
  | "comment"
  | "review"
  | "reviewComment"
  | "hook"
  | "delivery";

/** Fields that have no default, and any others to set. */
type New<T, Required extends keyof T> = Pick<T, Required> & Partial<Omit<T, "rows">>;
export type NewUser = New<User, "login">;
export type NewRepository = New<Repository, "ownerId" | "name">;
export type NewLabel = New<Label, "repository" | "name">;
export type NewMilestone = New<Milestone, "repository" | "title">;
export type NewPull = New<Pull, "head" | "base">;
export type NewIssue = Omit<New<Issue, "repository" | "title" | "authorId">, "pull" | "thread"> & {
  readonly pull?: NewPull;
};
export type NewComment = New<Comment, "issue" | "authorId" | "body">;
export type NewReview = New<Review, "issue" | "authorId" | "state">;
export type NewReviewComment = New<ReviewComment, "issue" | "authorId" | "body" | "path" | "commitId">;
export type NewHook = New<Hook, "repository" | "url">;

const NONE: readonly never[] = Object.freeze([]) as readonly never[];

export class World {
  readonly clock: Clock;
  readonly random: Random;
  readonly bumps: UncertainBumps;
  readonly legacyNodeIdsBefore: Seconds;
  readonly mergeableDelayMs: number;
  /** Older versions of rows, for reads from a replica that is behind. */
  readonly lag: ReplicaLag;

  readonly users = new Map<number, User>();
  readonly repositories = new Map<number, Repository>();
  readonly issues = new Map<number, Issue>();
  /** By the pull request's own id. */
  readonly pulls = new Map<number, PullIssue>();
  readonly labels = new Map<number, Label>();
  readonly milestones = new Map<number, Milestone>();
  readonly comments = new Map<number, Comment>();
  readonly reviews = new Map<number, Review>();
  readonly reviewComments = new Map<number, ReviewComment>();
  readonly hooks = new Map<number, Hook>();
  /** By issue id: REST documents to serve as they were recorded, see `Snapshots`. */
  readonly recorded = new Map<number, RecordedDocuments>();

  readonly #logins = new Map<string, User>();
  readonly #names = new Map<string, Repository>();
  readonly #oldNames = new Map<string, Repository>();
  readonly #listeners = new Set<(event: WorldEvent) => void>();
  // Near the service's own figures of 2026: issue and comment ids are past 2^31.
  readonly #lastIds: Record<IdKind, number> = {
    user: 200_000_000,
    repository: 900_000_000,
    label: 8_000_000_000,
    milestone: 12_000_000,
    issue: 3_000_000_000,
    pull: 2_200_000_000,
    comment: 3_300_000_000,
    review: 2_500_000_000,
    reviewComment: 1_900_000_000,
    hook: 500_000_000,
    delivery: 150_000_000_000,
  };

  constructor(options: WorldOptions = {}) {
    this.clock = options.clock ?? { now: () => Date.now() };
    this.random = seededRandom(options.seed ?? 1);
    this.bumps = { ...HARD_BUMPS, ...options.bumps };
    this.legacyNodeIdsBefore = options.legacyNodeIdsBefore ?? Date.UTC(2021, 8, 1) / 1_000;
    this.mergeableDelayMs = options.mergeableDelayMs ?? 2_000;
    this.lag = new ReplicaLag(this.clock);
    this.addUser({ id: GHOST_ID, login: "ghost", createdAt: 1_210_609_536, name: "Deleted user" });
  }

  /** The world's time in whole seconds. */
  now(): Seconds {
    return Math.floor(this.clock.now() / 1_000);
  }

  nextId(kind: IdKind): number {
    this.#lastIds[kind] += this.random.int(1, 9);
    return this.#lastIds[kind];
  }

  /** 40 hexadecimal digits. */
  newSha(): string {
    return this.random.hex(40);
  }

  onEvent(listener: (event: WorldEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  emit(event: WorldEvent): void {
    for (const listener of this.#listeners) listener(event);
  }

  /** The node id of a row; its generation depends on when the object was made. `next` forces the new form. */
  nodeId(
    kind: NodeKind,
    row: { readonly id: number; readonly createdAt: Seconds },
    repositoryId?: number,
    next = false,
  ): string {
    return nodeId(kind, row.id, !next && row.createdAt < this.legacyNodeIdsBefore, repositoryId);
  }

  // --- Lookups

  /** Never fails: whoever is gone is the ghost. */
  user(id: number): User {
    return this.users.get(id) ?? (this.users.get(GHOST_ID) as User);
  }

  /** Case-insensitive; deleted accounts are not found. */
  userByLogin(login: string): User | undefined {
    return this.#logins.get(login.toLowerCase());
  }

  /** Case-insensitive. `moved` says that the name is an old one (the service redirects). */
  repositoryByName(
    owner: string,
    name: string,
  ): { readonly repository: Repository; readonly moved: boolean } | undefined {
    const key = `${owner}/${name}`.toLowerCase();
    const now = this.#names.get(key);
    if (now) return { repository: now, moved: false };
    const before = this.#oldNames.get(key);
    return before && !before.deleted ? { repository: before, moved: true } : undefined;
  }

  fullName(repository: Repository): string {
    return `${this.user(repository.ownerId).login}/${repository.name}`;
  }

  issue(repository: Repository, number: number): Issue | undefined {
    return repository.rows.byNumber[number];
  }

  labelByName(repository: Repository, name: string): Label | undefined {
    const wanted = name.toLowerCase();
    for (const label of repository.rows.labels.values()) if (label.name.toLowerCase() === wanted) return label;
    return undefined;
  }

  milestoneByNumber(repository: Repository, number: number): Milestone | undefined {
    for (const milestone of repository.rows.milestones.values()) if (milestone.number === number) return milestone;
    return undefined;
  }

  // --- Time stamps, kept in step with the indexes. Every change of a row begins with `changing`.

  /** Must be called before any field of a row changes, so that a lagging replica can still show it. */
  changing(row: Row): void {
    this.lag.changing(row);
  }

  /** Moves an issue's `updated_at` to now. */
  bump(issue: Issue, at: Seconds = this.now()): void {
    const before = issue.updatedAt;
    issue.updatedAt = at;
    issue.repository.rows.issuesByUpdated.moved(issue, before);
  }

  bumpComment(comment: Comment, at: Seconds = this.now()): void {
    const before = comment.updatedAt;
    comment.updatedAt = at;
    comment.issue.repository.rows.commentsByUpdated.moved(comment, before);
  }

  bumpReviewComment(comment: ReviewComment, at: Seconds = this.now()): void {
    const before = comment.updatedAt;
    comment.updatedAt = at;
    comment.issue.repository.rows.reviewCommentsByUpdated.moved(comment, before);
  }

  // --- Names

  /** After `repository.name` or `.ownerId` changed: the old name redirects from now on. */
  renamed(repository: Repository, oldFullName: string): void {
    const old = oldFullName.toLowerCase();
    if (this.#names.get(old) === repository) this.#names.delete(old);
    this.#oldNames.set(old, repository);
    this.#name(repository);
  }

  /** After `user.login` changed: old logins do not redirect, the names of the user's repositories do. */
  loginChanged(user: User, oldLogin: string): void {
    this.#logins.delete(oldLogin.toLowerCase());
    if (!user.deleted) this.#logins.set(user.login.toLowerCase(), user);
    for (const repository of this.repositories.values()) {
      if (repository.ownerId === user.id && !repository.deleted)
        this.renamed(repository, `${oldLogin}/${repository.name}`);
    }
  }

  forgetName(repository: Repository): void {
    this.#names.delete(this.fullName(repository).toLowerCase());
  }

  #name(repository: Repository): void {
    const key = this.fullName(repository).toLowerCase();
    const taken = this.#names.get(key);
    if (taken && taken !== repository) throw new Error(`The name ${this.fullName(repository)} is taken`);
    this.#names.set(key, repository);
    this.#oldNames.delete(key); // A new repository ends the redirect.
  }

  // --- Rows put in place as they are

  addUser(fields: NewUser): User {
    if (this.userByLogin(fields.login)) throw new Error(`The login ${fields.login} is taken`);
    const createdAt = fields.createdAt ?? this.now();
    const user: User = {
      id: fields.id ?? this.nextId("user"),
      login: fields.login,
      type: fields.type ?? "User",
      siteAdmin: fields.siteAdmin ?? false,
      name: fields.name ?? null,
      company: fields.company ?? null,
      blog: fields.blog ?? null,
      location: fields.location ?? null,
      email: fields.email ?? null,
      bio: fields.bio ?? null,
      createdAt,
      updatedAt: fields.updatedAt ?? createdAt,
      memberIds: fields.memberIds ?? NONE,
      deleted: false,
    };
    this.users.set(user.id, user);
    this.#logins.set(user.login.toLowerCase(), user);
    return user;
  }

  addRepository(fields: NewRepository): Repository {
    const createdAt = fields.createdAt ?? this.now();
    const repository: Repository = {
      id: fields.id ?? this.nextId("repository"),
      ownerId: fields.ownerId,
      name: fields.name,
      description: fields.description ?? null,
      homepage: fields.homepage ?? null,
      language: fields.language ?? null,
      visibility: fields.visibility ?? "public",
      fork: fields.fork ?? false,
      parentId: fields.parentId ?? null,
      archived: fields.archived ?? false,
      disabled: fields.disabled ?? false,
      isTemplate: fields.isTemplate ?? false,
      hasIssues: fields.hasIssues ?? true,
      hasProjects: fields.hasProjects ?? true,
      hasWiki: fields.hasWiki ?? true,
      hasPages: fields.hasPages ?? false,
      hasDownloads: fields.hasDownloads ?? true,
      hasDiscussions: fields.hasDiscussions ?? false,
      allowForking: fields.allowForking ?? true,
      allowSquashMerge: fields.allowSquashMerge ?? true,
      allowMergeCommit: fields.allowMergeCommit ?? true,
      allowRebaseMerge: fields.allowRebaseMerge ?? true,
      allowAutoMerge: fields.allowAutoMerge ?? false,
      deleteBranchOnMerge: fields.deleteBranchOnMerge ?? false,
      allowUpdateBranch: fields.allowUpdateBranch ?? false,
      webCommitSignoffRequired: fields.webCommitSignoffRequired ?? false,
      defaultBranch: fields.defaultBranch ?? "main",
      topics: fields.topics ?? NONE,
      licenseKey: fields.licenseKey ?? null,
      stargazers: fields.stargazers ?? 0,
      forks: fields.forks ?? 0,
      subscribers: fields.subscribers ?? 0,
      size: fields.size ?? 0,
      createdAt,
      updatedAt: fields.updatedAt ?? createdAt,
      pushedAt: fields.pushedAt === undefined ? createdAt : fields.pushedAt,
      branches: fields.branches ?? new Map([[fields.defaultBranch ?? "main", this.newSha()]]),
      collaborators: fields.collaborators ?? new Map(),
      contributorIds: fields.contributorIds ?? new Set(),
      lastNumber: fields.lastNumber ?? 0,
      lastMilestoneNumber: fields.lastMilestoneNumber ?? 0,
      openIssues: 0,
      openPulls: 0,
      rows: {
        byNumber: [],
        issuesByCreated: new OrderedIndex<Issue>((row) => row.createdAt),
        issuesByUpdated: new OrderedIndex<Issue>((row) => row.updatedAt),
        pullsByCreated: new OrderedIndex<Issue>((row) => row.createdAt),
        commentsById: new OrderedIndex<Comment>((row) => row.id),
        commentsByUpdated: new OrderedIndex<Comment>((row) => row.updatedAt),
        reviewCommentsById: new OrderedIndex<ReviewComment>((row) => row.id),
        reviewCommentsByUpdated: new OrderedIndex<ReviewComment>((row) => row.updatedAt),
        labels: new Map(),
        milestones: new Map(),
        tombstones: new Map(),
        hooks: new Map(),
      },
      deleted: false,
    };
    this.#name(repository);
    this.repositories.set(repository.id, repository);
    this.lag.created(repository);
    return repository;
  }

  addLabel(fields: NewLabel): Label {
    const createdAt = fields.createdAt ?? this.now();
    const label: Label = {
      id: fields.id ?? this.nextId("label"),
      repository: fields.repository,
      name: fields.name,
      color: fields.color ?? "ededed",
      description: fields.description ?? null,
      isDefault: fields.isDefault ?? false,
      createdAt,
      updatedAt: fields.updatedAt ?? createdAt,
      deleted: false,
    };
    this.labels.set(label.id, label);
    label.repository.rows.labels.set(label.id, label);
    this.lag.created(label);
    return label;
  }

  /** Counters follow the issues that are added with this milestone. */
  addMilestone(fields: NewMilestone): Milestone {
    const { repository } = fields;
    const createdAt = fields.createdAt ?? this.now();
    const milestone: Milestone = {
      id: fields.id ?? this.nextId("milestone"),
      repository,
      number: fields.number ?? repository.lastMilestoneNumber + 1,
      title: fields.title,
      description: fields.description ?? null,
      state: fields.state ?? "open",
      creatorId: fields.creatorId === undefined ? repository.ownerId : fields.creatorId,
      openIssues: 0,
      closedIssues: 0,
      createdAt,
      updatedAt: fields.updatedAt ?? createdAt,
      closedAt: fields.closedAt ?? null,
      dueOn: fields.dueOn ?? null,
      deleted: false,
    };
    repository.lastMilestoneNumber = Math.max(repository.lastMilestoneNumber, milestone.number);
    this.milestones.set(milestone.id, milestone);
    repository.rows.milestones.set(milestone.id, milestone);
    this.lag.created(milestone);
    return milestone;
  }

  /** Counters of the repository and of the milestone follow. Throws when the number is in use. */
  addIssue(fields: NewIssue): Issue {
    const { repository } = fields;
    const number = fields.number ?? repository.lastNumber + 1;
    if (repository.rows.byNumber[number]) throw new Error(`#${number} is in use in ${this.fullName(repository)}`);
    const createdAt = fields.createdAt ?? this.now();
    const issue: Issue = {
      id: fields.id ?? this.nextId("issue"),
      repository,
      number,
      title: fields.title,
      body: fields.body ?? null,
      authorId: fields.authorId,
      state: fields.state ?? "open",
      stateReason: fields.stateReason ?? null,
      closedAt: fields.closedAt ?? null,
      closedById: fields.closedById ?? null,
      locked: fields.locked ?? false,
      lockReason: fields.lockReason ?? null,
      pinned: fields.pinned ?? false,
      assigneeIds: fields.assigneeIds?.length ? fields.assigneeIds : NONE,
      labelIds: fields.labelIds?.length ? fields.labelIds : NONE,
      milestoneId: fields.milestoneId ?? null,
      createdAt,
      updatedAt: fields.updatedAt ?? createdAt,
      editedAt: fields.editedAt ?? null,
      association: fields.association ?? null,
      reactions: fields.reactions ?? null,
      thread: NONE,
      commentsBeyond: fields.commentsBeyond ?? 0,
      pull: fields.pull ? this.#pull(fields.pull) : null,
      deleted: false,
    };
    this.issues.set(issue.id, issue);
    const { rows } = repository;
    // Holes are written out: an array with a gap would turn into a slow dictionary.
    while (rows.byNumber.length < number) rows.byNumber.push(undefined);
    rows.byNumber[number] = issue;
    repository.lastNumber = Math.max(repository.lastNumber, number);
    rows.issuesByCreated.add(issue);
    rows.issuesByUpdated.add(issue);
    if (isPull(issue)) {
      this.pulls.set(issue.pull.id, issue);
      rows.pullsByCreated.add(issue);
      if (issue.pull.mergedAt !== null && issue.authorId !== null) repository.contributorIds.add(issue.authorId);
    }
    this.countIssue(issue, 1);
    this.lag.created(issue);
    return issue;
  }

  #pull(fields: NewPull): Pull {
    return {
      id: fields.id ?? this.nextId("pull"),
      head: fields.head,
      base: fields.base,
      draft: fields.draft ?? false,
      mergedAt: fields.mergedAt ?? null,
      mergedById: fields.mergedById ?? null,
      mergeCommitSha: fields.mergeCommitSha ?? null,
      mergeable: fields.mergeable ?? true,
      mergeableKnownAt: fields.mergeableKnownAt ?? null,
      maintainerCanModify: fields.maintainerCanModify ?? false,
      requestedReviewerIds: fields.requestedReviewerIds ?? NONE,
      commits: fields.commits ?? 1,
      additions: fields.additions ?? 0,
      deletions: fields.deletions ?? 0,
      changedFiles: fields.changedFiles ?? 0,
      reviews: NONE,
      reviewComments: NONE,
    };
  }

  addComment(fields: NewComment): Comment {
    const { issue } = fields;
    const createdAt = fields.createdAt ?? this.now();
    const comment: Comment = {
      id: fields.id ?? this.nextId("comment"),
      issue,
      authorId: fields.authorId,
      body: fields.body,
      createdAt,
      updatedAt: fields.updatedAt ?? createdAt,
      association: fields.association ?? null,
      reactions: fields.reactions ?? null,
      deleted: false,
    };
    this.comments.set(comment.id, comment);
    issue.thread = inserted(issue.thread, comment);
    const { rows } = issue.repository;
    rows.commentsById.add(comment);
    rows.commentsByUpdated.add(comment);
    this.lag.created(comment);
    return comment;
  }

  addReview(fields: NewReview): Review {
    const { issue } = fields;
    const createdAt = fields.createdAt ?? this.now();
    const review: Review = {
      id: fields.id ?? this.nextId("review"),
      issue,
      authorId: fields.authorId,
      body: fields.body ?? "",
      state: fields.state,
      submittedAt: fields.submittedAt ?? (fields.state === "PENDING" ? null : createdAt),
      updatedAt: fields.updatedAt ?? createdAt,
      createdAt,
      commitId: fields.commitId === undefined ? issue.pull.head.sha : fields.commitId,
      association: fields.association ?? null,
      deleted: false,
    };
    this.reviews.set(review.id, review);
    issue.pull.reviews = inserted(issue.pull.reviews, review);
    this.lag.created(review);
    return review;
  }

  addReviewComment(fields: NewReviewComment): ReviewComment {
    const { issue } = fields;
    const createdAt = fields.createdAt ?? this.now();
    const line = fields.line === undefined ? 1 : fields.line;
    const position = fields.position === undefined ? 1 : fields.position;
    const comment: ReviewComment = {
      id: fields.id ?? this.nextId("reviewComment"),
      issue,
      reviewId: fields.reviewId ?? null,
      inReplyToId: fields.inReplyToId ?? null,
      authorId: fields.authorId,
      body: fields.body,
      path: fields.path,
      diffHunk: fields.diffHunk ?? "@@ -1 +1 @@",
      position,
      originalPosition: fields.originalPosition === undefined ? position : fields.originalPosition,
      line,
      originalLine: fields.originalLine === undefined ? line : fields.originalLine,
      startLine: fields.startLine ?? null,
      originalStartLine: fields.originalStartLine ?? null,
      side: fields.side ?? "RIGHT",
      startSide: fields.startSide ?? null,
      subjectType: fields.subjectType ?? "line",
      commitId: fields.commitId,
      originalCommitId: fields.originalCommitId ?? fields.commitId,
      createdAt,
      updatedAt: fields.updatedAt ?? createdAt,
      association: fields.association ?? null,
      reactions: fields.reactions ?? null,
      deleted: false,
    };
    this.reviewComments.set(comment.id, comment);
    issue.pull.reviewComments = inserted(issue.pull.reviewComments, comment);
    const { rows } = issue.repository;
    rows.reviewCommentsById.add(comment);
    rows.reviewCommentsByUpdated.add(comment);
    this.lag.created(comment);
    return comment;
  }

  addHook(fields: NewHook): Hook {
    const createdAt = fields.createdAt ?? this.now();
    const hook: Hook = {
      id: fields.id ?? this.nextId("hook"),
      repository: fields.repository,
      active: fields.active ?? true,
      events: fields.events ?? ["push"],
      url: fields.url,
      contentType: fields.contentType ?? "form",
      insecureSsl: fields.insecureSsl ?? "0",
      secret: fields.secret ?? null,
      createdAt,
      updatedAt: fields.updatedAt ?? createdAt,
      lastResponse: fields.lastResponse ?? { code: null, status: "unused", message: null },
      deleted: false,
    };
    this.hooks.set(hook.id, hook);
    hook.repository.rows.hooks.set(hook.id, hook);
    return hook;
  }

  /** Adds the issue to (1) or takes it from (-1) the counters its present state belongs to. */
  countIssue(issue: Issue, by: 1 | -1): void {
    if (issue.state === "open") {
      if (issue.pull) issue.repository.openPulls += by;
      else issue.repository.openIssues += by;
    }
    const milestone = issue.milestoneId === null ? undefined : this.milestones.get(issue.milestoneId);
    if (!milestone) return;
    this.changing(milestone);
    if (issue.state === "open") milestone.openIssues += by;
    else milestone.closedIssues += by;
  }
}

/** A pull request's row: narrows `pull`. */
export function isPull(issue: Issue): issue is PullIssue {
  return issue.pull !== null;
}

/** The `comments` counter of an issue. */
export function commentCount(issue: Issue): number {
  return issue.thread.length + issue.commentsBeyond;
}

/** A new array with the row at its place by id. */
function inserted<T extends { readonly id: number }>(rows: readonly T[], row: T): readonly T[] {
  const last = rows.at(-1);
  if (!last || last.id < row.id) return [...rows, row];
  return [...rows, row].sort((a, b) => a.id - b.id);
}
