import { Readable } from "node:stream";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import type { ForwardOwn } from "../../src/api/callers/permissions.ts";
import { writeForwarder } from "../../src/api/forward/forwarded-writes.ts";
import { listWrites } from "../../src/api/record/writes.ts";
import { createPull, pushBranch } from "../../src/simulator/changes/pulls.ts";
import type { Issue } from "../../src/simulator/world/records.ts";
import { type Asking, askAt } from "../support/asking.ts";
import { store } from "../support/mirrored.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

const PERSON = "ghp_of-a-person-who-writes";

let world: ApiWorld;
let repo: string;
let id: number;

beforeAll(async () => {
  world = await openApiWorld({ issues: 10, repositories: 1, mergeableDelayMs: 0 });
  const [first] = world.repositories;
  [repo, id] = [first?.fullName ?? "", first?.id ?? 0];
  world.upstream.tokens.create({ token: PERSON, login: "person", repositories: "all" });
});
afterAll(() => world?.[Symbol.asyncDispose]());
beforeEach(async () => {
  world.upstream.setFaults({});
  await world.ctx.db.query(sql`truncate writes, refresh_marks`);
  await world.ctx.db.query(sql`update repository_syncs set mirrors = '{}'`);
});

const ask = (method: string, path: string, options: Asking & { body?: string } = {}) =>
  askAt(world.url, method, path, { token: PERSON, ...options });

/** A new pull request that the mirror has. */
async function openPull(branch: string): Promise<Issue> {
  const { world: upstream } = world.upstream;
  const repository = upstream.repositories.get(id);
  if (!repository) throw new Error("The generated world has no repository");
  pushBranch(upstream, world.userId, repository, branch);
  const pull = createPull(upstream, world.userId, {
    repository,
    title: branch,
    headRepository: repository,
    headRef: branch,
    baseRef: repository.defaultBranch,
  });
  const at = { id, fullName: repo, htmlUrl: `https://github.com/${repo}` };
  const shown = async (path: string) => (await world.getUpstream(`/repositories/${id}/${path}/${pull.number}`)).body;
  await shown("pulls");
  await store(world.ctx, world.upstream, "issue", await shown("issues"), at);
  await store(world.ctx, world.upstream, "pull_request", await shown("pulls"), at);
  return pull;
}

const marked = async () =>
  (await world.ctx.db.query<{ kind: string; key: number }>(sql`select kind, key from refresh_marks order by kind`)).map(
    ({ kind, key }) => `${kind} ${key}`,
  );

const see = async (path: string) => (await ask("GET", `/repos/${repo}${path}`)).body;

test.each([0, 2_500])(
  "a merge is shown by the next read, by REST and GraphQL, while replicas lag %i ms",
  async (lagMs) => {
    const { number } = await openPull(`merged-${lagMs}`);
    await see(`/pulls/${number}`);
    world.upstream.setFaults({ lagMs });
    const answer = await ask("PUT", `/repos/${repo}/pulls/${number}/merge`, { body: "{}" });
    expect([answer.status, answer.body.merged]).toEqual([200, true]);
    expect(answer.headers.get("x-tain-passed-through")).toBe("upstream");
    expect(await see(`/pulls/${number}`)).toMatchObject({ state: "closed", merged: true });
    expect(await see(`/issues/${number}`)).toMatchObject({ state: "closed" });
    const query = `{ repository(owner: "${repo.split("/")[0]}", name: "${repo.split("/")[1]}") { pullRequest(number: ${number}) { state } } }`;
    const shown = await ask("POST", "/graphql", { token: world.token, body: JSON.stringify({ query }) });
    expect(shown.body.data.repository.pullRequest.state).toBe("MERGED");
    // A replica that lags longer may have given the answer, so the marks stay.
    expect(await marked()).toEqual([`issue ${number}`, `pull_request ${number}`]);
    expect(await listWrites(world.ctx, { limit: 5 })).toMatchObject([
      { outcome: "answered", status: 200, route: null },
    ]);
  },
);

test("reviewers who were asked are shown, and those who are asked no more", async () => {
  const { number } = await openPull("asked");
  const path = `/repos/${repo}/pulls/${number}/requested_reviewers`;
  const body = JSON.stringify({ reviewers: ["mirror-owner-2"] });
  world.upstream.tokens.create({ token: "ghp_of-a-reviewer", login: "mirror-owner-2", repositories: "all" });
  expect((await ask("POST", path, { body })).status).toBe(201);
  expect(await see(`/pulls/${number}`)).toMatchObject({ requested_reviewers: [{ login: "mirror-owner-2" }] });
  expect((await ask("DELETE", path, { body })).status).toBe(200);
  expect(await see(`/pulls/${number}`)).toMatchObject({ requested_reviewers: [] });
});

