import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { addAsset, createRelease, deleteRelease, download, editRelease } from "../../src/simulator/changes/releases.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { addCode } from "../../src/simulator/generate/generate-code.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import type { Repository } from "../../src/simulator/world/records.ts";
import type { Release } from "../../src/simulator/world/records-code.ts";
import { settleParts } from "../../src/sync/following/parts.ts";
import { askAt, rebased } from "../support/asking.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { markResourceListsDue } from "../support/due.ts";
import { passRound } from "../support/rounds.ts";
import { countStatements } from "../support/statements.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

// Releases, from the webhook to the answer. Each answer must equal upstream's, and the test knows whether upstream was
// asked.

let world: TestWorld;
let repository: Repository;
const PUSHER = "ghp_pusher";
const READER = "ghp_reader";

beforeAll(async () => {
  world = await openWorld({
    env: { MIRROR: "releases" },
    fill: ({ world: filled }) => {
      generateWorld(filled, { seed: 7, repositories: 1, issues: 3, pulls: 2 });
      for (const one of filled.repositories.values()) {
        one.visibility = "private";
        addCode(filled, one, {}, 7, filled.now());
      }
    },
  });
  const { simulator } = world;
  const [owner = "", name = ""] = world.first.split("/");
  const found = simulator.world.repositoryByName(owner, name)?.repository;
  if (!found) throw new Error("The generated repository is not there");
  repository = found;
  for (const [token, login, role] of [
    [PUSHER, "pusher", "push"],
    [READER, "reader", "pull"],
  ] as const) {
    const { userId } = simulator.tokens.create({ token, login });
    repository.collaborators.set(userId, role);
  }
  for (let at = 0; at < 3; at++) release(`v${at}.0`);
  release("v9-draft", { draft: true });
  await world.mirror(world.first);
  await world.listen(world.first);
  await pass(60_000);
});
afterAll(() => world?.[Symbol.asyncDispose]());

function release(tagName: string, more: Partial<Parameters<typeof createRelease>[2]> = {}): Release {
  (world.simulator.world.clock as SettableClock).advance(2_000);
  return createRelease(world.simulator.world, repository.ownerId, {
    ...{ repository, tagName, name: `Release ${tagName}`, body: "What is *new*" },
    ...more,
  });
}

const pass = (ms: number) => passRound(world, ms, markResourceListsDue);

const at = (path: string) => `/repos/${world.first}${path}`;
const get = (path: string, token: string | null = world.token) => askAt(world.url, "GET", at(path), { token });
const upstreams = (path: string, token = UPSTREAM_TOKEN) => askAt(world.simulator.url, "GET", at(path), { token });
const isPassed = ({ headers }: { headers: Headers }) => headers.has("x-tain-passed-through");

/**
 * Expects the mirror to answer from its own rows, and as upstream answers this token. By default the token may not
 * push.
 */
async function expectHeld(paths: readonly string[], token = READER): Promise<void> {
  for (const path of paths) {
    const [ours, theirs] = [await get(path, token), await upstreams(path, token)];
    expect([path, isPassed(ours), ours.status]).toEqual([path, false, theirs.status]);
    if (theirs.status === 200) expect(ours.body, path).toEqual(rebased(theirs.text, world.simulator.url, world.url));
  }
}

/** Paths of the lists, and of so many of the newest releases. */
const everyPath = (most = 2) => [
  "/releases",
  "/releases?per_page=2",
  "/releases?per_page=2&page=2",
  "/releases/latest",
  ...[...world.simulator.world.code.of(repository).releases.values()]
    .slice(-most)
    .flatMap(({ id, tagName }) => [`/releases/${id}`, `/releases/tags/${encodeURIComponent(tagName)}`]),
];

const tags = ({ body }: { body: { tag_name: string }[] }) => body.map(({ tag_name }) => tag_name);

test("releases are copied, and answered as upstream answers them to readers and to who may push", async () => {
  await expectHeld(everyPath(100));
  await expectHeld(everyPath(100), PUSHER);
  expect((await get("/releases?per_page=2", PUSHER)).headers.get("link")).toContain('page=2>; rel="next"');
});

test("drafts are shown only to who may push", async () => {
  const [draft] = [...world.simulator.world.code.of(repository).releases.values()].filter(({ draft }) => draft);
  expect(tags(await get("/releases", PUSHER))).toContain("v9-draft");
  for (const token of [READER, world.token]) {
    expect(tags(await get("/releases", token))).not.toContain("v9-draft");
    const hidden = await get(`/releases/${draft?.id}`, token);
    expect([hidden.status, isPassed(hidden)]).toEqual([404, false]);
  }
});

const FIELDS = `id databaseId tagName name description createdAt publishedAt updatedAt isDraft isLatest isPrerelease url resourcePath
  author { login } releaseAssets(first: 5) { totalCount nodes { id name contentType size downloadCount downloadUrl createdAt } }`;

