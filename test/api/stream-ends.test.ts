import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { apiTokenId, createApiToken, revokeApiTokens } from "../../src/api/callers/tokens.ts";
import { PATIENCE_MS } from "../support/bounds.ts";
import { store, storeAndTell } from "../support/mirrored.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";
import { type Event, openStream } from "./event-stream.ts";

// A stream shows what a request would be shown at that moment, and for the same price.

let world: ApiWorld;
let ahead = 0;
let open: ApiWorld["repositories"][number];
let hidden: ApiWorld["repositories"][number];
/** An issue of the open repository, and how often it was changed. */
let issue: Event;
let changes = 0;
beforeAll(async () => {
  world = await openApiWorld({ repositories: 3, issues: 30, clock: { now: () => new Date(Date.now() + ahead) } });
  const of = (isPrivate: boolean) => world.repositories.find((one) => one.private === isPrivate);
  const [first, second] = [of(false), of(true)];
  if (!first || !second) throw new Error("The world needs a public repository and a private one");
  [open, hidden] = [first, second];
  const rows = (await world.getUpstream(`/repos/${open.fullName}/issues?state=all&per_page=100`)).body as Event[];
  issue = rows.find((row) => !row.pull_request);
});
afterAll(() => world?.[Symbol.asyncDispose]());

/** As if upstream had shown a change of the issue. */
async function change(more: object = {}): Promise<void> {
  changes += 1;
  const updated_at = new Date(Date.parse(issue.updated_at) + changes * 60_000).toISOString().replace(/\.\d+Z$/, "Z");
  const at = { ...open, htmlUrl: `https://github.com/${open.fullName}` };
  await storeAndTell(
    world.ctx,
    world.upstream,
    "issue",
    { ...issue, title: `Change ${changes}`, updated_at, ...more },
    at,
  );
}

const QUERY = "subscription($id: ID!) { issueChanged(repositoryId: $id) { number issue { title } } }";
const nodeId = async () => (await world.get(`/repos/${open.fullName}`)).body.node_id;
const subscribe = async (token: string, url = world.url) =>
  openStream({ url, token, query: QUERY, variables: { id: await nodeId() } });
type Stream = Awaited<ReturnType<typeof subscribe>>;

async function expectShown(stream: Stream): Promise<void> {
  await change();
  expect(await stream.next()).toMatchObject({ data: { issueChanged: { issue: { title: `Change ${changes}` } } } });
}

async function expectEnd(stream: Stream, error: object): Promise<void> {
  const event = await stream.next();
  expect(event.errors).toEqual([expect.objectContaining(error)]);
  expect(event.data ?? null).toBeNull();
  expect(await stream.next()).toBeNull();
}

let made = 0;
function upstreamToken(repositories: string[] = []): { token: string; login: string } {
  made += 1;
  const [token, login] = [`ghp_of_follower_${made}`, `follower-${made}`];
  world.upstream.tokens.create({ token, login, repositories });
  return { token, login };
}

const ownToken = (hourlyLimit: number | null = null) =>
  createApiToken(world.ctx, { userId: world.userId, canWrite: false, hourlyLimit });

/** Past the time for which upstream's word about a caller is believed. */
function pass(): void {
  ahead += 61_000;
}

test("it ends once the token of ours is revoked", async () => {
  const token = await ownToken();
  await using stream = await subscribe(token);
  await expectShown(stream);
  await revokeApiTokens(world.ctx, [apiTokenId(token)]);
  // Each process believes in a token for ten seconds.
  const next = async () => {
    await change();
    return await stream.next();
  };
  await expect
    .poll(next, { timeout: PATIENCE_MS, interval: 500 })
    .toEqual({ errors: [{ message: "Bad credentials" }] });
  expect(await stream.next()).toBeNull();
});

test("it ends once upstream has revoked the token", async () => {
  const { token } = upstreamToken();
  await using stream = await subscribe(token);
  await expectShown(stream);
  world.upstream.tokens.delete(token);
  pass();
  await change();
  await expectEnd(stream, { message: "Bad credentials" });
});

