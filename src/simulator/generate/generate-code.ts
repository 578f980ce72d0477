/**
 * What machines said of a generated world's open pull requests, its branches beside the default one, its releases,
 * where it was deployed, and what Actions ran.
 */
import { addWorkflowJob, addWorkflowRun, workflowOf } from "../changes/actions.ts";
import { addCheckRun, addStatus, checkApp, createSuite } from "../changes/checks.ts";
import { addDeployment, addDeploymentStatus } from "../changes/deployments.ts";
import { conclusionOf, deploymentOf, outcomeOf } from "../live/code-acts.ts";
import * as faker from "../world/faker.ts";
import { type Random, seededRandom } from "../world/random.ts";
import type { Repository, Seconds } from "../world/records.ts";
import { isPull, type World } from "../world/world.ts";

export interface CodeSizes {
  /** Branches beside the default one. Default 3. */
  readonly branches?: number;
  /** Each with a tag. Default 5. */
  readonly releases?: number;
  /** Of the default branch, each with a few statuses. Default none. */
  readonly deployments?: number;
  /** Runs of two workflows on the default branch, each with a few jobs that have ended. Default none. */
  readonly workflowRuns?: number;
  /** Most check runs of a pull request's head. Default 4. */
  readonly runs?: number;
}

const CHECKED = 0.85;
const BUILD_S = 240;

/** Randomness of its own: texts and times of what people did are the same with it and without; ids are not. */
export function addCode(world: World, repository: Repository, sizes: CodeSizes, seed: number, until: Seconds): void {
  const random = seededRandom(seed);
  for (const row of repository.rows.pullsByCreated.ascending()) {
    if (!isPull(row) || row.state !== "open") continue;
    const { head } = row.pull;
    if (head.repositoryId === repository.id) repository.branches.set(head.ref, head.sha);
    if (random.chance(CHECKED)) addChecks(world, random, repository, { sha: head.sha, at: row.updatedAt, ...sizes });
  }
  for (let at = 0; at < (sizes.branches ?? 3); at++)
    repository.branches.set(`${faker.branchName(random)}-${at}`, random.hex(40));
  addReleases(world, random, repository, sizes.releases ?? 5, until);
  addDeployments(world, random, repository, sizes.deployments ?? 0, until);
  addWorkflowRuns(world, random, repository, sizes.workflowRuns ?? 0, until);
}

function addChecks(
  world: World,
  random: Random,
  repository: Repository,
  { sha, at, runs = 4 }: CodeSizes & { readonly sha: string; readonly at: Seconds },
): void {
  const app = checkApp(world, random.chance(0.8) ? "github-actions" : "octo-ci");
  const suite = createSuite(world, repository, app, sha, at);
  const count = random.int(1, runs);
  for (let number = 1; number <= count; number++) {
    const input = { repository, app, headSha: sha, suite, name: `job ${number}`, at };
    const isDone = random.chance(0.95);
    const end = at + random.int(20, BUILD_S);
    addCheckRun(world, isDone ? { ...input, conclusion: conclusionOf(random), completedAt: end } : input);
  }
  if (random.chance(0.5))
    addStatus(world, repository.ownerId, { repository, sha, state: "success", context: "license/cla", at });
}

function addReleases(world: World, random: Random, repository: Repository, count: number, until: Seconds): void {
  const { tags, releases } = world.code.of(repository);
  const target = repository.branches.get(repository.defaultBranch);
  for (let at = 0; at < count && target !== undefined; at++) {
    const tagName = `v1.${at}.0`;
    const createdAt = timeOf(repository, at, count, until);
    tags.set(tagName, { name: tagName, sha: target, object: null });
    const id = world.nextId("release");
    releases.set(id, {
      id,
      repository,
      authorId: repository.ownerId,
      tagName,
      targetCommitish: repository.defaultBranch,
      name: random.chance(0.8) ? `Version 1.${at}` : null,
      body: random.chance(0.9) ? faker.title(random) : null,
      draft: false,
      prerelease: random.chance(0.1),
      makeLatest: null,
      createdAt,
      updatedAt: createdAt,
      publishedAt: createdAt,
      assets: [],
      deleted: false,
    });
    const release = releases.get(id);
    if (release) world.code.releases.set(id, release);
  }
}

function addDeployments(world: World, random: Random, repository: Repository, count: number, until: Seconds): void {
  for (let place = 0; place < count && repository.branches.has(repository.defaultBranch); place++) {
    const at = timeOf(repository, place, count, until);
    const deployment = addDeployment(world, repository.ownerId, { ...deploymentOf(random, repository), at });
    for (let said = random.int(0, 3), after = at; said > 0; said--) {
      after = Math.min(until, after + random.int(1, BUILD_S));
      addDeploymentStatus(world, repository.ownerId, deployment, { state: outcomeOf(random), at: after });
    }
  }
}

function addWorkflowRuns(world: World, random: Random, repository: Repository, count: number, until: Seconds): void {
  const headSha = repository.branches.get(repository.defaultBranch);
  for (let place = 0; place < count && headSha !== undefined; place++) {
    const at = timeOf(repository, place, count, until);
    const workflow = workflowOf(world, { repository, name: random.pick(["CI", "Release"]), at });
    const run = addWorkflowRun(world, repository.ownerId, { workflow, headSha, at });
    for (let number = random.int(1, 3); number > 0; number--)
      addWorkflowJob(world, run, {
        ...{ name: `job ${number}`, conclusion: conclusionOf(random) },
        at: Math.min(until, at + random.int(1, BUILD_S)),
      });
  }
}

/** So many of them are spread evenly over the repository's life. */
function timeOf(repository: Repository, place: number, count: number, until: Seconds): Seconds {
  return repository.createdAt + Math.floor(((until - repository.createdAt) * (place + 1)) / (count + 1));
}
