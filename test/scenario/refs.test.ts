import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { pushBranch } from "../../src/simulator/changes/pulls.ts";
import { createTags, deleteBranch, deleteTag, moveTag } from "../../src/simulator/changes/refs.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { addCode } from "../../src/simulator/generate/generate-code.ts";
import type { Repository } from "../../src/simulator/world/records.ts";
import { settleParts } from "../../src/sync/following/parts.ts";
import { fetchAndStoreRefs } from "../../src/sync/refs/read.ts";
import { askAt, rebased } from "../support/asking.ts";
import { withUpstream } from "../support/changed-upstream.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { markRefsDue } from "../support/due.ts";
import { forge } from "../support/forging.ts";
import { passRound } from "../support/rounds.ts";
import { countStatements } from "../support/statements.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

// Branches and tags, from the push to the answer. Each answer must equal upstream's, and the test knows whether
// upstream was asked.

let world: TestWorld;
let repository: Repository;

beforeAll(async () => {
  world = await openWorld({
    env: { MIRROR: "refs" },
    fill: ({ world: filled }) => {
      generateWorld(filled, { seed: 7, repositories: 1, issues: 3, pulls: 2 });
      for (const one of filled.repositories.values()) {
        one.visibility = "private";
        addCode(filled, one, {}, 7, filled.now());
      }
    },
  });
  const [owner = "", name = ""] = world.first.split("/");
  const found = world.simulator.world.repositoryByName(owner, name)?.repository;
  if (!found) throw new Error("The generated repository is not there");
  repository = found;
  push("feature/one");
  createTags(world.simulator.world, repository.ownerId, repository, [{ name: "noted", sha: main(), message: "Said" }]);
  await world.mirror(world.first);
  await world.listen(world.first);
  await pass(60_000);
});
afterAll(() => world?.[Symbol.asyncDispose]());

const main = () => repository.branches.get(repository.defaultBranch) ?? "";
const push = (branch: string) => pushBranch(world.simulator.world, repository.ownerId, repository, branch);

const pass = (ms: number) => passRound(world, ms, markRefsDue);

const at = (path: string) => `/repos/${world.first}${path}`;
const get = (path: string, token: string | null = world.token) => askAt(world.url, "GET", at(path), { token });
const isPassed = ({ headers }: { headers: Headers }) => headers.has("x-tain-passed-through") || headers.has("x-cache");

/** Expects the mirror to answer from its own rows, and as upstream answers. */
async function expectHeld(...paths: string[]): Promise<void> {
  for (const path of paths) {
    const ours = await get(path);
    const theirs = await askAt(world.simulator.url, "GET", at(path), { token: UPSTREAM_TOKEN });
    expect([path, isPassed(ours), ours.status]).toEqual([path, false, theirs.status]);
    if (theirs.status === 200) expect(ours.body, path).toEqual(rebased(theirs.text, world.simulator.url, world.url));
    else expect(ours.body.message).toBe(theirs.body.message);
  }
}

/** Paths of the lists, and of so many single branches. */
const everyPath = (most = 1) => [
  ...["/branches", "/branches?per_page=2", "/branches?per_page=2&page=2", "/branches?protected=true"],
  ...["/branches?protected=", "/branches?protected=0", "/branches?protected=yes"],
  ...["/branches?protected=false", "/branches/never-was", "/branches/never/was", "/tags", "/tags?per_page=2&page=2"],
  ...[
    "/git/matching-refs/heads/f",
    "/git/matching-refs/heads/fea",
    "/git/matching-refs/tags/v1",
    "/git/matching-refs/tags/no",
  ],
  ...["/git/ref/heads/never-was", "/git/ref/tags/never-was", "/git/ref/heads/feature/one", "/git/ref/tags/noted"],
  ...[...repository.branches.keys()].slice(-most).map((name) => `/git/ref/heads/${name}`),
];

test("branches, tags and refs are copied, and answered as upstream answers them", async () => {
  const { routes } = world.simulator.meter.read();
  await expectHeld(...everyPath(100));
  expect(routes["GET /repos/:owner/:repo/git/matching-refs/*ref"]?.charged).toBe(2);
});

