/**
 * Loads an archive of a real repository into a world. The archive speaks GraphQL (as i-d-template's archive tool wrote
 * it): `{magic, timestamp, repo, labels, issues, pulls}`.
 *
 * Ids of issues, pull requests, reviews and the repository are decoded from the archive's node ids. Values that the
 * archive lacks are invented, the same way each time: ids of people, labels and comments (in the order of time),
 * issue-side ids of pull requests, file and hunk of review comments, and the rest of abbreviated commit ids.
 */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { gunzipSync } from "node:zlib";
import { isJsonObject } from "../world/json.ts";
import type { NewPull } from "../world/new-rows.ts";
import { type NodeKind, parseNodeId } from "../world/node-id.ts";
import type { Association, Issue, PullIssue, Repository, ReviewState, Seconds, User } from "../world/records.ts";
import { isPull, type World } from "../world/world.ts";

interface ArchivedComment {
  readonly author: string | null;
  readonly authorAssociation: Association;
  readonly body: string;
  readonly createdAt: string;
  readonly updatedAt: string;
}

interface ArchivedIssue extends ArchivedComment {
  readonly id: string;
  readonly number: number;
  readonly title: string;
  readonly state: "OPEN" | "CLOSED" | "MERGED";
  readonly assignees: readonly string[];
  readonly labels: readonly string[];
  readonly closedAt: string | null;
  readonly comments: readonly ArchivedComment[];
}

interface ArchivedPull extends ArchivedIssue {
  readonly baseRefName: string;
  readonly baseRefOid: string;
  readonly headRepository: string | null;
  readonly headRefName: string;
  readonly headRefOid: string;
  readonly mergedAt: string | null;
  readonly mergedBy: string | null;
  readonly mergeCommit: { readonly oid: string } | null;
  readonly reviews: readonly ArchivedReview[];
}

interface ArchivedReview extends ArchivedComment {
  readonly id: string;
  readonly state: ReviewState;
  readonly commit: { readonly abbreviatedOid: string } | null;
  readonly comments: readonly ArchivedReviewComment[];
}

interface ArchivedReviewComment {
  readonly originalPosition: number;
  readonly body: string;
  readonly createdAt: string;
  readonly updatedAt: string;
}

interface Archive {
  readonly repo: string;
  readonly labels: readonly { readonly name: string; readonly description: string | null; readonly color: string }[];
  readonly issues: readonly ArchivedIssue[];
  readonly pulls: readonly ArchivedPull[];
}

export interface LoadedHistory {
  readonly repository: Repository;
  readonly issues: number;
  readonly pulls: number;
  readonly comments: number;
  readonly reviews: number;
  readonly reviewComments: number;
  readonly people: number;
}

/**
 * Reads a `.json` or `.json.gz` file. Throws when it is not such an archive, or its repository is in the world already.
 */
export async function loadHistory(world: World, file: string): Promise<LoadedHistory> {
  return loadArchive(world, parseArchive(await readJson(file), file));
}

