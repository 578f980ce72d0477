/**
 * The commits of a repository. Those that were pushed or merged here are rows. Those that were there before are made of
 * their sha when they are asked for: a world of a million pull requests holds none of them, and the answer is always the
 * same.
 */
import { createHash } from "node:crypto";
import * as faker from "./faker.ts";
import { seededRandom } from "./random.ts";
import type { PullIssue, Repository, Seconds } from "./records.ts";
import type { Commit } from "./records-code.ts";
import { isPull, type World } from "./world.ts";

export const NO_SHA = "0".repeat(40);
const SHA = /^[0-9a-f]{40}$/;
const BETWEEN_COMMITS: Seconds = 600;

export function hashOf(text: string): string {
  return createHash("sha1").update(text).digest("hex");
}

/** Randomness that belongs to a sha alone. */
export function randomOf(sha: string) {
  return seededRandom(Number.parseInt(sha.slice(0, 8), 16));
}

/** The commit of a sha; undefined where the repository has none. */
export function commitOf(world: World, repository: Repository, sha: string): Commit | undefined {
  const { commits } = world.code.of(repository);
  const commit = commits.get(sha) ?? sought(world, repository, sha);
  if (commit) commit.parents ??= parentsOf(world, repository, commit);
  return commit;
}

/** What a sha, a branch, a tag or a full ref names. */
export function shaNamed(world: World, repository: Repository, ref: string): string | undefined {
  if (SHA.test(ref)) return commitOf(world, repository, ref) && ref;
  const [, kind, name = ref] = /^(?:refs\/)?(heads|tags)\/(.+)$/.exec(ref) ?? [];
  const branch = repository.branches.get(ref) ?? (kind === "tags" ? undefined : repository.branches.get(name));
  return branch ?? (kind === "heads" ? undefined : world.code.of(repository).tags.get(name)?.sha);
}

/** A sha that nobody made may still be named, by a review of what is gone: then the commit is made up. */
export function commitOrMade(world: World, repository: Repository, sha: string): Commit {
  const commit =
    commitOf(world, repository, sha) ?? put(world, repository, derived(sha, repository.ownerId, repository.createdAt));
  commit.parents ??= [];
  return commit;
}

/** Whether the pull request brings the commit, or was landed by it. */
function hasCommit(world: World, issue: PullIssue, sha: string): boolean {
  if (issue.pull.head.sha === sha || issue.pull.mergeCommitSha === sha) return true;
  return pullCommits(world, issue).some((commit) => commit.sha === sha);
}

/**
 * The pull requests that a commit came with: of one of the default branch the merged one that introduced it, of any other
 * the merged ones and those that are open (GitHub docs, "List pull requests associated with a commit").
 */
export function pullsBringing(world: World, repository: Repository, sha: string): ReadonlySet<PullIssue> {
  const pulls = [...repository.rows.pullsByCreated.descending()]
    .filter(isPull)
    .filter((row) => hasCommit(world, row, sha) && (row.pull.mergedAt !== null || row.state === "open"));
  const head = repository.branches.get(repository.defaultBranch);
  const isOfDefault = head !== undefined && history(world, repository, head).some((commit) => commit.sha === sha);
  if (!isOfDefault) return new Set(pulls);
  const merged = pulls.filter(({ pull }) => pull.mergedAt !== null);
  return new Set(merged.toSorted((a, b) => (a.pull.mergedAt ?? 0) - (b.pull.mergedAt ?? 0)).slice(0, 1));
}

/** Oldest first: as many as the pull request counts. */
export function pullCommits(world: World, issue: PullIssue): Commit[] {
  const { repository, pull } = issue;
  const found: Commit[] = [];
  let sha = pull.head.sha;
  let at = issue.createdAt;
  for (let place = pull.commits; place > 0; place--) {
    const commit = ownOrForks(world, issue, sha) ?? put(world, repository, derived(sha, issue.authorId, at));
    commit.parents ??= [place === 1 ? pull.base.sha : hashOf(`before ${sha}`)];
    found.push(commit);
    at = commit.committedAt - BETWEEN_COMMITS;
    const [parent] = commit.parents;
    if (parent === undefined) break;
    sha = parent;
  }
  return found.reverse();
}

