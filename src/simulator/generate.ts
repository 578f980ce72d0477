/**
 * Fills a world from a seed: any size, believable text, and every nasty case that a mirror must survive. Rows are put
 * in place as they are: no rules, no events, no webhooks.
 *
 * The result is a function of the world's own seed (ids, shas), of `seed` and of `until`.
 */
import * as faker from "./faker.ts";
import { type Random, seededRandom } from "./random.ts";
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
} from "./records.ts";
import { isPull, type World } from "./world.ts";

export interface GenerateOptions {
  readonly seed: number;
  /** How many repositories (forks come on top). At least 1. */
  readonly repositories: number;
  /** Issues in all repositories together; the first repository gets about half of them. */
  readonly issues: number;
  /** Pull requests in all repositories together. Default: half as many as issues. */
  readonly pulls?: number;
  /** Mean number of comments of an issue; few have many. Default 2. */
  readonly commentsPerIssue?: number;
  /** Mean number of reviews of a pull request. Default 1. */
  readonly reviewsPerPull?: number;
  /** How many people there are. Default: grows slowly with the number of issues. */
  readonly people?: number;
  /** Login of the organisation that owns the first repository. Default `octo-works`. */
  readonly organization?: string;
  /** NUL and lone surrogates in bodies, which the service really sends. Default true. */
  readonly brokenText?: boolean;
  /** The last moment of the history, in seconds. Default: the world's now. */
  readonly until?: Seconds;
}

export interface Generated {
  /** Without forks, in the order made: the first is the busiest. */
  readonly repositories: readonly Repository[];
  readonly issues: number;
  readonly pulls: number;
  readonly comments: number;
}

const DAY = 86_400;
const YEARS = 365 * DAY;

interface People {
  readonly all: readonly User[];
  readonly logins: readonly string[];
  readonly bots: readonly User[];
  readonly organization: User;
}

/** One thing said or done under an issue, put in place in the order of time so that ids grow with it. */
interface Remark {
  readonly issue: Issue;
  readonly at: Seconds;
}

export function generateWorld(world: World, options: GenerateOptions): Generated {
  for (const [name, least] of [
    ["repositories", 1],
    ["issues", 0],
    ["pulls", 0],
    ["commentsPerIssue", 0],
    ["reviewsPerPull", 0],
  ] as const) {
    const value = options[name];
    if (value !== undefined && !(value >= least))
      throw new RangeError(`${name} must be at least ${least}, not ${value}`);
  }
  const random = seededRandom(options.seed);
  const until = options.until ?? world.now();
  const pulls = options.pulls ?? Math.floor(options.issues / 2);
  const people = addPeople(world, random, options, until);
  const repositories: Repository[] = [];
  const before = { issues: world.issues.size, pulls: world.pulls.size, comments: world.comments.size };

  const shares = sharesOf(options.repositories);
  let issuesLeft = options.issues;
  let pullsLeft = pulls;
  for (let at = 0; at < options.repositories; at++) {
    const last = at === options.repositories - 1;
    const issues = last ? issuesLeft : Math.min(issuesLeft, Math.round(options.issues * (shares[at] as number)));
    const ownPulls = last ? pullsLeft : Math.min(pullsLeft, Math.round(pulls * (shares[at] as number)));
    issuesLeft -= issues;
    pullsLeft -= ownPulls;
    const repository = addRepository(world, random, people, at, options.repositories, until);
    repositories.push(repository);
    fillRepository(world, random, people, repository, { issues, pulls: ownPulls }, options, until);
    // Archived only once it is full: nothing happens in it afterwards.
    if (at === 3) repository.archived = true;
  }
  return {
    repositories,
    issues: world.issues.size - before.issues - (world.pulls.size - before.pulls),
    pulls: world.pulls.size - before.pulls,
    comments: world.comments.size - before.comments,
  };
}

/** Shares that add up to 1: half for the first, the rest falling off. */
function sharesOf(count: number): readonly number[] {
  const weights = Array.from({ length: count }, (_, at) => 1 / (at + 1) ** 1.3);
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => weight / sum);
}