async function query(inner: string, token = UPSTREAM_TOKEN) {
  const [owner, name] = world.first.split("/");
  const text = `query($owner: String!, $name: String!) { repository(owner: $owner, name: $name) { ${inner} } }`;
  const body = JSON.stringify({ query: text, variables: { owner, name } });
  const [ours, theirs] = await Promise.all([
    askAt(world.url, "POST", "/graphql", { token, body }),
    askAt(world.simulator.url, "POST", "/graphql", { token: UPSTREAM_TOKEN, body }),
  ]);
  return { ours, theirs };
}

test("GraphQL shows branches and tags as upstream does, and leaves the rest to it", async () => {
  const ref = `name prefix repository { name } target { __typename oid abbreviatedOid
    ... on Tag { name target { __typename oid } } }`;
  const list = `totalCount pageInfo { hasNextPage hasPreviousPage } nodes { ${ref} }`;
  for (const inner of [
    `defaultBranchRef { ${ref} }`,
    `refs(refPrefix: "refs/heads/", first: 3) { ${list} }`,
    `refs(refPrefix: "refs/heads/", last: 2, orderBy: { field: ALPHABETICAL, direction: DESC }) { ${list} }`,
    `refs(refPrefix: "refs/tags/", first: 50) { ${list} }`,
    `ref(qualifiedName: "main") { ${ref} }`,
    `a: ref(qualifiedName: "refs/heads/feature/one") { ${ref} } b: ref(qualifiedName: "refs/tags/noted") { ${ref} }
      c: ref(qualifiedName: "refs/heads/never-was") { ${ref} }`,
  ])
    for (const token of [UPSTREAM_TOKEN, world.token]) {
      const { ours, theirs } = await query(inner, token);
      expect([isPassed(ours), ours.body], inner).toEqual([false, theirs.body]);
    }
  using statements = countStatements();
  const many = Array.from(
    { length: 40 },
    (_, one) => `l${one}: refs(refPrefix: "refs/heads/", first: ${one + 1}) { totalCount }`,
  );
  expect((await query(many.join(" "), world.token)).ours.body.errors).toBeUndefined();
  expect(statements.texts().filter((text) => /^\s*select x\.at from .* ref_lists /s.test(text)).length).toBe(1);
  // The pages together are the same list.
  const names: string[] = [];
  for (let after: string | null = null, more = true; more; ) {
    const page = `refs(refPrefix: "refs/heads/", first: 2, after: ${JSON.stringify(after)}) {
      pageInfo { hasNextPage endCursor } nodes { name } }`;
    const { ours } = await query(page);
    const shown = ours.body.data.repository.refs;
    names.push(...shown.nodes.map(({ name }: { name: string }) => name));
    [after, more] = [shown.pageInfo.endCursor, shown.pageInfo.hasNextPage];
  }
  expect(names).toEqual([...repository.branches.keys()].sort());
  for (const inner of [
    `refs(refPrefix: "refs/", first: 3) { ${list} }`,
    `refs(refPrefix: "refs/heads/", first: 3, query: "fea") { ${list} }`,
    `defaultBranchRef { target { ... on Commit { message } } }`,
  ]) {
    const { ours, theirs } = await query(inner);
    expect([isPassed(ours), ours.body], inner).toEqual([true, theirs.body]);
    expect((await query(inner, world.token)).ours.body.errors, inner).toMatchObject([{ type: "UNPROCESSABLE" }]);
  }
});

test("what the mirror does not hold of a branch is upstream's to answer", async () => {
  for (const path of ["/branches/feature/one", "/git/ref/pull/1/head", "/git/matching-refs/heads"]) {
    const [ours, theirs] = [
      await get(path),
      await askAt(world.simulator.url, "GET", at(path), { token: UPSTREAM_TOKEN }),
    ];
    expect([path, isPassed(ours), ours.status]).toEqual([path, true, theirs.status]);
  }
});

