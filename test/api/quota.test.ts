import { Redis } from "ioredis";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import type { Caller } from "../../src/api/callers/permissions.ts";
import { wholeAccess } from "../../src/api/callers/permissions.ts";
import { CallerQuota } from "../../src/api/callers/quota.ts";
import { CODE_RIGHTS } from "../../src/kinds/contract/rights.ts";
import { openLog } from "../../src/operations/log.ts";
import { testConfig } from "../support/config.ts";
import { testRedis } from "../support/database.ts";

const user = (userId: number, hourlyLimit: number | null = null): Caller => ({
  kind: "user",
  userId,
  quotaName: `u${userId}`,
  hourlyLimit,
  class: "",
  scopes: null,
  by: {
    of: "own",
    token: {
      id: "0",
      userId,
      kinds: { issues: "read", pulls: "read", code: CODE_RIGHTS, hooks: false },
      repositories: "all",
      access: wholeAccess("all"),
      payer: { kind: "user", quotaName: `u${userId}`, hourlyLimit, class: "", scopes: null },
    },
  },
});
const person = user(42);
const stranger: Caller = { kind: "anonymous", address: "192.0.2.7" };

let now: Date;
let redis: { url: string; prefix: string };
beforeEach(() => {
  now = new Date("2026-11-21T10:00:00Z");
  redis = testRedis();
});

/** One process' worth of quota. */
async function openQuota(env: NodeJS.ProcessEnv = {}, url = redis.url): Promise<CallerQuota> {
  const config = testConfig(
    { database: "postgres://nowhere/x", redis: { ...redis, url }, upstream: "http://127.0.0.1:1" },
    env,
  );
  const client = new Redis(url, { enableOfflineQueue: false, maxRetriesPerRequest: 1, retryStrategy: () => null });
  client.on("error", () => {});
  await new Promise<void>((resolve) => {
    client.once("ready", resolve);
    client.once("close", resolve);
  });
  const quota = new CallerQuota({
    config,
    redis: client,
    clock: { now: () => now },
    log: openLog(config, { name: "test" }),
  });
  onTestFinished(async () => {
    await quota.close();
    client.disconnect();
  });
  return Object.assign(quota, { client });
}

async function spendUntilSpent(quotas: CallerQuota[], caller: Caller, most: number): Promise<number> {
  let served = 0;
  for (let at = 0; at < most; at++) {
    const { isSpent } = await (quotas[at % quotas.length] as CallerQuota).spend(caller, "core", 1);
    if (!isSpent) served++;
  }
  return served;
}

describe("across processes", () => {
  test("a caller gets the limit, exactly and never more, however the load is spread", async () => {
    for (const [at, limit] of [5_000, 777, 60].entries()) {
      const caller = user(1_000 + at);
      const quotas = [
        await openQuota({ RATE_LIMIT_USER: `${limit}` }),
        await openQuota({ RATE_LIMIT_USER: `${limit}` }),
        await openQuota({ RATE_LIMIT_USER: `${limit}` }),
      ];
      const served = await spendUntilSpent(quotas, caller, limit + 300);
      expect(served).toBeLessThanOrEqual(limit);
      expect(served).toBeGreaterThanOrEqual(Math.floor(limit * 0.99));
    }
  });

  test("when the load moves to one process, what the others hold is within one per cent, and comes back", async () => {
    const [first, second] = [await openQuota(), await openQuota()];
    await first.spend(person, "core", 1);
    const served = 1 + (await spendUntilSpent([second], person, 5_200));
    expect(served).toBeGreaterThanOrEqual(4_950);
    await first.close();
    now = new Date(now.getTime() + 2_000);
    expect(served + (await spendUntilSpent([second], person, 200))).toBe(5_000);
  });

  test("concurrent requests do not spend the same point twice", async () => {
    const quotas = [await openQuota({ RATE_LIMIT_USER: "100" }), await openQuota({ RATE_LIMIT_USER: "100" })];
    const spendings = await Promise.all(
      Array.from({ length: 400 }, (_, at) => (quotas[at % 2] as CallerQuota).spend(person, "core", 1)),
    );
    expect(spendings.filter(({ isSpent }) => !isSpent)).toHaveLength(100);
  });

  test("most requests ask Redis nothing", async () => {
    const quota = (await openQuota()) as CallerQuota & { client: Redis };
    const commands = async () =>
      Number(/cmdstat_eval:calls=(\d+)/.exec(await quota.client.info("commandstats"))?.[1] ?? 0);
    const before = await commands();
    await spendUntilSpent([quota], user(77), 1_000);
    // Other tests may use the same server at the same time; a round trip a request would be a thousand.
    expect((await commands()) - before).toBeLessThan(300);
  });
});