function addPeople(world: World, random: Random, options: GenerateOptions, until: Seconds): People {
  const count = options.people ?? Math.min(20_000, 12 + Math.ceil(Math.sqrt(options.issues)) * 3);
  const all: User[] = [];
  while (all.length < count) {
    const login = faker.login(random);
    const free = world.userByLogin(login) ? `${login}-${all.length}` : login;
    all.push(
      world.addUser({
        login: free,
        name: random.chance(0.7) ? faker.personName(random) : null,
        company: random.chance(0.2) ? "@octo-works" : null,
        location: random.chance(0.3)
          ? random.pick(["Zürich", "Oslo", "大阪", "São Paulo", "Accra", "Portland, OR"])
          : null,
        siteAdmin: random.chance(0.01),
        createdAt: until - random.int(8 * YEARS, 14 * YEARS),
      }),
    );
  }
  const bots = ["dependabot[bot]", "octo-ci[bot]"].map(
    (login) => world.userByLogin(login) ?? world.addUser({ login, type: "Bot", createdAt: until - 8 * YEARS }),
  );
  const organizationLogin = options.organization ?? "octo-works";
  const organization =
    world.userByLogin(organizationLogin) ??
    world.addUser({
      login: organizationLogin,
      type: "Organization",
      name: "Octo Works",
      createdAt: until - 9 * YEARS,
      memberIds: all.slice(0, Math.min(8, all.length)).map((user) => user.id),
    });
  return { all, logins: all.map((user) => user.login), bots, organization };
}

/** The second was renamed, the third is private, the fourth archived (it becomes so once full); the others vary. */
function addRepository(
  world: World,
  random: Random,
  people: People,
  at: number,
  count: number,
  until: Seconds,
): Repository {
  const owner = at % 3 === 1 && count > 1 ? random.pick(people.all) : people.organization;
  let name = faker.repositoryName(random);
  while (world.repositoryByName(owner.login, name)) name = `${name}-${random.int(2, 999)}`;
  const createdAt = until - random.int(3 * YEARS, 7 * YEARS);
  const repository = world.addRepository({
    ownerId: owner.id,
    name,
    description: random.chance(0.9) ? faker.repositoryDescription(random) : null,
    homepage: random.pick([null, "", "https://example.org/docs"]),
    language: random.pick(["TypeScript", "Go", "Rust", "Python", "C++", "Jupyter Notebook", null]),
    visibility: at === 2 || (at > 3 && random.chance(0.15)) ? "private" : "public",
    topics: random.chance(0.5) ? ["tooling", random.pick(["http", "database", "parser"])] : [],
    licenseKey: random.pick(["mit", "apache-2.0", null]),
    stargazers: Math.floor(10 ** (random.next() * 4.5)),
    subscribers: random.int(1, 300),
    forks: random.int(0, 900),
    size: random.int(12, 400_000),
    defaultBranch: random.chance(0.8) ? "main" : "master",
    createdAt,
    updatedAt: until - random.int(0, 20 * DAY),
    pushedAt: until - random.int(0, 5 * DAY),
  });
  if (at === 1) {
    const oldName = world.fullName(repository);
    repository.name = `${name}-ng`;
    world.renamed(repository, oldName);
  }
  return repository;
}

function fillRepository(
  world: World,
  random: Random,
  people: People,
  repository: Repository,
  wanted: { readonly issues: number; readonly pulls: number },
  options: GenerateOptions,
  until: Seconds,
): void {
  const labels = faker.LABELS.map((label) => world.addLabel({ ...label, repository, createdAt: repository.createdAt }));
  const milestones = addMilestones(world, random, people, repository, until);
  const forks = wanted.pulls > 0 ? addForks(world, random, people, repository) : [];
  const context: Context = { world, random, people, repository, labels, milestones, forks, options, until };

  const total = wanted.issues + wanted.pulls;
  const remarks: Remark[] = [];
  const reviews: Remark[] = [];
  let issuesLeft = wanted.issues;
  let pullsLeft = wanted.pulls;
  let createdAt = repository.createdAt;
  for (let done = 0; done < total; done++) {
    // Bursts and quiet times, always forward, never beyond the end.
    const mean = (until - createdAt) / (total - done + 1);
    createdAt += Math.floor(mean * random.next() ** 2 * 2);
    const asPull = random.next() * (issuesLeft + pullsLeft) < pullsLeft;
    if (asPull) pullsLeft -= 1;
    else issuesLeft -= 1;
    addIssue(context, createdAt, asPull, remarks, reviews);
  }

  remarks.sort((a, b) => a.at - b.at);
  for (const { issue, at } of remarks) addComment(context, issue, at);
  reviews.sort((a, b) => a.at - b.at);
  for (const { issue, at } of reviews) if (isPull(issue)) addReview(context, issue, at);
}

interface Context {
  readonly world: World;
  readonly random: Random;
  readonly people: People;
  readonly repository: Repository;
  readonly labels: readonly Label[];
  readonly milestones: readonly Milestone[];
  readonly forks: readonly Repository[];
  readonly options: GenerateOptions;
  readonly until: Seconds;
}