test("a push is shown at once, for no request", async () => {
  const { simulator } = world;
  simulator.meter.reset();
  for (let count = 0; count < 3; count++) {
    push("feature/one");
    // Upstream sends several webhooks at once, and they may arrive in any order.
    await world.settle();
  }
  expect(simulator.meter.read().requests).toBe(0);
  await expectHeld(...everyPath());
});

test("a branch that is made is upstream's to show until it is read, and one that is deleted is gone at once", async () => {
  push("feature/two");
  await world.settle();
  expect(isPassed(await get("/branches"))).toBe(true);
  expect(isPassed(await get("/git/ref/heads/feature/two"))).toBe(true);
  // The mirror knows the other refs as before.
  await expectHeld(
    "/git/ref/heads/feature/one",
    "/git/ref/tags/noted",
    "/tags",
    "/git/matching-refs/heads/feature/one",
  );
  await pass(30_000);
  await expectHeld(...everyPath(), "/git/ref/heads/feature/two");
  deleteBranch(world.simulator.world, repository.ownerId, repository, "feature/two");
  await world.settle();
  await expectHeld(...everyPath(), "/git/ref/heads/feature/two", "/branches/feature/two");
});

test("tags that are made, moved and deleted are here after one more read", async () => {
  const { world: upstream } = world.simulator;
  createTags(upstream, repository.ownerId, repository, [
    { name: "v8", sha: main() },
    { name: "v9", sha: main(), message: "Nine" },
  ]);
  await pass(30_000);
  await expectHeld(...everyPath(), "/git/ref/tags/v8", "/git/ref/tags/v9");
  const tag = () => {
    const found = upstream.code.of(repository).tags.get("v9");
    if (!found) throw new Error("The tag is not there");
    return found;
  };
  moveTag(upstream, repository.ownerId, repository, tag(), [...repository.branches.values()].at(-1) ?? "");
  await pass(30_000);
  await expectHeld(...everyPath(), "/git/ref/tags/v9");
  deleteTag(upstream, repository.ownerId, repository, tag());
  await world.settle();
  await expectHeld(...everyPath(), "/git/ref/tags/v9");
});

test("what a write may have moved is upstream's to answer until its push is heard of, and is as before where nothing was done", async () => {
  const { simulator, ctx } = world;
  const write = (method: string, path: string, body?: object) =>
    askAt(world.url, method, at(path), { token: UPSTREAM_TOKEN, ...(body ? { body: JSON.stringify(body) } : {}) });
  const one = "/git/ref/heads/feature/one";
  const doubts = () => ctx.db.count(sql`select from refs where doubt is not null`);
  simulator.setFaults({ webhooks: { drop: 1 } });
  // Clients that fill in a URL template encode the slashes of a name.
  const moved = await write("PATCH", "/git/refs/heads%2Ffeature%2Fone", { sha: main(), force: true });
  expect([moved.status, isPassed(await get(one)), (await get(one)).body.object.sha]).toEqual([200, true, main()]);
  const made = await write("POST", "/git/refs", { ref: "refs/heads/written", sha: main() });
  expect([made.status, (await get("/git/ref/heads/written")).body.object.sha]).toEqual([201, main()]);
  expect((await write("DELETE", "/git/refs/heads/written")).status).toBe(204);
  expect((await get("/git/ref/heads/written")).status).toBe(404);
  simulator.setFaults({});
  await pass(30_000);
  expect(await doubts()).toBe(0);
  await expectHeld(...everyPath(), "/git/ref/heads/written");

  // The webhook of its push ends the doubt, so we need no request of our own.
  simulator.meter.reset();
  await write("POST", "/git/refs", { ref: "refs/heads/written", sha: main() });
  await world.settle();
  await write("DELETE", "/git/refs/heads/written");
  await world.settle();
  expect([await doubts(), simulator.meter.read().requests]).toEqual([0, 2]);
  const refused = await write("PATCH", "/git/refs/heads/feature/one", { sha: "d".repeat(40) });
  expect([refused.status, await doubts()]).toEqual([422, 0]);
  expect((await write("POST", "/git/refs", { ref: "refs/heads/feature/one", sha: main() })).status).toBe(422);
  await expectHeld(...everyPath());
});

