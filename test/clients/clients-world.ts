import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { schema as published } from "@octokit/graphql-schema";
import { MIRROR_PARTS } from "../../src/config/parts.ts";
import { moveBranch } from "../../src/simulator/changes/refs.ts";
import { createRelease } from "../../src/simulator/changes/releases.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { broughtCommit } from "../../src/simulator/world/commits.ts";
import type { PullIssue, Repository } from "../../src/simulator/world/records.ts";
import { isPull } from "../../src/simulator/world/world.ts";
import { fetchAndStoreNames } from "../../src/sync/people/names.ts";
import { upsertSchedules } from "../../src/sync/schedules.ts";
import { askAt } from "../support/asking.ts";
import { markWholesDue } from "../support/due.ts";
import { openWorld, type TestWorld } from "../support/world.ts";
import { type Front, openFront } from "./asked.ts";

const run = promisify(execFile);

/** Whose token the tools have: an account of the service that may push. */
export const PERSON = { login: "maintainer", token: "ghp_OfTheMaintainer" };

/** In a public repository everybody sees everything, and the tools ask what they may do there. */
export const isPublic = process.env.TOOLS === "public";

/** What the repository holds at its tip. Renovate updates what is pinned here, in the way that it is told. */
const FILES = {
  "README.md": "# Made for tools\n",
  "package.json": `${JSON.stringify({ name: "made-for-tools", version: "1.0.0", private: true }, null, 2)}\n`,
  "versions.env": "TOOL=v1.0.0\n",
};

/** A mirror with workers, an upstream that answers the whole GraphQL schema, and a repository that git can clone. */
export interface ClientsWorld extends AsyncDisposable {
  world: TestWorld;
  front: Front;
  /** `owner/name`. */
  repo: string;
  owner: string;
  name: string;
  /** Open, from a branch of the repository itself. */
  pull: PullIssue;
  /** The service is pushed a commit to this branch, which is new. */
  push(branch: string): Promise<void>;
  /** The issue that a commit since the release `v9.0.0` fixes. */
  fixed: number;
  branch: string;
  /** A bare repository with the same commits. */
  bare: string;
  /**
   * What a program gets of the environment: a home of its own, where git finds the service's repositories in `bare`.
   */
  env: NodeJS.ProcessEnv;
  home: string;
}