function addMilestones(
  world: World,
  random: Random,
  people: People,
  repository: Repository,
  until: Seconds,
): Milestone[] {
  return faker.MILESTONE_TITLES.slice(0, random.int(3, faker.MILESTONE_TITLES.length)).map((title, at) => {
    const createdAt = repository.createdAt + at * 90 * DAY;
    const closed = at < 2;
    return world.addMilestone({
      repository,
      title,
      description: random.pick([null, "", "Everything that must be in.\r\n\r\nNothing else.", "See the board ✨"]),
      creatorId: random.chance(0.1) ? GHOST_ID : random.pick(people.all).id,
      state: closed ? "closed" : "open",
      createdAt,
      updatedAt: Math.min(until, createdAt + 120 * DAY),
      closedAt: closed ? Math.min(until, createdAt + 120 * DAY) : null,
      // GitHub stores due dates as midnight Pacific time; past, future and none all occur.
      dueOn: random.chance(0.7) ? Math.floor((createdAt + random.int(60, 900) * DAY) / DAY) * DAY + 8 * 3_600 : null,
    });
  });
}

function addForks(world: World, random: Random, people: People, repository: Repository): Repository[] {
  const forks: Repository[] = [];
  for (const owner of people.all.slice(-3)) {
    if (owner.id === repository.ownerId || world.repositoryByName(owner.login, repository.name)) continue;
    const createdAt = repository.createdAt + random.int(1, 90) * DAY;
    forks.push(
      world.addRepository({
        ownerId: owner.id,
        name: repository.name,
        description: repository.description,
        fork: true,
        parentId: repository.id,
        hasIssues: false,
        visibility: repository.visibility,
        defaultBranch: repository.defaultBranch,
        createdAt,
      }),
    );
  }
  return forks;
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

function addIssue(context: Context, createdAt: Seconds, asPull: boolean, remarks: Remark[], reviews: Remark[]): void {
  const { world, random, people, repository, labels, milestones, options, until } = context;
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
    body: bodyOf(context, kind, number),
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
    lockReason:
      kind === 13
        ? (faker.LOCK_REASONS[
            Math.floor(number / 41) % faker.LOCK_REASONS.length
          ] as (typeof faker.LOCK_REASONS)[number])
        : null,
    pinned: !asPull && number <= 2,
    assigneeIds,
    labelIds,
    milestoneId: random.chance(0.2) ? random.pick(milestones).id : null,
    createdAt,
    updatedAt,
    editedAt: edited,
    reactions: random.chance(0.1) ? { "+1": random.int(1, 40), heart: random.int(0, 3) } : null,
    ...(asPull ? { pull: pullOf(context, kind, closedAt, author) } : {}),
  });
  for (const at of talks) remarks.push({ issue, at });
  for (const at of verdicts) reviews.push({ issue, at });
}

function bodyOf(context: Context, kind: number, number: number): string | null {
  const { random, people, options } = context;
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

function pullOf(context: Context, kind: number, closedAt: Seconds | null, authorId: number) {
  const { world, random, repository, forks } = context;
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
    mergedById: merged ? (random.chance(0.05) ? GHOST_ID : random.pick(context.people.all).id) : null,
    mergeCommitSha: merged || closedAt === null ? world.newSha() : null,
    mergeable: random.chance(0.9),
    maintainerCanModify: random.chance(0.6),
    requestedReviewerIds: closedAt === null && random.chance(0.4) ? [random.pick(context.people.all).id] : [],
    commits: random.int(1, 12),
    additions: Math.floor(10 ** (random.next() * 3.5)),
    deletions: Math.floor(10 ** (random.next() * 3)),
    changedFiles: random.int(1, 40),
  };
}

function someone(context: Context): number {
  const { random, people } = context;
  return random.chance(0.01)
    ? GHOST_ID
    : random.chance(0.04)
      ? random.pick(people.bots).id
      : random.pick(people.all).id;
}

function addComment(context: Context, issue: Issue, at: Seconds): void {
  const { world, random, people } = context;
  const edited = random.chance(0.08);
  world.addComment({
    issue,
    authorId: someone(context),
    body: faker.reply(random, { logins: people.logins, lastNumber: issue.number - 1 }),
    createdAt: at,
    // Some edits come much later, and do not move the issue.
    updatedAt: edited ? at + random.int(1, Math.max(1, Math.min(context.until - at, 40 * DAY))) : at,
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

function addReview(context: Context, issue: PullIssue, at: Seconds): void {
  const { world, random, people } = context;
  const state = random.pick(REVIEW_STATES);
  const authorId = someone(context);
  const review = world.addReview({
    issue,
    authorId,
    state,
    body: random.chance(0.5) ? "" : faker.reply(random, { logins: people.logins, lastNumber: issue.number - 1 }),
    createdAt: at,
    submittedAt: state === "PENDING" ? null : at,
  });
  if (state === "PENDING") return; // Nobody but its author sees a pending review's comments.
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
        authorId: someone(context),
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
