/**
 * The truth of the simulated service, in memory: rows, lookups, ids, time, and the list of who listens to changes.
 *
 * `add…` methods put a finished row in place without rules or events: for worlds that are generated or loaded. Changes
 * as a person would make them are the functions in `changes/`: they change the truth, apply the service's rules for
 * `updated_at` and counters, and tell the event. All of them begin with `(world, by, …)`, `by` being a user's id.
 */
import { HARD_BUMPS, type UncertainBumps } from "./bumps.ts";
import type { Clock } from "./clock.ts";
import { Code } from "./code.ts";
import type { WorldEvent } from "./event.ts";
import { IssueEvents } from "./issue-events.ts";
import * as fresh from "./new-rows.ts";
import { type NodeKind, nodeId } from "./node-id.ts";
import { type Random, seededRandom } from "./random.ts";
import {
  type Comment,
  GHOST_ID,
  type Hook,
  type Issue,
  type IssueType,
  type Label,
  type Milestone,
  type PullIssue,
  type RecordedDocuments,
  type Repository,
  type Review,
  type ReviewComment,
  type Seconds,
  type Team,
  type User,
} from "./records.ts";
import { ReplicaLag, type Row } from "./replica-lag.ts";

/** What the service gives each organisation to begin with. */
const ISSUE_TYPES: readonly IssueType[] = [
  { id: 20_100_001, name: "Task", description: "A specific piece of work", color: "yellow", createdAt: 1_705_000_000 },
  { id: 20_100_002, name: "Bug", description: "An unexpected problem", color: "red", createdAt: 1_705_000_000 },
  { id: 20_100_003, name: "Feature", description: "A request or idea", color: "blue", createdAt: 1_705_000_000 },
];

export interface WorldOptions {
  readonly clock?: Clock;
  readonly seed?: number;
  /**
   * Objects created before this have node ids of the old form. Default: 2021-09-01, between the last old and the first
   * new id of a real history.
   */
  readonly legacyNodeIdsBefore?: Seconds;
  readonly bumps?: Partial<UncertainBumps>;
  /** How long after the first single read of an open pull request its `mergeable` becomes known. Default 2,000. */
  readonly mergeableDelayMs?: number;
}

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
  readonly issueTypes: readonly IssueType[] = ISSUE_TYPES;
  readonly comments = new Map<number, Comment>();
  readonly reviews = new Map<number, Review>();
  readonly reviewComments = new Map<number, ReviewComment>();
  readonly hooks = new Map<number, Hook>();
  readonly teams = new Map<number, Team>();
  readonly issueEvents = new IssueEvents();
  readonly code = new Code();
  /** By issue id: REST documents to serve as they were recorded, see `Snapshots`. */
  readonly recorded = new Map<number, RecordedDocuments>();

  readonly #logins = new Map<string, User>();
  readonly #names = new Map<string, Repository>();
  readonly #oldNames = new Map<string, Repository>();
  readonly #listeners = new Set<(event: WorldEvent) => void>();
  // Near the service's own figures of 2026: ids of issues, comments and deployments are past 2^31.
  readonly #lastIds: Record<fresh.IdKind, number> = {
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
    app: 1_100_000,
    installation: 50_000_000,
    checkSuite: 48_000_000_000,
    checkRun: 53_000_000_000,
    status: 38_000_000_000,
    release: 210_000_000,
    asset: 250_000_000,
    deployment: 2_900_000_000,
    deploymentStatus: 7_400_000_000,
    workflow: 190_000_000,
    workflowRun: 18_000_000_000,
    team: 9_000_000,
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

  nextId(kind: fresh.IdKind): number {
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

  /** Never fails: a deleted account is the ghost. */
  user(id: number): User {
    const user = this.users.get(id) ?? this.users.get(GHOST_ID);
    if (!user) throw new Error("This world has no ghost");
    return user;
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

  addUser(fields: fresh.NewUser): User {
    if (this.userByLogin(fields.login)) throw new Error(`The login ${fields.login} is taken`);
    const user = fresh.userRow(this, fields);
    this.users.set(user.id, user);
    this.#logins.set(user.login.toLowerCase(), user);
    return user;
  }

  addRepository(fields: fresh.NewRepository): Repository {
    const repository = fresh.repositoryRow(this, fields);
    this.#name(repository);
    this.repositories.set(repository.id, repository);
    this.lag.created(repository);
    return repository;
  }

  addLabel(fields: fresh.NewLabel): Label {
    const label = fresh.labelRow(this, fields);
    this.labels.set(label.id, label);
    label.repository.rows.labels.set(label.id, label);
    this.lag.created(label);
    return label;
  }

  /** Counters follow the issues that are added with this milestone. */
  addMilestone(fields: fresh.NewMilestone): Milestone {
    const { repository } = fields;
    const milestone = fresh.milestoneRow(this, fields);
    repository.lastMilestoneNumber = Math.max(repository.lastMilestoneNumber, milestone.number);
    this.milestones.set(milestone.id, milestone);
    repository.rows.milestones.set(milestone.id, milestone);
    this.lag.created(milestone);
    return milestone;
  }

  /** Counters of the repository and of the milestone follow. Throws when the number is in use. */
  addIssue(fields: fresh.NewIssue & { readonly pull: fresh.NewPull }): PullIssue;
  addIssue(fields: fresh.NewIssue): Issue;
  addIssue(fields: fresh.NewIssue): Issue {
    const { repository } = fields;
    const number = fields.number ?? repository.lastNumber + 1;
    if (repository.rows.byNumber[number]) throw new Error(`#${number} is in use in ${this.fullName(repository)}`);
    const issue = fresh.issueRow(this, fields);
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

  /** An open issue becomes a pull request. */
  becomePull(issue: Issue, fields: fresh.NewPull): PullIssue {
    this.countIssue(issue, -1);
    issue.pull = fresh.pullPart(this, fields);
    this.countIssue(issue, 1);
    if (!isPull(issue)) throw new Error("An issue is no pull request after it became one");
    this.pulls.set(issue.pull.id, issue);
    issue.repository.rows.pullsByCreated.add(issue);
    return issue;
  }

  addComment(fields: fresh.NewComment): Comment {
    const { issue } = fields;
    const comment = fresh.commentRow(this, fields);
    this.comments.set(comment.id, comment);
    issue.thread = inserted(issue.thread, comment);
    const { rows } = issue.repository;
    rows.commentsById.add(comment);
    rows.commentsByUpdated.add(comment);
    this.lag.created(comment);
    return comment;
  }

  addReview(fields: fresh.NewReview): Review {
    const { issue } = fields;
    const review = fresh.reviewRow(this, fields);
    this.reviews.set(review.id, review);
    issue.pull.reviews = inserted(issue.pull.reviews, review);
    this.lag.created(review);
    return review;
  }

  addReviewComment(fields: fresh.NewReviewComment): ReviewComment {
    const { issue } = fields;
    const comment = fresh.reviewCommentRow(this, fields);
    this.reviewComments.set(comment.id, comment);
    issue.pull.reviewComments = inserted(issue.pull.reviewComments, comment);
    const { rows } = issue.repository;
    rows.reviewCommentsById.add(comment);
    rows.reviewCommentsByUpdated.add(comment);
    this.lag.created(comment);
    return comment;
  }

  addHook(fields: fresh.NewHook): Hook {
    const hook = fresh.hookRow(this, fields);
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