async function query(inner: string, token: string) {
  const [owner, name] = world.first.split("/");
  const text = `query($owner: String!, $name: String!) { repository(owner: $owner, name: $name) { ${inner} } }`;
  const body = JSON.stringify({ query: text, variables: { owner, name } });
  const [ours, theirs] = await Promise.all([
    askAt(world.url, "POST", "/graphql", { token, body }),
    askAt(world.simulator.url, "POST", "/graphql", { token: token === world.token ? READER : token, body }),
  ]);
  return { ours, theirs };
}

test("GraphQL shows them as upstream does, and drafts to the same", async () => {
  const [tagged] = world.simulator.world.code.of(repository).releases.values();
  if (!tagged) throw new Error("There is no release");
  addAsset(world.simulator.world, repository.ownerId, tagged, { name: "tain.zip" });
  await pass(2 * 3_600_000);
  for (const token of [READER, PUSHER, world.token])
    for (const inner of [
      `releases(first: 3) { totalCount pageInfo { hasNextPage hasPreviousPage } nodes { ${FIELDS} } }`,
      `releases(last: 2, orderBy: { field: CREATED_AT, direction: ASC }) { nodes { tagName } }`,
      `latestRelease { ${FIELDS} }`,
      `release(tagName: "${tagged.tagName}") { ${FIELDS} } none: release(tagName: "v9-draft") { id }`,
    ]) {
      const { ours, theirs } = await query(inner, token);
      expect([isPassed(ours), ours.body], inner).toEqual([false, theirs.body]);
    }
  for (const inner of ["releases(first: 3, orderBy: { field: NAME, direction: ASC }) { nodes { tagName } }"]) {
    const { ours, theirs } = await query(inner, READER);
    expect([isPassed(ours), ours.body]).toEqual([true, theirs.body]);
    expect((await query(inner, world.token)).ours.body.errors).toMatchObject([{ type: "UNPROCESSABLE" }]);
  }
});

test("few statements read the releases of many tags", async () => {
  const [owner, name] = world.first.split("/");
  const asked = [...world.simulator.world.code.of(repository).releases.values()].map(({ tagName }) => tagName);
  const named = [...asked, ...Array.from({ length: 40 }, (_, one) => `none-${one}`)];
  const fields = named.map((tag, one) => `r${one}: release(tagName: ${JSON.stringify(tag)}) { tagName }`).join(" ");
  const query = `{ repository(owner: "${owner}", name: "${name}") { ${fields} latestRelease { tagName } } }`;
  using statements = countStatements();
  const { body } = await askAt(world.url, "POST", "/graphql", { token: PUSHER, body: JSON.stringify({ query }) });
  expect(body.errors).toBeUndefined();
  for (const [one, tag] of named.entries())
    expect(body.data.repository[`r${one}`]).toEqual(one < asked.length && tag !== "v9-draft" ? { tagName: tag } : null);
  expect(statements.texts().filter((text) => /from releases y/.test(text)).length).toBeLessThan(10);
});

test("in a public repository with drafts nobody knows who may push, so lists are upstream's to answer", async () => {
  const stranger = "ghp_stranger";
  world.simulator.tokens.create({ token: stranger, login: "stranger" });
  repository.visibility = "public";
  await world.ctx.db.query(sql`update repositories set private = false where id = ${repository.id}`);
  await world.ctx.db.transaction(async (tx) => tx.touch([repository.id]));
  try {
    for (const token of [PUSHER, stranger]) {
      const list = await get("/releases", token);
      expect([isPassed(list), list.body]).toEqual([
        true,
        rebased((await upstreams("/releases", token)).text, world.simulator.url, world.url),
      ]);
      await expectHeld(["/releases/latest", "/releases/tags/v1.0"], token);
    }
    const anonymous = await get("/releases", null);
    expect([isPassed(anonymous), tags(anonymous)]).toEqual([false, tags(await upstreams("/releases", stranger))]);
  } finally {
    repository.visibility = "private";
    await world.ctx.db.query(sql`update repositories set private = true where id = ${repository.id}`);
    await world.ctx.db.transaction(async (tx) => tx.touch([repository.id]));
  }
});

test("what webhooks tell is shown at once, and which is the latest once upstream has said so", async () => {
  const { simulator } = world;
  const made = release("v4.0");
  await world.settle();
  await expectHeld(["/releases", `/releases/${made.id}`, "/releases/tags/v4.0"]);
  // Until the list is read, upstream answers this question. So no caller is shown the release that was the latest
  // before.
  const early = await get("/releases/latest", READER);
  expect([isPassed(early), early.body.tag_name]).toEqual([true, "v4.0"]);
  await pass(30_000);
  await expectHeld(everyPath());

  editRelease(simulator.world, repository.ownerId, made, { body: "Said better", name: null });
  await world.settle();
  await expectHeld(["/releases", `/releases/${made.id}`]);
  editRelease(simulator.world, repository.ownerId, made, { makeLatest: false });
  await pass(30_000);
  await expectHeld(everyPath());
  expect((await get("/releases/latest", READER)).body.tag_name).not.toBe("v4.0");

  editRelease(simulator.world, repository.ownerId, made, { prerelease: true });
  await pass(30_000);
  await expectHeld(everyPath());
  editRelease(simulator.world, repository.ownerId, made, { draft: true });
  await pass(30_000);
  await expectHeld(everyPath());
  await expectHeld(everyPath(), PUSHER);
  deleteRelease(simulator.world, repository.ownerId, made);
  await pass(60_000);
  await expectHeld([...everyPath(), `/releases/${made.id}`], PUSHER);
});