test("callers and buckets have windows of their own", async () => {
  const quota = await openQuota({ RATE_LIMIT_USER: "3", RATE_LIMIT_ANONYMOUS: "2", RATE_LIMIT_GRAPHQL: "10" });
  expect(await spendUntilSpent([quota], person, 5)).toBe(3);
  expect(await spendUntilSpent([quota], stranger, 5)).toBe(2);
  expect(await spendUntilSpent([quota], user(43), 5)).toBe(3);
  expect((await quota.spend(person, "graphql", 8)).isSpent).toBe(false);
  const refused = await quota.spend(person, "graphql", 3);
  expect(refused).toMatchObject({ isSpent: true, figures: { limit: 10, used: 8, remaining: 2 } });
  expect((await quota.spend(person, "graphql", 2)).isSpent).toBe(false);
});

test("the figures are the caller's own, request by request", async () => {
  const quota = await openQuota();
  for (let used = 1; used <= 60; used++) {
    const { figures } = await quota.spend(person, "core", 1);
    expect(figures).toEqual({ limit: 5_000, used, remaining: 5_000 - used, reset: now.getTime() / 1_000 + 3_600 });
  }
  expect(quota.refund(person, "core", 1)).toMatchObject({ used: 59, remaining: 4_941 });
  const untouched = await quota.figures(user(4), "core");
  expect(untouched).toMatchObject({ used: 0, remaining: 5_000 });
});

test("a window begins with its first request and ends an hour later", async () => {
  const quota = await openQuota({ RATE_LIMIT_USER: "2" });
  expect(await spendUntilSpent([quota], person, 3)).toBe(2);
  now = new Date(now.getTime() + 3_599_000);
  expect((await quota.spend(person, "core", 1)).isSpent).toBe(true);
  now = new Date(now.getTime() + 1_000);
  expect(await spendUntilSpent([quota], person, 3)).toBe(2);
  const { figures } = await quota.spend(person, "core", 1);
  expect(figures?.reset).toBe(now.getTime() / 1_000 + 3_600);
});

test("a limit of 0 is none", async () => {
  const quota = await openQuota({ RATE_LIMIT_USER: "0" });
  expect(await quota.spend(person, "core", 1)).toEqual({ isSpent: false, figures: null });
  expect(await quota.figures(person, "core")).toBeNull();
  expect(quota.refund(person, "core", 1)).toBeNull();
});

test("without Redis each process counts by itself and keeps serving", async () => {
  const quota = await openQuota({ RATE_LIMIT_USER: "50" }, "redis://127.0.0.1:1");
  expect(await spendUntilSpent([quota], person, 60)).toBe(50);
  expect((await quota.spend(person, "core", 1)).figures).toMatchObject({ limit: 50, used: 50, remaining: 0 });
});

test("what was spent while Redis was away is told when it is back", async () => {
  const config = testConfig(
    { database: "postgres://nowhere/x", redis, upstream: "http://127.0.0.1:1" },
    { RATE_LIMIT_USER: "100" },
  );
  const client = new Redis(redis.url, { enableOfflineQueue: false, retryStrategy: () => 20 });
  client.on("error", () => {});
  const ready = () =>
    new Promise<void>((resolve) => (client.status === "ready" ? resolve() : client.once("ready", () => resolve())));
  await ready();
  const quota = new CallerQuota({
    config,
    redis: client,
    clock: { now: () => now },
    log: openLog(config, { name: "test" }),
  });
  client.disconnect();
  await new Promise((resolve) => client.once("end", resolve));
  expect(await spendUntilSpent([quota], person, 30)).toBe(30);
  await client.connect();
  await ready();
  now = new Date(now.getTime() + 2_000);
  expect(await spendUntilSpent([quota], person, 100)).toBe(70);
  const other = await openQuota({ RATE_LIMIT_USER: "100" });
  expect((await other.spend(person, "core", 1)).isSpent).toBe(true);
  await quota.close();
  client.disconnect();
});

test.each([
  ["an error, since it is a mistake of ours", new TypeError("used is not iterable"), 50],
  ["a warning", new Error("Connection is closed."), 40],
])("a lease and a return that fail are logged as %s", async (_, failure, level) => {
  const lines: string[] = [];
  const config = testConfig(
    { database: "postgres://nowhere/x", redis, upstream: "http://127.0.0.1:1" },
    { LOG_LEVEL: "info" },
  );
  const log = openLog(config, { name: "test" }, { write: (line) => lines.push(line) });
  const granted = [25, 25, now.getTime() + 60_000];
  const script = vi.fn().mockRejectedValueOnce(failure).mockResolvedValueOnce(granted).mockRejectedValueOnce(failure);
  const client = { status: "ready", eval: script } as unknown as Redis;
  const quota = new CallerQuota({ config, redis: client, clock: { now: () => now }, log });
  // The first lease fails, and this process counts by itself; the second one is granted and goes back in vain.
  for (const caller of [person, user(43)]) {
    expect((await quota.spend(caller, "core", 1)).isSpent).toBe(false);
    now = new Date(now.getTime() + 2_000);
  }
  await quota.close();
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { level, msg: "Redis cannot be asked about callers' quota; this process counts by itself" },
    { level, msg: "A caller's unused quota could not be given back" },
  ]);
});