/** From `sha` back, first parents first: newest first. */
export function* history(world: World, repository: Repository, sha: string): Generator<Commit> {
  const seen = new Set<string>();
  let tips = [commitOf(world, repository, sha)].filter((tip) => tip !== undefined);
  while (tips.length > 0) {
    tips.sort((a, b) => b.committedAt - a.committedAt);
    const [tip, ...rest] = tips;
    if (!tip) return;
    yield tip;
    seen.add(tip.sha);
    tips = rest;
    for (const parent of tip.parents ?? []) {
      if (seen.has(parent) || tips.some((one) => one.sha === parent)) continue;
      const commit =
        commitOf(world, repository, parent) ?? put(world, repository, derived(parent, repository.ownerId, 0));
      commit.parents ??= [];
      tips.push(commit);
    }
  }
}

/** A push makes its commit, and remembers the one before it. */
export function pushedCommit(
  world: World,
  by: number,
  repository: Repository,
  push: { readonly ref: string; readonly before: string; readonly sha: string; readonly message?: string },
): void {
  const { commits } = world.code.of(repository);
  const { ref, before, sha } = push;
  trunkOf(world, repository);
  if (before !== NO_SHA && !commits.has(before)) put(world, repository, derived(before, by, timeOfHead(repository)));
  if (commits.has(sha)) return;
  const made = derived(sha, by, world.now());
  // A new branch has as many commits as its pull request will say.
  const parents = before === NO_SHA ? (ref === repository.defaultBranch ? [] : null) : [before];
  put(world, repository, { ...made, message: push.message ?? made.message, parents });
}

/** A commit with words and parents of its own. */
export function broughtCommit(
  world: World,
  by: number,
  repository: Repository,
  made: Pick<Commit, "sha" | "message" | "parents">,
): void {
  put(world, repository, { ...derived(made.sha, by, world.now()), ...made });
}

/** The commit that lands a pull request: of two parents only if it is a merge. */
export function mergedCommit(
  world: World,
  by: number,
  issue: PullIssue,
  landed: {
    readonly before: string;
    readonly sha: string;
    readonly method?: "merge" | "squash" | "rebase";
    readonly title?: string;
    readonly message?: string;
  },
): void {
  const { repository, pull } = issue;
  const { before, sha, method = "merge" } = landed;
  trunkOf(world, repository);
  if (!world.code.of(repository).commits.has(before))
    put(world, repository, derived(before, by, timeOfHead(repository)));
  const merge = mergeOf(issue, sha, by, world.now(), method === "merge" ? [before, pull.head.sha] : [before]);
  const title = method === "merge" ? merge.message.split("\n")[0] : `${issue.title} (#${issue.number})`;
  const message = `${landed.title ?? title}\n\n${landed.message ?? (method === "merge" ? issue.title : "")}`.trimEnd();
  put(world, repository, { ...merge, message });
}

/**
 * How many commits are known to lie between them. Parents that were made up for a sha may lead in a circle: it ends
 * there.
 */
export function settledLength(world: World, repository: Repository, head: string, base: string): number {
  const between = new Set<string>();
  for (let sha: string | undefined = head; sha !== undefined && sha !== base && !between.has(sha); ) {
    between.add(sha);
    sha = world.code.of(repository).commits.get(sha)?.parents?.[0];
  }
  return between.size;
}

function trunkOf(world: World, repository: Repository): string {
  const code = world.code.of(repository);
  code.trunk ??= repository.branches.get(repository.defaultBranch) ?? NO_SHA;
  return code.trunk;
}