test("writes are sent on, and are here when their answer leaves", async () => {
  const write = (method: string, path: string, body?: object) =>
    askAt(world.url, method, at(path), { token: PUSHER, ...(body ? { body: JSON.stringify(body) } : {}) });
  // The webhook is lost.
  world.simulator.setFaults({ webhooks: { drop: 1 } });
  const made = await write("POST", "/releases", { tag_name: "v5.0", name: "Five" });
  expect([made.status, made.body.tag_name]).toEqual([201, "v5.0"]);
  await expectHeld([`/releases/${made.body.id}`, "/releases/tags/v5.0", "/releases"]);
  expect(isPassed(await get("/releases/latest", READER))).toBe(true);

  expect((await write("PATCH", `/releases/${made.body.id}`, { name: "Five again" })).body.name).toBe("Five again");
  await expectHeld([`/releases/${made.body.id}`, "/releases"]);
  expect((await write("DELETE", `/releases/${made.body.id}`)).status).toBe(204);
  await expectHeld([`/releases/${made.body.id}`, "/releases/tags/v5.0", "/releases"]);
  world.simulator.setFaults({});
  await world.settleMarks();
  await pass(30_000);
  await expectHeld(everyPath());
});

test("lost webhooks, new assets and downloads are found when the list is read again", async () => {
  const { simulator } = world;
  const [first, second] = [...simulator.world.code.of(repository).releases.values()].filter(({ draft }) => !draft);
  if (!first || !second) throw new Error("There are too few releases");
  simulator.setFaults({ webhooks: { drop: 1 } });
  const made = release("v6.0");
  editRelease(simulator.world, repository.ownerId, second, { body: "Nobody heard of it" });
  deleteRelease(simulator.world, repository.ownerId, first);
  const asset = addAsset(simulator.world, repository.ownerId, made, { name: "tain.tar.gz" });
  simulator.setFaults({});
  await pass(2 * 3_600_000);
  await pass(60_000);
  await expectHeld([...everyPath(), `/releases/${first.id}`]);
  download(simulator.world, made, asset.id);
  await pass(2 * 3_600_000);
  await expectHeld(everyPath());
  expect((await get(`/releases/${made.id}`)).body.assets).toMatchObject([{ name: "tain.tar.gz", download_count: 1 }]);
});

test("the assets that come after a release are here soon", async () => {
  const made = release("v7.0");
  await pass(30_000);
  addAsset(world.simulator.world, repository.ownerId, made, { name: "later.zip" });
  await pass(6 * 60_000);
  await expectHeld(everyPath());
  expect((await get(`/releases/${made.id}`)).body.assets).toHaveLength(1);
});

test("unchanged releases cost nothing", async () => {
  const { simulator } = world;
  await pass(2 * 3_600_000);
  simulator.meter.reset();
  await pass(2 * 3_600_000);
  const { charged, points, requests, routes } = simulator.meter.read();
  expect({ charged, points, requests }, JSON.stringify(routes)).toEqual({ charged: 0, points: 0, requests: 2 });
});

test("a list whose pages were stored and whose end was not reached is read whole", async () => {
  const { simulator, ctx } = world;
  const gone = release("v8.0");
  await pass(30_000);
  simulator.setFaults({ webhooks: { drop: 1 } });
  deleteRelease(simulator.world, repository.ownerId, gone);
  simulator.setFaults({});
  // This is the state that a process leaves which is killed before it has looked for releases that the pages lack.
  const list = await upstreams("/releases?per_page=100");
  expect(list.status).toBe(200);
  await ctx.db.query(sql`update release_lists set is_half_stored = true where repository_id = ${repository.id}`);
  await pass(2 * 3_600_000);
  await pass(60_000);
  await expectHeld([...everyPath(), `/releases/${gone.id}`]);
});

test("a list that is not all here is upstream's to answer, and Tain's own tokens read no absence", async () => {
  const { ctx } = world;
  const token = await createApiToken(ctx, { userId: repository.ownerId, canWrite: false });
  await settleParts({ ...ctx, config: { ...ctx.config, mirror: [] } });
  await settleParts(ctx);
  const ours = await get("/releases", READER);
  expect([isPassed(ours), ours.body]).toEqual([
    true,
    rebased((await upstreams("/releases", READER)).text, world.simulator.url, world.url),
  ]);
  expect((await get("/releases", token)).status).toBe(403);
  await pass(60_000);
  await expectHeld(everyPath());
});
