/**
 * Fills a world from a seed: any size, believable text, and every nasty case that a mirror must survive. Rows are put
 * in place as they are: no rules, no events, no webhooks.
 *
 * The result is a function of the world's own seed (ids, shas), of `seed` and of `until`.
 */
import * as faker from "../world/faker.ts";
import { type Random, seededRandom } from "../world/random.ts";
import { GHOST_ID, type Milestone, type Repository, type Seconds } from "../world/records.ts";
import { isPull, type World } from "../world/world.ts";
import { addCode, type CodeSizes } from "./generate-code.ts";
import { addIssueEvents } from "./generate-events.ts";
import {
  addComment,
  addIssue,
  addReview,
  type People,
  type Remark,
  type Stage,
  type TalkOptions,
} from "./generate-issues.ts";

export interface GenerateOptions extends TalkOptions {
  readonly seed: number;
  /** How many repositories (forks come on top). At least 1. */
  readonly repositories: number;
  /** Issues in all repositories together; the first repository gets about half of them. */
  readonly issues: number;
  /** Pull requests in all repositories together. Default: half as many as issues. */
  readonly pulls?: number;
  /** How many people there are. Default: grows slowly with the number of issues. */
  readonly people?: number;
  /** Login of the organisation that owns the first repository. Default `octo-works`. */
  readonly organization?: string;
  /** With checks, statuses, branches, tags, releases, deployments and runs of workflows: how many. Default: none of them. */
  readonly code?: CodeSizes;
  /** With an event for each label, assignee, milestone and closing. Default: without. */
  readonly issueEvents?: boolean;
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
    const issues = last ? issuesLeft : Math.min(issuesLeft, Math.round(options.issues * (shares[at] ?? 0)));
    const ownPulls = last ? pullsLeft : Math.min(pullsLeft, Math.round(pulls * (shares[at] ?? 0)));
    issuesLeft -= issues;
    pullsLeft -= ownPulls;
    const repository = addRepository(world, random, people, at, options.repositories, until);
    repositories.push(repository);
    fillRepository(world, random, people, repository, { issues, pulls: ownPulls }, options, until);
    if (options.issueEvents) addIssueEvents(world, repository);
    if (options.code) addCode(world, repository, options.code, options.seed + at, until);
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
  const all: People["all"][number][] = [];
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
  const stage: Stage = { world, random, people, repository, labels, milestones, forks, options, until };

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
    addIssue(stage, createdAt, asPull, remarks, reviews);
  }

  remarks.sort((a, b) => a.at - b.at);
  for (const { issue, at } of remarks) addComment(stage, issue, at);
  reviews.sort((a, b) => a.at - b.at);
  for (const { issue, at } of reviews) if (isPull(issue)) addReview(stage, issue, at);
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