function timeOfHead(repository: Repository): Seconds {
  return repository.pushedAt ?? repository.createdAt;
}

function put(world: World, repository: Repository, commit: Commit): Commit {
  world.code.of(repository).commits.set(commit.sha, commit);
  return commit;
}

function derived(sha: string, authorId: number | null, at: Seconds): Commit {
  const message = faker.title(randomOf(sha));
  return { sha, message, authorId, committerId: authorId, authoredAt: at, committedAt: at, parents: null };
}

function mergeOf(issue: PullIssue, sha: string, by: number | null, at: Seconds, parents: readonly string[]): Commit {
  const { head } = issue.pull;
  const message = `Merge pull request #${issue.number} from ${head.label.replace(":", "/")}\n\n${issue.title}`;
  return { sha, message, authorId: by, committerId: by, authoredAt: at, committedAt: at, parents };
}

/** A head may have been pushed to the fork: the repository sees the same commit. */
function ownOrForks(world: World, issue: PullIssue, sha: string): Commit | undefined {
  const own = world.code.of(issue.repository).commits.get(sha);
  if (own) return own;
  const fork = world.repositories.get(issue.pull.head.repositoryId ?? 0);
  const theirs = fork && world.code.of(fork).commits.get(sha);
  return theirs && put(world, issue.repository, { ...theirs });
}

/** A sha that is no row yet: the end of a pull request, what landed one, or the head of a branch. */
function sought(world: World, repository: Repository, sha: string): Commit | undefined {
  const { commits } = world.code.of(repository);
  let isBase = false;
  for (const row of repository.rows.pullsByCreated.ascending()) {
    if (!isPull(row)) continue;
    const { head, base, mergeCommitSha, mergedAt, mergedById } = row.pull;
    if (head.sha === sha) {
      pullCommits(world, row);
      return commits.get(sha);
    }
    if (mergeCommitSha === sha)
      return put(world, repository, mergeOf(row, sha, mergedById, mergedAt ?? row.createdAt, [base.sha, head.sha]));
    isBase ||= base.sha === sha;
  }
  if (!isBase && ![...repository.branches.values()].includes(sha)) return undefined;
  return put(
    world,
    repository,
    derived(sha, repository.ownerId, isBase ? repository.createdAt : timeOfHead(repository)),
  );
}

function parentsOf(world: World, repository: Repository, commit: Commit): readonly string[] {
  const trunk = trunkOf(world, repository);
  if (commit.sha === trunk) return layTrunk(world, repository);
  for (const row of repository.rows.pullsByCreated.ascending()) {
    if (!isPull(row)) continue;
    if (row.pull.base.sha === commit.sha) return [];
    if (row.pull.head.sha !== commit.sha) continue;
    pullCommits(world, row);
    if (commit.parents) return commit.parents;
  }
  return trunk === NO_SHA ? [] : [trunk];
}

/** Makes the commits of merges from before the simulation, each on the one before. Answers the last. */
function layTrunk(world: World, repository: Repository): readonly string[] {
  const merged = [...repository.rows.pullsByCreated.ascending()].filter(isPull).filter((row) => {
    const { mergedAt, mergeCommitSha, base } = row.pull;
    if (mergedAt === null || mergeCommitSha === null || base.ref !== repository.defaultBranch) return false;
    return !world.code.of(repository).commits.get(mergeCommitSha);
  });
  merged.sort((a, b) => (a.pull.mergedAt ?? 0) - (b.pull.mergedAt ?? 0) || a.id - b.id);
  let last: string | undefined;
  for (const row of merged) {
    const { mergeCommitSha, mergedAt, mergedById, base, head } = row.pull;
    if (mergeCommitSha === null || mergedAt === null) continue;
    put(world, repository, mergeOf(row, mergeCommitSha, mergedById, mergedAt, [last ?? base.sha, head.sha]));
    last = mergeCommitSha;
  }
  return last === undefined ? [] : [last];
}