export async function openClientsWorld(): Promise<ClientsWorld> {
  await using opening = new AsyncDisposableStack();
  const home = await mkdtemp(join(tmpdir(), "tain-tools-"));
  opening.defer(() => rm(home, { recursive: true, force: true }));
  const world = opening.use(
    await openWorld({
      simulator: { wholeSchema: published.idl },
      env: { MIRROR: MIRROR_PARTS.join(), TRUSTED_PROXIES: "loopback" },
      fill: ({ world: filled, quota }) => {
        Object.assign(quota.limits, { contentPerMinute: Infinity, contentPerHour: Infinity });
        generateWorld(filled, {
          seed: 7,
          repositories: 1,
          issues: 40,
          pulls: 20,
          code: { releases: 3, workflowRuns: 5 },
        });
      },
    }),
  );
  const { simulator, first: repo } = world;
  const [owner = "", name = ""] = repo.split("/");
  const repository = simulator.world.repositoryByName(owner, name)?.repository;
  if (!repository) throw new Error("The generated repository is not there");
  repository.visibility = isPublic ? "public" : "private";
  const { login, token } = PERSON;
  simulator.tokens.create({ token, login, scopes: ["repo", "workflow", "read:org"] });
  repository.collaborators.set(simulator.world.userByLogin(login)?.id ?? 0, "push");
  const issue = [...simulator.world.issues.values()].find((one) => !isPull(one) && one.state === "open");
  if (!issue) throw new Error("The generated repository has no open issue");
  const { bare, shas } = await makeGit(home, repository.defaultBranch, [
    "chore: begin",
    "feat: learn a new trick",
    `fix: stand up again\n\nFixes #${issue.number}`,
  ]);
  bringCommits(world, repository, shas);
  const pull = [...repository.rows.issuesByCreated.ascending()].find(
    (one): one is PullIssue => isPull(one) && one.state === "open" && one.pull.head.repositoryId === repository.id,
  );
  if (!pull) throw new Error("The generated repository has no open pull request of its own");
  await world.mirror(repo);
  await world.listen(repo);
  await copyParts(world);
  const front = opening.use(await openFront(world.url));
  const git = [`[url "file://${bare}"]`];
  const named = front.url.replace("//", `//${token}@`);
  const granted = front.url.replace("//", `//x-access-token:${token}@`);
  for (const base of [front.url, named, granted, "https://ghe.example.test"])
    for (const end of ["", ".git"]) git.push(`insteadOf = ${base}/${repo}${end}`);
  git.push("[user]", "name = A tool", "email = tool@example.test", '[protocol "file"]', "allow = always");
  writeFileSync(join(home, ".gitconfig"), `${git.join("\n")}\n`);
  const env = { PATH: process.env.PATH, HOME: home, TZ: "UTC", NO_COLOR: "1", GIT_TERMINAL_PROMPT: "0" };
  const all = opening.move();
  return {
    ...{
      world,
      front,
      repo,
      owner,
      name,
      pull,
      fixed: issue.number,
      branch: repository.defaultBranch,
      bare,
      env,
      home,
    },
    push: async (branch) => {
      const before = repository.branches.get(repository.defaultBranch);
      const sha = createHash("sha1").update(branch).digest("hex");
      const parents = before === undefined ? [] : [before];
      broughtCommit(simulator.world, repository.ownerId, repository, { sha, message: `feat: ${branch}`, parents });
      const body = JSON.stringify({ ref: `refs/heads/${branch}`, sha });
      const { status, text } = await askAt(simulator.url, "POST", `/repos/${repo}/git/refs`, { token, body });
      if (status !== 201) throw new Error(`The branch ${branch} cannot be made: ${text}`);
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Checks, lists, releases, refs and names, as they are copied while schedules run; these go on afterwards. */
async function copyParts({ ctx, settleMarks }: TestWorld): Promise<void> {
  await markWholesDue(ctx);
  await settleMarks();
  await fetchAndStoreNames(ctx);
  await upsertSchedules(ctx);
}

/** A bare repository with these commits on one branch, the first of them tagged. */
async function makeGit(
  home: string,
  branch: string,
  messages: readonly string[],
): Promise<{ bare: string; shas: [string, string][] }> {
  const [work, bare] = [join(home, "made"), join(home, "bare.git")];
  mkdirSync(work);
  const env = { PATH: process.env.PATH, HOME: home };
  const git = async (...args: string[]) => {
    const who = ["-c", "user.name=A person", "-c", "user.email=person@example.test"];
    return (await run("git", [...who, ...args], { cwd: work, env })).stdout.trim();
  };
  await git("init", "--quiet", "--initial-branch", branch);
  const shas: [string, string][] = [];
  for (const [at, message] of messages.entries()) {
    if (at === 0) for (const [file, text] of Object.entries(FILES)) writeFileSync(join(work, file), text);
    else writeFileSync(join(work, `change-${at}.txt`), message);
    await git("add", "--all");
    await git("commit", "--quiet", "--message", message);
    if (at === 0) await git("tag", "v9.0.0");
    shas.push([await git("rev-parse", "HEAD"), message]);
  }
  await git("clone", "--quiet", "--bare", work, bare);
  await run("git", ["config", "uploadpack.allowFilter", "true"], { cwd: bare, env });
  await run("git", ["config", "uploadpack.allowAnySHA1InWant", "true"], { cwd: bare, env });
  return { bare, shas };
}

/** The service has the same commits; the first of them is released. */
function bringCommits({ simulator: { world } }: TestWorld, repository: Repository, shas: readonly [string, string][]) {
  const by = repository.ownerId;
  for (const [at, [sha, message]] of shas.entries()) {
    const before = repository.branches.get(repository.defaultBranch);
    broughtCommit(world, by, repository, { sha, message, parents: before === undefined ? [] : [before] });
    moveBranch(world, by, repository, repository.defaultBranch, { sha, force: true });
    if (at === 0) createRelease(world, by, { repository, tagName: "v9.0.0", name: "v9.0.0", targetCommitish: sha });
  }
}