/** A JSON file, gzipped when its name says so. */
export async function readJson(file: string): Promise<unknown> {
  const bytes = await readFile(file);
  return JSON.parse((file.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString("utf8"));
}

function parseArchive(value: unknown, file: string): Archive {
  if (!isArchive(value))
    throw new Error(`${file} is no archive of a repository: it should hold {repo, labels, issues, pulls}`);
  return value;
}

function isArchive(value: unknown): value is Archive {
  return (
    isJsonObject(value) && typeof value.repo === "string" && Array.isArray(value.issues) && Array.isArray(value.pulls)
  );
}

function loadArchive(world: World, archive: Archive): LoadedHistory {
  const [ownerLogin = "", name = ""] = archive.repo.split("/");
  if (world.repositoryByName(ownerLogin, name)) throw new Error(`${archive.repo} is in this world already`);
  const rows = [...archive.issues, ...archive.pulls].sort((a, b) => a.number - b.number);
  const usersBefore = world.users.size;
  const begin = seconds(rows[0]?.createdAt ?? "2008-01-01T00:00:00Z");
  const people = new People(world, begin);
  const owner = people.named(ownerLogin, "Organization");
  const repository = world.addRepository({
    ...repositoryId(archive),
    ownerId: owner.id,
    name,
    defaultBranch: mostFrequent(archive.pulls.map((pull) => pull.baseRefName)) ?? "main",
    createdAt: begin,
    updatedAt: Math.max(begin, ...rows.map((row) => seconds(row.updatedAt))),
  });
  const labelIds = new Map(
    archive.labels.map((label) => [label.name, world.addLabel({ ...label, repository, createdAt: begin }).id]),
  );

  const forks = new Map<string, Repository>([[archive.repo, repository]]);
  const issues = new Map<ArchivedIssue, Issue>();
  for (const row of rows) issues.set(row, addIssue(world, repository, people, labelIds, forks, row));

  // Ids of comments grow with time across the repository, as the service's do.
  const comments = rows.flatMap((row) => row.comments.map((comment) => ({ row, comment })));
  comments.sort((a, b) => seconds(a.comment.createdAt) - seconds(b.comment.createdAt));
  for (const { row, comment } of comments) {
    world.addComment({ issue: loaded(issues, row), ...written(people, comment), body: comment.body });
  }
  const reviewComments = addReviews(world, people, archive.pulls, issues);
  return {
    repository,
    issues: archive.issues.length,
    pulls: archive.pulls.length,
    comments: comments.length,
    reviews: archive.pulls.reduce((sum, pull) => sum + pull.reviews.length, 0),
    reviewComments,
    people: world.users.size - usersBefore,
  };
}

function addIssue(
  world: World,
  repository: Repository,
  people: People,
  labelIds: ReadonlyMap<string, number>,
  forks: Map<string, Repository>,
  row: ArchivedIssue | ArchivedPull,
): Issue {
  const asPull = "headRefName" in row;
  const shared = {
    repository,
    number: row.number,
    title: row.title,
    // Empty in GraphQL is null in REST.
    body: row.body === "" ? null : row.body,
    ...written(people, row),
    state: row.state === "OPEN" ? ("open" as const) : ("closed" as const),
    closedAt: row.closedAt === null ? null : seconds(row.closedAt),
    labelIds: row.labels.flatMap((label) => labelIds.get(label) ?? []),
    assigneeIds: row.assignees.map((login) => people.named(login).id),
  };
  if (!asPull) return world.addIssue({ ...shared, id: decode(row.id, "Issue") });
  const mergedById = row.mergedBy === null ? null : people.named(row.mergedBy).id;
  return world.addIssue({
    ...shared,
    closedById: mergedById,
    pull: pullOf(world, repository, people, forks, row, mergedById),
  });
}

function pullOf(
  world: World,
  repository: Repository,
  people: People,
  forks: Map<string, Repository>,
  row: ArchivedPull,
  mergedById: number | null,
): NewPull {
  const owner = world.user(repository.ownerId);
  const head = row.headRepository === null ? null : forkNamed(world, repository, people, forks, row.headRepository);
  const headOwner = head ? world.user(head.ownerId) : null;
  return {
    id: decode(row.id, "PullRequest"),
    head: {
      ref: row.headRefName,
      sha: row.headRefOid,
      label: `${headOwner?.login ?? "unknown"}:${row.headRefName}`,
      userId: headOwner?.id ?? null,
      repositoryId: head?.id ?? null,
    },
    base: {
      ref: row.baseRefName,
      sha: row.baseRefOid,
      label: `${owner.login}:${row.baseRefName}`,
      userId: owner.id,
      repositoryId: repository.id,
    },
    mergedAt: row.mergedAt === null ? null : seconds(row.mergedAt),
    mergedById,
    mergeCommitSha: row.mergeCommit?.oid ?? null,
  };
}

function forkNamed(
  world: World,
  parent: Repository,
  people: People,
  forks: Map<string, Repository>,
  fullName: string,
): Repository {
  const known = forks.get(fullName);
  if (known) return known;
  const [login = "", name = ""] = fullName.split("/");
  const owner = people.named(login);
  const fork =
    world.repositoryByName(owner.login, name)?.repository ??
    world.addRepository({
      ownerId: owner.id,
      name,
      fork: true,
      parentId: parent.id,
      hasIssues: false,
      createdAt: parent.createdAt,
    });
  forks.set(fullName, fork);
  return fork;
}

function addReviews(
  world: World,
  people: People,
  pulls: readonly ArchivedPull[],
  issues: ReadonlyMap<ArchivedIssue, Issue>,
): number {
  const said: {
    readonly issue: PullIssue;
    readonly review: ArchivedReview;
    readonly reviewId: number;
    readonly comment: ArchivedReviewComment;
  }[] = [];
  for (const pull of pulls) {
    const issue = loaded(issues, pull);
    if (!isPull(issue)) throw new Error(`#${pull.number} is no pull request`);
    for (const review of pull.reviews) {
      const reviewId = decode(review.id, "PullRequestReview");
      world.addReview({
        id: reviewId,
        issue,
        ...written(people, review),
        body: review.body,
        state: review.state,
        commitId: review.commit ? wholeSha(review.commit.abbreviatedOid, issue) : null,
      });
      for (const comment of review.comments) said.push({ issue, review, reviewId, comment });
    }
  }
  said.sort((a, b) => seconds(a.comment.createdAt) - seconds(b.comment.createdAt));
  for (const { issue, review, reviewId, comment } of said) {
    world.addReviewComment({
      issue,
      reviewId,
      ...written(people, { ...review, createdAt: comment.createdAt, updatedAt: comment.updatedAt }),
      body: comment.body,
      path: "draft.md",
      position: null,
      originalPosition: comment.originalPosition,
      line: null,
      originalLine: comment.originalPosition,
      commitId: issue.pull.head.sha,
    });
  }
  return said.length;
}

function written(people: People, row: Omit<ArchivedComment, "body">) {
  return {
    authorId: row.author === null ? null : people.named(row.author).id,
    association: row.authorAssociation,
    createdAt: seconds(row.createdAt),
    updatedAt: seconds(row.updatedAt),
  };
}

/** Accounts by login, made when first named. */
function loaded(issues: ReadonlyMap<ArchivedIssue, Issue>, row: ArchivedIssue): Issue {
  const issue = issues.get(row);
  if (!issue) throw new Error(`#${row.number} was not loaded`);
  return issue;
}

class People {
  readonly #world: World;
  readonly #createdAt: Seconds;

  constructor(world: World, createdAt: Seconds) {
    this.#world = world;
    this.#createdAt = createdAt;
  }

  named(login: string, type: User["type"] = "User"): User {
    return this.#world.userByLogin(login) ?? this.#world.addUser({ login, type, createdAt: this.#createdAt });
  }
}

/** New node ids carry the repository's own id. */
function repositoryId(archive: Archive): { id?: number } {
  for (const row of archive.issues) {
    if (!row.id.includes("_")) continue;
    const bytes = Buffer.from(row.id.slice(row.id.indexOf("_") + 1), "base64url");
    // [0, repository id as uint32, id]: the array's head, zero, the tag of a uint32.
    if (bytes[0] === 0x93 && bytes[1] === 0 && bytes[2] === 0xce) return { id: bytes.readUInt32BE(3) };
  }
  return {};
}

function decode(text: string, kind: NodeKind): number {
  const parsed = parseNodeId(text);
  if (parsed?.kind !== kind) throw new Error(`Not the node id of a ${kind}: ${text}`);
  return parsed.id;
}

/** The archive cuts commit ids to seven digits; where they begin the head's, it is the head. */
function wholeSha(abbreviated: string, issue: PullIssue): string {
  if (issue.pull.head.sha.startsWith(abbreviated)) return issue.pull.head.sha;
  return abbreviated + createHash("sha1").update(abbreviated).digest("hex").slice(abbreviated.length);
}

function mostFrequent(names: readonly string[]): string | undefined {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0];
}

function seconds(time: string): Seconds {
  const ms = Date.parse(time);
  if (Number.isNaN(ms)) throw new Error(`Not a time: ${time}`);
  return ms / 1_000;
}