test("a push after one that was lost is asked about", async () => {
  const { simulator } = world;
  simulator.setFaults({ webhooks: { drop: 1 } });
  push("feature/one");
  simulator.setFaults({});
  push("feature/one");
  await world.settle();
  expect(isPassed(await get("/git/ref/heads/feature/one"))).toBe(true);
  expect(isPassed(await get("/branches"))).toBe(true);
  await pass(30_000);
  await expectHeld(...everyPath());
});

test("a read that may be a lagging replica's does not undo what a push has told, and a later one does", async () => {
  const { ctx } = world;
  await pass(30_000);
  const before = repository.branches.get("feature/one");
  // Upstream shows the state before the push, as a replica does that has not heard of it.
  const [after, id] = ["c".repeat(40), repository.id];
  const payload = { ref: "refs/heads/feature/one", before, after, repository: { id, full_name: world.first } };
  expect(await forge(world, "push", payload)).toMatchObject({ status: "applied" });
  const shown = async () => (await get("/git/ref/heads/feature/one")).body.object.sha;
  expect(await shown()).toBe(after);
  for (const [ms, sha] of [
    [0, after],
    [30_000, before],
  ] as const) {
    // This makes the lists due now.
    await ctx.db.query(sql`update ref_lists set read_at = null`);
    await pass(ms);
    expect(await ctx.db.count(sql`select from ref_lists where read_at is not null`)).toBe(2);
    expect(await shown()).toBe(sha);
  }
});

test("more tags than are told, and whatever was lost, are found within an hour", async () => {
  const { simulator } = world;
  createTags(
    simulator.world,
    repository.ownerId,
    repository,
    ["w1", "w2", "w3", "w4"].map((name) => ({ name, sha: main() })),
  );
  simulator.setFaults({ webhooks: { drop: 1 } });
  push("feature/one");
  push("feature/lost");
  simulator.setFaults({});
  await pass(2 * 3_600_000);
  await expectHeld(...everyPath(), "/git/ref/tags/w4");
});

test("unchanged refs cost nothing", async () => {
  const { simulator } = world;
  await pass(2 * 3_600_000);
  simulator.meter.reset();
  await pass(2 * 3_600_000);
  const { charged, points, requests, routes } = simulator.meter.read();
  expect({ charged, points, requests }, JSON.stringify(routes)).toEqual({ charged: 0, points: 0, requests: 4 });
});

test("refs that are not all here are upstream's to answer", async () => {
  const { ctx } = world;
  const token = await createApiToken(ctx, { userId: repository.ownerId, canWrite: false });
  await settleParts({ ...ctx, config: { ...ctx.config, mirror: [] } });
  await settleParts(ctx);
  for (const path of [
    "/branches",
    "/branches/never-was",
    "/tags",
    "/git/ref/heads/never-was",
    "/git/matching-refs/heads/x",
  ])
    expect([path, isPassed(await get(path, token))]).toEqual([path, true]);
  await pass(60_000);
  await expectHeld(...everyPath());
});

test("one empty answer deletes no branch, and a second one does", async () => {
  const { ctx } = world;
  const mirrored = await ctx.jobReads.repository(repository.id);
  if (!mirrored) throw new Error("The repository is not mirrored");
  const held = () =>
    ctx.db.count(
      sql`select from refs where repository_id = ${repository.id} and kind = 'heads' and deleted_at is null`,
    );
  const before = await held();
  expect(before).toBeGreaterThan(0);
  let empty = 1;
  const faulty = withUpstream(ctx, {
    get: async (path, options) => {
      const answer = await ctx.upstream.get(path, options);
      const isEmptied = /matching-refs/.test(path) && empty-- > 0;
      return isEmptied && answer.kind === "ok" ? { ...answer, body: [] } : answer;
    },
  });
  world.advance(60_000);
  await ctx.db.query(sql`delete from validators`);
  await fetchAndStoreRefs(faulty, mirrored, "heads");
  expect(await held()).toBe(before);
  await ctx.db.query(sql`delete from validators`);
  empty = 2;
  await fetchAndStoreRefs(faulty, mirrored, "heads");
  expect(await held()).toBe(0);
});
