/** A pull request may come from another repository. The mirror's credential may see that where the caller does not. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { pushBranch } from "../../src/simulator/changes/pulls.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import type { Repository } from "../../src/simulator/world/records.ts";
import { store } from "../support/mirrored.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

const PATCHES = ["diff", "patch"] as const;

let world: ApiWorld;
let base: Repository;
let fork: Repository;
let open: Repository;
/** For the base alone, and for base and private fork. */
let narrow: string;
let wide: string;
const nameOf = (repository: Repository) => world.upstream.world.fullName(repository);
const ownerOf = (repository: Repository) => nameOf(repository).split("/")[0] ?? "";
beforeAll(async () => {
  const fill = async (upstream: ApiWorld["upstream"]["world"]) => {
    generateWorld(upstream, { seed: 9, repositories: 1, issues: 6, pulls: 2 });
    [base] = [...upstream.repositories.values()].filter((one) => !one.fork) as [Repository];
    [fork, open] = [...upstream.repositories.values()].filter((one) => one.parentId === base.id) as [
      Repository,
      Repository,
    ];
    [base.visibility, fork.visibility, open.visibility] = ["private", "private", "public"];
  };
  world = await openApiWorld({ fill, upstreamTokens: 20, env: { PASS_THROUGH: "all" } });
  await store(world.ctx, world.upstream, "repository", (await world.getUpstream(`/repositories/${fork.id}`)).body);
  const { userId } = world;
  const scoped = (...ids: number[]) =>
    createApiToken(world.ctx, { userId, canWrite: true, scope: { repositoryIds: ids, ownerIds: [] } });
  [narrow, wide] = [await scoped(base.id), await scoped(base.id, fork.id)];
});
afterAll(() => world?.[Symbol.asyncDispose]());

const pulls = () => [...world.upstream.world.issues.values()].filter((one) => one.repository === base && one.pull);
/** A branch of its own for each try. */
const branchOf = (repository: Repository, name: string) => {
  pushBranch(world.upstream.world, world.userId, repository, name);
  return name;
};
const openPull = (token: string, more: object) =>
  world.send("POST", `/repos/${nameOf(base)}/pulls`, {
    token,
    body: JSON.stringify({ title: "t", base: base.defaultBranch, ...more }),
  });

describe("whoever is not shown the fork", () => {
  test.each([
    ["owner:branch", (branch: string) => ({ head: `${ownerOf(fork)}:${branch}` })],
    ["the fork's name", (branch: string) => ({ head: `${ownerOf(fork)}:${branch}`, head_repo: fork.name })],
    ["owner:repository:branch", (branch: string) => ({ head: `${ownerOf(fork)}:${fork.name}:${branch}` })],
    ["the fork's full name", (branch: string) => ({ head: `${ownerOf(fork)}:${branch}`, head_repo: nameOf(fork) })],
  ])("opens no pull request from it by %s", async (how, head) => {
    const branch = branchOf(fork, `hidden-${how.replace(/\W/g, "-")}`);
    const before = pulls().length;
    const refused = await openPull(narrow, head(branch));
    const missing = await openPull(narrow, { head: "nobody-at-all:branch" });
    expect(refused.status, refused.text).toBe(422);
    expect(refused.body).toEqual(missing.body);
    expect(refused.body.errors).toEqual([{ resource: "PullRequest", field: "head", code: "invalid" }]);
    expect(pulls().length).toBe(before);
  });

  test("opens no pull request from it by a mutation", async () => {
    const branch = branchOf(fork, "hidden-mutation");
    const before = pulls().length;
    const { node_id: repositoryId } = (await world.getUpstream(`/repositories/${base.id}`)).body;
    const { node_id: headRepositoryId } = (await world.getUpstream(`/repositories/${fork.id}`)).body;
    const create = `mutation($input: CreatePullRequestInput!) { createPullRequest(input: $input) { pullRequest { number } } }`;
    const input = { repositoryId, title: "t", baseRefName: base.defaultBranch };
    for (const [head, type] of [
      [{ headRefName: branch, headRepositoryId }, "NOT_FOUND"],
      [{ headRefName: `${ownerOf(fork)}:${branch}` }, "UNPROCESSABLE"],
    ] as const) {
      const { body } = await world.query(create, { input: { ...input, ...head } }, { token: narrow });
      expect(body.errors, JSON.stringify(body)).toMatchObject([{ type }]);
    }
    expect(pulls().length).toBe(before);
  });
});

test("whoever is shown it does, and everybody from a public one and from the repository's own branches", async () => {
  for (const [token, repository, name] of [
    [wide, fork, "seen"],
    [narrow, open, "public"],
  ] as const)
    for (const more of [{}, { head_repo: repository.name }]) {
      const branch = branchOf(repository, `${name}-${Object.keys(more).length}`);
      const made = await openPull(token, { head: `${ownerOf(repository)}:${branch}`, ...more });
      expect(made.status, made.text).toBe(201);
    }
  for (const prefix of ["", `${ownerOf(base)}:`]) {
    const branch = branchOf(base, `own-${prefix.length}`);
    const made = await openPull(narrow, { head: prefix + branch });
    expect(made.status, made.text).toBe(201);
  }
});

test("changes from a private head are told to nobody who is not shown it, in no form", async () => {
  const branch = branchOf(fork, "secret-changes");
  const made = await openPull(wide, { head: `${ownerOf(fork)}:${branch}` });
  expect(made.status, made.text).toBe(201);
  const { number, head } = made.body;
  const at = `/repos/${nameOf(base)}`;
  for (const form of PATCHES) {
    const headers = { accept: `application/vnd.github.${form}` };
    const refused = await world.get(`${at}/pulls/${number}`, { token: narrow, headers });
    expect(refused.status, refused.text).toBe(403);
    expect((await world.get(`/repositories/${base.id}/pulls/${number}`, { token: narrow, headers })).status).toBe(403);
    expect((await world.get(`${at}/pulls/${number}`, { token: wide, headers })).status, form).toBe(200);
  }
  for (const path of [
    ...[`pulls/${number}/files`, `pulls/${number}/commits`, `commits/pull/${number}/head`],
    ...[`commits/refs%2Fpull%2F${number}%2Fhead`, `contents/README.md?ref=refs/pull/${number}/merge`],
    ...[`commits/${head.sha}`, `commits?sha=${head.sha.slice(0, 10)}`, `compare/main...${head.sha}`],
    ...[`pulls/999999/files`],
  ])
    expect((await world.get(`${at}/${path}`, { token: narrow })).status, path).toBe(403);
  expect((await world.get(`${at}/pulls/${number}/files`, { token: wide })).status).not.toBe(403);
});
