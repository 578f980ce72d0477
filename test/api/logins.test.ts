import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ApiTokens, hashOf, mayBeUpstreams } from "../../src/api/callers/caller.ts";
import { UpstreamCallers } from "../../src/api/callers/upstream-callers.ts";
import { type Answered, askAt } from "../support/asking.ts";
import { testRedis } from "../support/database.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

// Unknown credentials cost upstream little, and keep nobody else out.

const [PER_ADDRESS, ALL] = [5, 12];

let world: ApiWorld;
let aheadMs = 0;
/** A web process of a new day, behind a proxy that says whence requests come. */
let url: string;
let repo: string;
beforeAll(async () => {
  world = await openApiWorld({ repositories: 2, issues: 40, clock: { now: () => new Date(Date.now() + aheadMs) } });
  repo = `/repos/${world.repositories.find((one) => !one.private)?.fullName}`;
});
afterAll(() => world?.[Symbol.asyncDispose]());
beforeEach(async () => {
  url = await world.openSibling({
    FAILED_LOGINS_PER_ADDRESS: `${PER_ADDRESS}`,
    FAILED_LOGINS: `${ALL}`,
    UPSTREAM_CALLER_TTL: "2s",
    TRUSTED_PROXIES: "loopback",
    REDIS_PREFIX: testRedis().prefix,
  });
  world.upstream.faults.set({});
  world.upstream.meter.reset();
});

const HOME = "192.0.2.1";
const random = () => `ghp_${randomBytes(18).toString("hex")}`;
let made = 0;
function good(): string {
  const token = random();
  world.upstream.tokens.create({ token, login: `visitor-${++made}` });
  return token;
}

type Way = "REST" | "GraphQL" | "subscription";
function ask(token: string | null, address = HOME, way: Way = "REST"): Promise<Answered> {
  const headers = { "x-forwarded-for": address };
  if (way === "REST") return askAt(url, "GET", "/versions", { token, headers });
  const body = JSON.stringify({ query: way === "GraphQL" ? "{ viewer { login } }" : "subscription { __typename }" });
  const accept = way === "GraphQL" ? {} : { accept: "text/event-stream" };
  return askAt(url, "POST", "/graphql", { token, headers: { ...headers, ...accept }, body });
}

/** How often upstream was asked about tokens that are none. */
function failures(): number {
  const callers = Object.entries(world.upstream.meter.read().callers).filter(([name]) => name.startsWith("ip:"));
  return callers.flatMap(([, buckets]) => Object.values(buckets)).reduce((sum, { requests }) => sum + requests, 0);
}

async function storm(times = 20, addresses = [HOME]): Promise<Answered[]> {
  const answers: Answered[] = [];
  const ways: Way[] = ["REST", "GraphQL", "subscription"];
  for (let at = 0; at < times; at++)
    answers.push(...(await Promise.all(addresses.map((address) => ask(random(), address, ways[at % 3])))));
  return answers;
}

function expectLockedOut({ status, headers, body }: Answered): void {
  expect([status, body.message]).toEqual([403, "Maximum number of login attempts exceeded. Please try again later."]);
  const seconds = Number(headers.get("retry-after"));
  expect(seconds).toBeGreaterThan(0);
  expect(seconds).toBeLessThanOrEqual(61);
}

test("the addresses of one network fail together", async () => {
  await storm(3, ["192.0.2.44", "192.0.2.45"]);
  expect(failures()).toBe(PER_ADDRESS);
  expectLockedOut(await ask(random(), "192.0.2.46"));
  expect((await ask(good(), "192.0.3.46")).status).toBe(200);
});