test("it ends once the token sees less, or more, of anything", async () => {
  const { token, login } = upstreamToken([hidden.fullName]);
  await using stream = await subscribe(token);
  await expectShown(stream);
  pass();
  await expectShown(stream);
  world.upstream.tokens.delete(token);
  world.upstream.tokens.create({ token, login, repositories: [] });
  pass();
  await change();
  await expectEnd(stream, { type: "FORBIDDEN", message: "What this token may see has changed. Subscribe again." });
});

test("it ends once the repository is private", async () => {
  const { token } = upstreamToken();
  await using stream = await subscribe(token);
  await using owners = await subscribe(world.token);
  await expectShown(stream);
  await owners.next();
  const { body } = await world.getUpstream(`/repos/${open.fullName}`);
  await store(world.ctx, world.upstream, "repository", { ...body, private: true, visibility: "private" });
  await change();
  await expectEnd(stream, { type: "NOT_FOUND" });
  expect(await owners.next()).toMatchObject({ data: { issueChanged: { number: issue.number } } });
  await store(world.ctx, world.upstream, "repository", body);
});

test("it is one of a few that a caller may have at once", async () => {
  const url = await world.openSibling({ STREAMS_PER_CALLER: "2" });
  await using _first = await subscribe(world.token, url);
  const second = await subscribe(world.token, url);
  // Another token of the same account.
  const refused = await subscribe(await ownToken(), url);
  expect(refused.answer.headers.get("content-type")).toMatch(/json/);
  expect(await refused.answer.json()).toEqual({
    errors: [{ type: "RESOURCE_LIMITS_EXCEEDED", message: "You have 2 streams open, and no more are served." }],
  });
  await using _others = await subscribe(upstreamToken().token, url);
  expect(_others.answer.headers.get("content-type")).toMatch(/event-stream/);
  await second[Symbol.asyncDispose]();
  const retried = async () => {
    await using again = await subscribe(world.token, url);
    return again.answer.headers.get("content-type");
  };
  await expect.poll(retried).toMatch(/event-stream/);
});

test("it costs its query's price for each event, and ends when the quota is spent", async () => {
  const token = await ownToken(3);
  await using stream = await subscribe(token);
  await expectShown(stream);
  await expectShown(stream);
  await change();
  await expectEnd(stream, { type: "RATE_LIMITED", message: `API rate limit exceeded for user ID ${world.userId}.` });
});

test("it ends when its time is over", async () => {
  const url = await world.openSibling({ STREAMS_PER_CALLER: "1" }, { lifetimeMs: 300 });
  // A caller may have one stream here, so the second one takes the place of the first.
  for (let turn = 0; turn < 2; turn++) {
    await using stream = await subscribe(world.token, url);
    await expectEnd(stream, { type: "RESOURCE_LIMITS_EXCEEDED", message: expect.stringMatching(/Subscribe again/) });
  }
});

test("its reader is dropped if they do not read", async () => {
  const url = await world.openSibling({}, { unreadMs: 100 });
  const fields = Array.from({ length: 16 }, (_, at) => `body${at}: body`).join(" ");
  const query = `subscription($id: ID!) { issueChanged(repositoryId: $id) { number issue { ${fields} } } }`;
  const asking = request(`${url}/graphql`, {
    method: "POST",
    headers: { authorization: `Bearer ${world.token}`, "user-agent": "test", accept: "text/event-stream" },
  });
  asking.end(JSON.stringify({ query, variables: { id: await nodeId() } }));
  // No type can say what an event comes with.
  const [answer] = (await once(asking, "response")) as [IncomingMessage];
  answer.pause();
  const listeners = async () => {
    await change({ body: "x".repeat(60_000) });
    const rows = await world.ctx.db.query(sql`
      select from pg_stat_activity where application_name = 'tain subscriptions' and datname = current_database()`);
    return rows.length;
  };
  await expect.poll(listeners, { timeout: PATIENCE_MS }).toBe(0);
  asking.destroy();
});
