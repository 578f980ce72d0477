/** With Postgres away a delivery is acknowledged only once Redis has it on disk. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { NOWHERE } from "../support/config.ts";
import { printFigures } from "../support/figures.ts";
import { openMirror, type TestMirror } from "../support/mirror.ts";
import { type OwnStores, openOwnStores } from "../support/own-stores.ts";
import { until } from "../support/patience.ts";
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

/** Redis tells when a write is on disk since version 7.2, and so does every Valkey. */
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
  // This connection says that it is a replica, but never takes any write.
  const replica = new Redis(stores.redis.url, { enableReadyCheck: false });
  replica.on("error", () => {}); // Redis sends a replica more than answers.
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

/** How often Redis is killed: `npm run proofs redis-disk` does it more often. */
const KILLS = Number(process.env.KILLS ?? 1);
const AT_ONCE = 20;

test(
  "what was acknowledged is there after Redis was killed, at any moment",
  async () => {
    const acknowledged = new Set<string>();
    let refused = 0;
    const send = async (guid: string) => {
      const { status } = await deliverTo(mirror.url, { guid });
      if (status === 202) acknowledged.add(guid);
      else refused += 1;
    };
    for (let kill = 1; kill <= KILLS; kill++) {
      const before = acknowledged.size;
      let nth = 0;
      let isKilled = false;
      const sending = Array.from({ length: AT_ONCE }, async (_, sender) => {
        while (!isKilled) await send(`kill-${kill}-sender-${sender}-${nth++}`);
      });
      await until("some were acknowledged", () => acknowledged.size >= before + 5 * AT_ONCE);
      process.kill(await pidOfRedis(), "SIGKILL");
      isKilled = true;
      await stores.redis.stop();
      await stores.redis.start();
      await Promise.all(sending);
      await expect.poll(waiting, { timeout: 60_000 }).toBeGreaterThan(0);
    }
    const jobs = await mirror.ctx.queues.inbox.getJobs(["waiting", "delayed", "active"]);
    const kept = new Set(jobs.map(({ data }) => data.guid));
    const missing = [...acknowledged].filter((guid) => !kept.has(guid));
    printFigures("redis killed", { kills: KILLS, acknowledged: acknowledged.size, refused, missing: missing.length });
    expect(missing).toEqual([]);
  },
  LONG_TEST_MS,
);

/** Counts Redis' requests to the disk by the operating system's own record of them. */
const IS_TRACED = process.env.TRACED === "1";

test.skipIf(!IS_TRACED)(
  `each acknowledgement has had Redis tell the disk to keep it ${IS_TRACED ? "" : "(skipped: TRACED=1 counts with strace)"}`,
  async () => {
    const file = join(tmpdir(), `tain-fsync-${process.pid}.log`);
    const traced = ["-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", file, "-p", String(await pidOfRedis())];
    const strace = spawn("strace", traced, { stdio: "ignore" });
    onTestFinished(async () => {
      strace.kill("SIGKILL");
      await rm(file, { force: true });
    });
    await once(strace, "spawn");
    const syncs = async () =>
      (await readFile(file, "utf8").catch(() => "")).split("\n").filter((line) => /sync\(/.test(line)).length;
    // strace needs a moment to begin. Once it has seen one write, it sees them all.
    await until("strace has begun", async () => {
      await redis.incr("traced");
      return (await syncs()) > 0;
    });
    const before = await syncs();
    for (let nth = 0; nth < AT_ONCE; nth++)
      expect(await deliverTo(mirror.url, { guid: `traced-${nth}-of-these` })).toMatchObject({ status: 202 });
    const fsyncs = (await syncs()) - before;
    printFigures("redis traced", { acknowledged: AT_ONCE, fsyncs });
    expect(fsyncs).toBeGreaterThanOrEqual(AT_ONCE);
  },
);

async function pidOfRedis(): Promise<number> {
  const [, pid] = /^process_id:(\d+)\r$/m.exec(await redis.info("server")) ?? [];
  return Number(pid);
}