describe("random tokens", () => {
  test("of one address are asked about as often as it may fail, by REST, GraphQL and streams alike", async () => {
    const answers = await storm();
    expect(failures()).toBe(PER_ADDRESS);
    for (const { status, body } of answers.slice(0, PER_ADDRESS))
      expect([status, body.message]).toEqual([401, "Bad credentials"]);
    for (const answer of answers.slice(PER_ADDRESS)) expectLockedOut(answer);
  });

  test("of many addresses cost upstream the budget of a minute, and no more", async () => {
    const addresses = Array.from({ length: 10 }, (_, at) => `198.51.${at}.7`);
    const answers = await storm(20, addresses);
    const count = (of: number) => answers.filter(({ status }) => status === of).length;
    const figures = {
      tokens: answers.length,
      asked: failures(),
      "401": count(401),
      "403": count(403),
      "503": count(503),
    };
    process.stdout.write(`${JSON.stringify(figures)}\n`);
    expect(failures()).toBe(ALL);
    expect(count(401)).toBe(ALL);
    expect(count(401) + count(403) + count(503)).toBe(answers.length);
    const later = answers.find(({ status }) => status === 503);
    expect(Number(later?.headers.get("retry-after"))).toBeLessThanOrEqual(61);
  });

  test("all at once are asked about a few at a time, and known callers write meanwhile", async () => {
    const known = good();
    expect((await ask(known)).status).toBe(200);
    world.upstream.meter.reset();
    world.upstream.faults.set({ http: [{ kind: "slow", delayMs: 500, match: "GET /user" }] });
    const storming = Array.from({ length: 40 }, (_, at) => ask(random(), `203.0.${at}.7`));
    const body = '{"title":"Meanwhile"}';
    const written = await askAt(url, "POST", `${repo}/issues`, {
      token: known,
      body,
      headers: { "x-forwarded-for": HOME },
    });
    expect(written.status).toBe(201);
    await Promise.all(storming);
    // The write's own request may be among them.
    expect(world.upstream.meter.read().maxConcurrent).toBeLessThanOrEqual(9);
    expect(failures()).toBe(ALL);
  });

  test("that were refused are remembered: again they cost nothing, and lock nobody out", async () => {
    const bad = random();
    for (let at = 0; at < 30; at++) expect((await ask(bad)).status).toBe(401);
    expect(failures()).toBe(1);
    expect((await ask(good())).status).toBe(200);
  });

  test("that upstream forbids, or fails to answer about, are not asked about again and again either", async () => {
    const known = good();
    expect((await ask(known)).status).toBe(200);
    aheadMs += 3_000;
    for (const [status, token] of [
      [403, known],
      [403, good()],
      [502, good()],
    ] as const) {
      world.upstream.faults.set({ http: [{ kind: "status", status }] });
      world.upstream.meter.reset();
      const answers = [];
      for (let at = 0; at < 20; at++) answers.push((await ask(token)).status);
      expect(answers).toEqual(answers.map(() => (status === 403 ? 403 : 503)));
      expect(world.upstream.meter.read().requests).toBeLessThanOrEqual(2);
    }
    world.upstream.faults.set({});
    expect((await ask(good())).status).toBe(200);
  });

  test("that cannot be tokens are refused unasked, and lock nobody out", async () => {
    const none = ["tain_short", `tain_${"-".repeat(40)}`, "half;a;token", "t\u00f6ken", "x".repeat(5_000)];
    for (let at = 0; at < 30; at++) expect((await ask(none[at % none.length] ?? "")).status).toBe(401);
    expect(failures()).toBe(0);
    expect((await ask(good())).status).toBe(200);
  });

  test("of Tain's own form are not looked for once their address is locked out", async () => {
    for (let at = 0; at < PER_ADDRESS; at++)
      expect((await ask(`tain_${randomBytes(20).toString("hex")}`)).status).toBe(401);
    expectLockedOut(await ask(`tain_${randomBytes(20).toString("hex")}`));
    expect(failures()).toBe(0);
  });
});

describe("during a storm from their own address", () => {
  test("callers without a token keep all of their quota", async () => {
    const before = await ask(null);
    await storm();
    const after = await ask(null);
    const left = ({ headers }: Answered) => Number(headers.get("x-ratelimit-remaining"));
    expect(left(after)).toBe(left(before) - 1);
  });

  test("callers that were known before go on, also when upstream's word about them is old", async () => {
    const [theirs, ours] = [good(), world.readToken];
    for (const token of [theirs, ours]) expect((await ask(token)).status).toBe(200);
    await storm();
    aheadMs += 3_000;
    for (const token of [theirs, ours]) expect((await ask(token)).status).toBe(200);
    expectLockedOut(await ask(random()));
  });

  test("newcomers get in again within a minute, and at once from elsewhere", async () => {
    await storm();
    const newcomer = good();
    expectLockedOut(await ask(newcomer));
    expect((await ask(newcomer, "192.0.9.9")).status).toBe(200);
    aheadMs += 61_000;
    expect((await ask(good())).status).toBe(200);
  });
});

