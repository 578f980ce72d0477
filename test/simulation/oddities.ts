/** What seldom happens at upstream, and what most clients do not expect. Most of it moves no time and has no webhook. */
import { createComment } from "../../src/simulator/changes/comments.ts";
import { createIssue, editIssue } from "../../src/simulator/changes/issues.ts";
import { createLabel } from "../../src/simulator/changes/labels.ts";
import { createMilestone } from "../../src/simulator/changes/milestones.ts";
import { createRepository, deleteRepository, editRepository } from "../../src/simulator/changes/repositories.ts";
import { createReview } from "../../src/simulator/changes/reviews.ts";
import { becomeOrganization, vanishFromAssignees } from "../../src/simulator/changes/users.ts";
import { type Random, seededRandom } from "../../src/simulator/world/random.ts";
import { GHOST_ID, type Issue, type Repository, type User } from "../../src/simulator/world/records.ts";
import { isPull, type World } from "../../src/simulator/world/world.ts";

interface Place {
  world: World;
  repository: Repository;
  random: Random;
}

const YEAR_S = 365 * 86_400;
/** Year 0 of the calendar that the service writes times in. */
const YEAR_0 = -62_167_219_200;
/** More than a column for whole numbers of four bytes holds. */
const HUGE = 3_000_000_000;
/** Names that mean something in a path, a pattern or another alphabet. */
const LABELS = ["back\\slash", "..", "../x", "%00", "area/core", "İZMİR", "ΟΔΟΣ", "tab\there", "ǅ", "__proto__", "%_"];

const ODDITIES = {
  /** An account can no longer be assigned. */
  vanish: ({ world, repository, random }) => {
    const assigned = issuesOf(repository).flatMap(({ assigneeIds }) => assigneeIds);
    if (assigned.length > 0) vanishFromAssignees(world, world.user(random.pick(assigned)));
  },
  /** Whoever wrote this is an organisation from now on, and writes on. */
  organisation: ({ world, repository, random }) => {
    const authors = issuesOf(repository).flatMap(({ authorId }) => world.users.get(authorId ?? GHOST_ID) ?? []);
    const people = authors.filter((user) => isPerson(user) && !ownsAny(world, user));
    if (people.length === 0) return;
    const author = random.pick(people);
    becomeOrganization(world, author);
    createIssue(world, author.id, { repository, title: "What an organisation wrote" });
    const pull = issuesOf(repository).find((one) => isPull(one) && one.state === "open");
    if (pull && isPull(pull)) createReview(world, author.id, pull, { state: "COMMENTED", body: "As an organisation" });
  },
  /** A bot with a login for comments and another for all else. */
  bot: ({ world, repository, random }) => {
    const bots = [...world.users.values()].filter(({ type }) => type === "Bot");
    const issue = anyOf(random, issuesOf(repository));
    if (bots.length === 0 || !issue) return;
    const bot = random.pick(bots);
    bot.loginInComments ??= `${bot.login.replace("[bot]", "")}-helper`;
    createComment(world, bot.id, issue, `From a bot (${issue.thread.length})`);
    const pull = anyOf(random, issuesOf(repository).filter(isPull));
    if (pull) createReview(world, bot.id, pull, { state: "COMMENTED", body: "From a bot" });
  },
  label: ({ world, repository, random }) => {
    const name = random.pick(LABELS);
    const label = world.labelByName(repository, name) ?? createLabel(world, repository.ownerId, { repository, name });
    const issue = anyOf(random, issuesOf(repository));
    if (issue) editIssue(world, repository.ownerId, issue, { labelIds: [...new Set([...issue.labelIds, label.id])] });
  },
  /** As an import leaves it, or a server whose clock was wrong. */
  future: ({ world, repository, random }) => {
    const issue = anyOf(random, issuesOf(repository));
    if (!issue) return;
    world.changing(issue);
    world.bump(issue, world.now() + 10 * YEAR_S);
  },
  /** Values that no column holds. */
  values: ({ world, repository, random }) => {
    world.changing(repository);
    repository.size = HUGE + random.int(0, 9);
    editRepository(world, repository.ownerId, repository, { description: `It is huge: ${random.int(0, 9_999)}` });
    createMilestone(world, repository.ownerId, { repository, title: `Of old ${random.int(0, 9_999)}`, dueOn: YEAR_0 });
  },
  /** Reactions have no webhook, and move no time. */
  reaction: ({ world, repository, random }) => {
    const issue = anyOf(random, issuesOf(repository));
    const row = issue && (anyOf(random, [...issue.thread]) ?? issue);
    if (!row) return;
    world.changing(row);
    row.reactions = { ...row.reactions, heart: (row.reactions?.heart ?? 0) + 1 };
  },
} satisfies Record<string, (place: Place) => void>;

export type Oddity = keyof typeof ODDITIES;

// Object.keys answers `string[]` for every object.
export const ODDITY_NAMES = Object.keys(ODDITIES) as Oddity[];

/** Lets it happen in a repository, if there is anything that it can happen to. */
export function letHappen(oddity: Oddity, { seed, ...place }: Omit<Place, "random"> & { seed: number }): void {
  ODDITIES[oddity]({ ...place, random: seededRandom(seed) });
}

/** A repository with this name and a few issues. */
export function makeSmall(world: World, ownerId: number, name: string): Repository {
  const repository = createRepository(world, ownerId, { ownerId, name });
  for (const title of ["first", "second", "third"]) {
    const issue = createIssue(world, ownerId, { repository, title: `The ${title} of repository ${repository.id}` });
    createComment(world, ownerId, issue, `In repository ${repository.id}`);
  }
  return repository;
}

/**
 * Another repository with other issues takes this name from the one that has it, which is deleted, or that had it before
 * it was renamed. Null: nobody has an account of the owner's name any more.
 */
export function remade(world: World, fullName: string): Repository | null {
  const [login = "", name = ""] = fullName.split("/");
  const owner = world.userByLogin(login);
  if (!owner) return null;
  const holder = world.repositoryByName(login, name);
  if (holder && !holder.moved) deleteRepository(world, owner.id, holder.repository);
  return makeSmall(world, owner.id, name);
}

function isPerson({ id, type, deleted }: User): boolean {
  return type === "User" && id !== GHOST_ID && !deleted;
}

function ownsAny({ repositories }: World, user: User): boolean {
  return [...repositories.values()].some(({ ownerId }) => ownerId === user.id);
}

function issuesOf({ rows }: Repository): Issue[] {
  return rows.byNumber.flatMap((one) => (one && !one.deleted ? [one] : []));
}

function anyOf<One>(random: Random, of: readonly One[]): One | undefined {
  return of.length === 0 ? undefined : random.pick(of);
}
