/** With Postgres away a delivery is acknowledged only once Redis has it on disk. */
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { NOWHERE } from "../support/config.ts";
import { openMirror, type TestMirror } from "../support/mirror.ts";
import { type OwnStores, openOwnStores } from "../support/own-stores.ts";
import { deliverTo, SECRET } from "./receiver-world.ts";

let stores: OwnStores;
let mirror: TestMirror;
let redis: Redis;
beforeAll(async () => {
  stores = await openOwnStores();
  mirror = await openMirror({
    env: { DATABASE_URL: NOWHERE.database, REDIS_URL: stores.redis.url, WEBHOOK_SECRET: SECRET },
  });
  redis = new Redis(stores.redis.url);
});
afterAll(async () => {
  redis?.disconnect();
  await mirror?.[Symbol.asyncDispose]();
  await stores?.[Symbol.asyncDispose]();
});

/** Since 7.2 Redis, and each Valkey, tells when what it was told is on disk. */
async function tellsWhen(): Promise<boolean> {
  const [, version = ""] = /^redis_version:(.*?)\r$/m.exec(await redis.info("server")) ?? [];
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > 7 || (major === 7 && minor >= 2);
}

const waiting = () => mirror.ctx.queues.inbox.getJobCountByTypes("waiting", "delayed", "active");
const notKept = { status: 503, body: { message: "The delivery cannot be kept at the moment: send it again later" } };

test("a Redis that puts each write on disk: deliveries are acknowledged, many at once too", async () => {
  const answers = await Promise.all(Array.from({ length: 50 }, () => deliverTo(mirror.url)));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
  expect(await waiting()).toBe(50);
});

test("one that does so each second: they are acknowledged only if it tells that it has", async () => {
  await redis.config("SET", "appendfsync", "everysec");
  const answer = await deliverTo(mirror.url);
  if (await tellsWhen()) expect(answer).toMatchObject({ status: 202 });
  else expect(answer).toMatchObject(notKept);
  await redis.config("SET", "appendfsync", "always");
});

test("one that never does so, or keeps no file: none is acknowledged, and upstream is told when to come again", async () => {
  await redis.config("SET", "appendonly", "no");
  const answer = await deliverTo(mirror.url);
  expect(answer).toMatchObject(notKept);
  expect(answer.headers.get("retry-after")).toBe("30");
  await redis.config("SET", "appendonly", "yes");
  expect(await deliverTo(mirror.url)).toMatchObject({ status: 202 });
});

test("one with a replica that is behind for good: none is acknowledged", async () => {
  // A replica by its own word that never takes anything.
  const replica = new Redis(stores.redis.url, { enableReadyCheck: false });
  replica.on("error", () => {}); // What a replica is sent is no answer to a command.
  await replica.call("REPLCONF", "listening-port", "1");
  replica.call("PSYNC", "?", "-1").catch(() => {});
  try {
    await expect.poll(() => redis.info("replication")).toContain("connected_slaves:1");
    expect(await deliverTo(mirror.url)).toMatchObject(notKept);
  } finally {
    replica.disconnect();
  }
  await expect.poll(() => redis.info("replication")).toContain("connected_slaves:0");
  expect(await deliverTo(mirror.url)).toMatchObject({ status: 202 });
});

test("what was acknowledged is there after Redis was killed", async () => {
  const before = await waiting();
  expect(await deliverTo(mirror.url)).toMatchObject({ status: 202 });
  const [, pid] = /^process_id:(\d+)\r$/m.exec(await redis.info("server")) ?? [];
  process.kill(Number(pid), "SIGKILL");
  await stores.redis.stop();
  await stores.redis.start();
  await expect.poll(waiting, { timeout: 20_000 }).toBe(before + 1);
});