test("what upstream refuses is its answer, is recorded, and has nothing read or asked about", async () => {
  const { number } = await openPull("refused");
  await ask("PUT", `/repos/${repo}/pulls/${number}/merge`, { body: "{}" });
  await world.ctx.db.query(sql`truncate refresh_marks`);
  world.upstream.meter.reset();
  const again = await ask("PUT", `/repos/${repo}/pulls/${number}/merge`, { body: "{}" });
  expect([again.status, again.body.message]).toEqual([405, "Pull Request is not mergeable"]);
  expect(world.upstream.meter.read().requests).toBe(1);
  expect(await marked()).toEqual([]);
  expect(await listWrites(world.ctx, { limit: 1 })).toMatchObject([{ outcome: "answered", status: 405 }]);
});

test("a write to the repository has the mirror ask about it, within the caller's share", async () => {
  const spare = await world.openSibling({ UPSTREAM_READS_PER_CALLER: "1" });
  const token = "ghp_of-another-person";
  world.upstream.tokens.create({ token, login: "another", repositories: "all" });
  const describe = () => askAt(spare, "PATCH", `/repos/${repo}`, { token, body: '{"description":"said"}' });
  expect((await describe()).status).toBe(200);
  expect(await marked()).toEqual([`repository ${id}`]);
  await world.ctx.db.query(sql`truncate refresh_marks`);
  expect((await describe()).status).toBe(200);
  expect(await marked()).toEqual([]);
});

test("a write takes one read of the caller's share, however much is asked about because of it", async () => {
  const { number } = await openPull("shared");
  const spare = await world.openSibling({ UPSTREAM_READS_PER_CALLER: "1" });
  const token = "ghp_of-one-who-merges";
  world.upstream.tokens.create({ token, login: "merging", repositories: "all" });
  // The merge puts the branches in doubt at once, and afterwards the pull request.
  await world.ctx.db.query(sql`update repository_syncs set mirrors = '{refs}' where repository_id = ${id}`);
  const merge = await askAt(spare, "PUT", `/repos/${repo}/pulls/${number}/merge`, { token, body: "{}" });
  expect(merge.status).toBe(200);
  expect(await marked()).toEqual([`issue ${number}`, `pull_request ${number}`, `refs ${id}`]);
});

test("a write whose outcome nobody knows is asked about, and not sent again", async () => {
  const { number } = await openPull("unknown");
  world.upstream.setFaults({ http: [{ match: "^PUT", kind: "reset" }] });
  const answer = await ask("PUT", `/repos/${repo}/pulls/${number}/merge`, { body: "{}" });
  expect(answer.status).toBe(502);
  world.upstream.setFaults({});
  expect(await marked()).toEqual([`issue ${number}`, `pull_request ${number}`]);
});

test("what a write's answer showed is marked also where reading it back fails", async () => {
  let asked = 0;
  const takeDoubtOfWrite = async () => {
    if (++asked === 1) throw new Error("It is broken");
    return true;
  };
  const repository = { id, fullName: repo, htmlUrl: null };
  const shown = { repository, things: [{ kind: "issue" as const, repositoryId: id, key: 1, path: null }] };
  const caller = { kind: "user", userId: world.userId, by: { of: "upstream", fingerprint: "of-a-person" } };
  // The function takes from the context only what a job's context has, and from the caller only the user's id.
  const writer = {
    ctx: { ...world.ctx, upstream: { takeDoubtOfWrite } },
    caller,
    requestId: "test",
  } as unknown as Parameters<typeof writeForwarder>[0];
  const traced = { method: "POST", route: null, path: "/graphql", repositoryId: id };
  const answer = { status: 200, headers: {}, body: Readable.from([Buffer.from("{}")]) } as unknown as Awaited<
    ReturnType<ForwardOwn>
  >;
  const send = await writeForwarder(writer, traced, async () => answer, { touched: [], learn: () => [shown] });
  await send({ method: "POST", path: "/graphql", headers: {}, body: null } as unknown as Parameters<ForwardOwn>[0]);
  expect(await marked()).toEqual(["issue 1"]);
});
