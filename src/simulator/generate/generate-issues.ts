/** Issues and pull requests of a generated world, and what is said under them. */
import * as faker from "../world/faker.ts";
import type { Random } from "../world/random.ts";
import {
  GHOST_ID,
  type Issue,
  type Label,
  type Milestone,
  type PullIssue,
  type Repository,
  type ReviewState,
  type Seconds,
  type User,
} from "../world/records.ts";
import type { World } from "../world/world.ts";

const DAY = 86_400;

export interface TalkOptions {
  /** Mean number of comments of an issue; few have many. Default 2. */
  readonly commentsPerIssue?: number;
  /** Mean number of reviews of a pull request. Default 1. */
  readonly reviewsPerPull?: number;
  /** NUL and lone surrogates in bodies, which the service really sends. Default true. */
  readonly brokenText?: boolean;
}

export interface People {
  readonly all: readonly User[];
  readonly logins: readonly string[];
  readonly bots: readonly User[];
  readonly organization: User;
}

/** One thing said or done under an issue, put in place in the order of time so that ids grow with it. */
export interface Remark {
  readonly issue: Issue;
  readonly at: Seconds;
}

/** Where issues are put, and what they can refer to. */
export interface Stage {
  readonly world: World;
  readonly random: Random;
  readonly people: People;
  readonly repository: Repository;
  readonly labels: readonly Label[];
  readonly milestones: readonly Milestone[];
  readonly forks: readonly Repository[];
  readonly options: TalkOptions;
  readonly until: Seconds;
}

/** Few threads are long: the bound is large, the mean is `mean`. */
function heavyTail(random: Random, mean: number): number {
  if (mean <= 0) return 0;
  const roll = random.next();
  if (roll < 0.35) return 0;
  // Pareto with exponent 2 has twice its scale as mean; two thirds of the threads carry the whole mean.
  const scale = (mean / 0.65 + 0.5) / 1.7;
  return Math.min(Math.floor(mean * 200), Math.floor(scale / Math.sqrt(1 - random.next()) - scale * 0.3));
}

export function addIssue(
  stage: Stage,
  createdAt: Seconds,
  asPull: boolean,
  remarks: Remark[],
  reviews: Remark[],
): void {
  const { world, random, people, repository, labels, milestones, options, until } = stage;
  const number = repository.lastNumber + 1;
  const kind = number % 41; // Every nasty case comes round, also in a small world.
  const bot = random.chance(0.04);
  const author = kind === 7 ? GHOST_ID : bot ? random.pick(people.bots).id : random.pick(people.all).id;
  const room = Math.max(1, until - createdAt);
  const within = (share: number) => createdAt + Math.min(room, Math.floor(room * share * random.next() ** 3));

  const closed = random.chance(0.7);
  const closedAt = closed ? within(0.8) : null;
  const talks = Array.from({ length: heavyTail(random, options.commentsPerIssue ?? 2) }, () => within(0.9));
  const verdicts = asPull
    ? Array.from({ length: heavyTail(random, options.reviewsPerPull ?? 1) }, () => within(0.5))
    : [];
  const edited = random.chance(0.15) ? within(0.3) : null;
  let updatedAt = Math.max(createdAt, closedAt ?? 0, edited ?? 0);
  for (const at of talks) if (at > updatedAt) updatedAt = at;
  for (const at of verdicts) if (at > updatedAt) updatedAt = at;
  // A bot went through the old ones in one second: many rows share one `updated_at`.
  if (kind % 6 === 1) updatedAt = Math.max(updatedAt, until - (1 + (Math.floor(number / 400) % 40)) * DAY);

  const labelIds = random.chance(0.6)
    ? [...new Set(Array.from({ length: random.int(1, 4) }, () => random.pick(labels).id))]
    : [];
  const assigneeIds = random.chance(0.3)
    ? [...new Set(Array.from({ length: random.int(1, 3) }, () => random.pick(people.all).id))]
    : [];
  const issue = world.addIssue({
    repository,
    number,
    title: kind === 11 ? `  ${faker.title(random)} ` : faker.title(random),
    body: bodyOf(stage, kind, number),
    authorId: author,
    state: closed ? "closed" : "open",
    stateReason: asPull
      ? null
      : closed
        ? random.pick(["completed", "completed", "completed", "not_planned", "duplicate", null] as const)
        : random.chance(0.05)
          ? "reopened"
          : null,
    closedAt,
    closedById: closed ? (kind === 12 ? GHOST_ID : random.chance(0.4) ? author : random.pick(people.all).id) : null,
    locked: kind === 13,
    lockReason: kind === 13 ? (faker.LOCK_REASONS[Math.floor(number / 41) % faker.LOCK_REASONS.length] ?? null) : null,
    pinned: !asPull && number <= 2,
    assigneeIds,
    labelIds,
    milestoneId: random.chance(0.2) ? random.pick(milestones).id : null,
    createdAt,
    updatedAt,
    editedAt: edited,
    reactions: random.chance(0.1) ? { "+1": random.int(1, 40), heart: random.int(0, 3) } : null,
    ...(asPull ? { pull: pullOf(stage, kind, closedAt, author) } : {}),
  });
  for (const at of talks) remarks.push({ issue, at });
  for (const at of verdicts) reviews.push({ issue, at });
}