describe("while invented tokens of other networks use up the budget of all", () => {
  const elsewhere = Array.from({ length: 6 }, (_, at) => `203.0.${at}.7`);

  test("a caller whom a new process does not know gets in from where a token was accepted lately", async () => {
    const redis = testRedis().prefix;
    const settings = { FAILED_LOGINS: `${ALL}`, TRUSTED_PROXIES: "loopback", REDIS_PREFIX: redis };
    url = await world.openSibling(settings);
    const known = good();
    expect((await ask(known)).status).toBe(200);
    aheadMs += 2 * 24 * 3_600_000;
    url = await world.openSibling(settings);
    await storm(4, elsewhere);
    expect((await ask(good(), "192.0.9.9")).status).toBe(503);
    expect((await ask(known)).status).toBe(200);
    expect((await ask(good(), "192.0.2.200")).status).toBe(200);
    expect(failures()).toBe(ALL);
  });

  test("the reserve is bounded as well, and a network's failures there are counted as ever", async () => {
    for (const address of [HOME, "192.0.3.1", "192.0.4.1"]) expect((await ask(good(), address)).status).toBe(200);
    await storm(4, elsewhere);
    world.upstream.meter.reset();
    await storm(6, [HOME]);
    expect(failures()).toBe(PER_ADDRESS);
    expectLockedOut(await ask(random()));
    await storm(6, ["192.0.3.1", "192.0.4.1"]);
    expect(failures()).toBe(ALL);
    expect((await ask(good(), "192.0.4.1")).status).toBe(503);
  });
});

test("many newcomers of one address at once all get in: who is let in has not failed", async () => {
  const answers = await Promise.all(Array.from({ length: 30 }, () => ask(good())));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  await storm(PER_ADDRESS + 1);
  expect(failures()).toBe(PER_ADDRESS);
});

test("ten thousand tokens that are none push no caller out of memory", async () => {
  const [theirs, ours] = [good(), world.readToken];
  const upstreams = new UpstreamCallers(world.ctx);
  const tokens = new ApiTokens(world.ctx);
  await upstreams.find({ text: theirs, hash: hashOf(theirs) }, (ask) => ask());
  await tokens.find(ours);
  for (let at = 0; at < 10_100; at++) {
    await upstreams.find({ text: `ghp_${at}`, hash: hashOf(`ghp_${at}`) }, async () => null);
    await tokens.find(`tain_${at}`, async () => null);
  }
  expect(upstreams.recall(hashOf(theirs))?.userId).toBeGreaterThan(0);
  expect(tokens.recall(hashOf(ours))?.userId).toBe(world.userId);
  await Promise.all([upstreams.close(), tokens.close()]);
});

test("an upstream that is away locks nobody out", async () => {
  world.upstream.faults.set({ http: [{ kind: "status", status: 502 }] });
  for (let at = 0; at < PER_ADDRESS + 2; at++) expect((await ask(good())).status).toBe(503);
  world.upstream.faults.set({});
  expect((await ask(good())).status).toBe(200);
});

test("of GitHub's tokens the forms are known; elsewhere anything may be one that a header can hold", () => {
  const github = "https://api.github.com";
  const long = `ghs_123_${"e".repeat(200)}.${"p".repeat(200)}.${"s-_".repeat(30)}`;
  const tokens = [
    "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",
    `github_pat_${"a1_".repeat(27)}`,
    `${"0123456789abcdef".repeat(2)}01234567`,
    long,
    "eyJh.eyJp.c2ln",
  ];
  for (const token of tokens) expect(mayBeUpstreams(token, github), token).toBe(true);
  for (const token of [
    "secret",
    "ghp_short",
    "ghp_zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq18",
    "password123",
    "0".repeat(39),
  ]) {
    expect(mayBeUpstreams(token, github), token).toBe(false);
    expect(mayBeUpstreams(token, "https://ghes.example/api/v3"), token).toBe(true);
  }
});