function bodyOf(stage: Stage, kind: number, number: number): string | null {
  const { random, people, options } = stage;
  if (kind === 3 || random.chance(0.05)) return null;
  const text = faker.body(random, { logins: people.logins, lastNumber: number - 1 });
  switch (kind) {
    case 5:
      return options.brokenText === false ? text : [text, "\n\nraw bytes: \u0000\u0000\u0001 end"].join("");
    case 17:
      // Half an emoji: what is left when a form cuts text in the middle of one.
      return options.brokenText === false || number % 82 === 17
        ? [text, " 👩‍👩‍👧‍👦 𝕿𝖆𝖎𝖓"].join("")
        : [text, " \ud83d"].join("");
    case 19:
      return [text.replaceAll("\n", "\r\n"), "\r\n"].join("");
    case 23:
      return number % 205 === 23
        ? Array.from({ length: 60 }, () => text)
            .join("\n\n---\n\n")
            .slice(0, 65_536)
        : `${text} 🎉`;
    default:
      return text;
  }
}

function pullOf(stage: Stage, kind: number, closedAt: Seconds | null, authorId: number) {
  const { world, random, repository, forks } = stage;
  const merged = closedAt !== null && random.chance(0.8);
  const owner = world.user(repository.ownerId);
  const base = {
    ref: random.chance(0.9) ? repository.defaultBranch : "release/1.x",
    sha: world.newSha(),
    userId: owner.id,
    repositoryId: repository.id,
  };
  const fork = forks.length > 0 && random.chance(0.5) ? random.pick(forks) : repository;
  const gone = kind === 9 || random.chance(0.05);
  const ghost = kind === 9 && authorId % 2 === 0;
  const headOwner = world.user(fork.ownerId);
  const ref = faker.branchName(random);
  return {
    head: {
      ref,
      sha: world.newSha(),
      label: gone ? `unknown:${ref}` : `${headOwner.login}:${ref}`,
      userId: gone ? (ghost ? null : authorId) : headOwner.id,
      repositoryId: gone ? null : fork.id,
    },
    base: { ...base, label: `${owner.login}:${base.ref}` },
    draft: closedAt === null ? random.chance(0.15) : random.chance(0.02),
    mergedAt: merged ? closedAt : null,
    mergedById: merged ? (random.chance(0.05) ? GHOST_ID : random.pick(stage.people.all).id) : null,
    mergeCommitSha: merged || closedAt === null ? world.newSha() : null,
    mergeable: random.chance(0.9),
    maintainerCanModify: random.chance(0.6),
    requestedReviewerIds: closedAt === null && random.chance(0.4) ? [random.pick(stage.people.all).id] : [],
    commits: random.int(1, 12),
    additions: Math.floor(10 ** (random.next() * 3.5)),
    deletions: Math.floor(10 ** (random.next() * 3)),
    changedFiles: random.int(1, 40),
  };
}

function someone(stage: Stage): number {
  const { random, people } = stage;
  return random.chance(0.01)
    ? GHOST_ID
    : random.chance(0.04)
      ? random.pick(people.bots).id
      : random.pick(people.all).id;
}

export function addComment(stage: Stage, issue: Issue, at: Seconds): void {
  const { world, random, people } = stage;
  const edited = random.chance(0.08);
  world.addComment({
    issue,
    authorId: someone(stage),
    body: faker.reply(random, { logins: people.logins, lastNumber: issue.number - 1 }),
    createdAt: at,
    // Some edits come much later, and do not move the issue.
    updatedAt: edited ? at + random.int(1, Math.max(1, Math.min(stage.until - at, 40 * DAY))) : at,
    reactions: random.chance(0.05) ? { "+1": random.int(1, 12), rocket: 1 } : null,
  });
}

const REVIEW_STATES: readonly ReviewState[] = [
  "APPROVED",
  "APPROVED",
  "COMMENTED",
  "COMMENTED",
  "COMMENTED",
  "CHANGES_REQUESTED",
  "DISMISSED",
  "PENDING",
];

export function addReview(stage: Stage, issue: PullIssue, at: Seconds): void {
  const { world, random, people } = stage;
  const state = random.pick(REVIEW_STATES);
  const authorId = someone(stage);
  const review = world.addReview({
    issue,
    authorId,
    state,
    body: random.chance(0.5) ? "" : faker.reply(random, { logins: people.logins, lastNumber: issue.number - 1 }),
    createdAt: at,
    submittedAt: state === "PENDING" ? null : at,
  });
  if (state === "PENDING") return; // Only its author sees a pending review's comments.
  for (let note = random.int(0, 3); note > 0; note--) {
    const line = random.int(1, 400);
    const outdated = random.chance(0.2);
    const first = world.addReviewComment({
      issue,
      reviewId: review.id,
      authorId: random.chance(0.02) ? null : authorId,
      body: faker.reviewNote(random),
      path: faker.filePath(random),
      diffHunk: `@@ -${line},7 +${line},8 @@ function drain(pool) {\n   const open = pool.size;\n-  return open;\n+  return open - pool.idle;`,
      position: outdated ? null : random.int(1, 40),
      originalPosition: random.int(1, 40),
      line: outdated ? null : line,
      originalLine: line,
      commitId: issue.pull.head.sha,
      createdAt: at,
      updatedAt: random.chance(0.1) ? at + random.int(60, DAY) : at,
    });
    for (let replies = random.chance(0.4) ? random.int(1, 3) : 0; replies > 0; replies--) {
      world.addReviewComment({
        issue,
        reviewId: review.id,
        inReplyToId: first.id,
        authorId: someone(stage),
        body: faker.reviewNote(random),
        path: first.path,
        diffHunk: first.diffHunk,
        position: first.position,
        originalPosition: first.originalPosition,
        line: first.line,
        originalLine: first.originalLine,
        commitId: first.commitId,
        createdAt: at,
      });
    }
  }
}
