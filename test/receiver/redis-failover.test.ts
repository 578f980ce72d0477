/** Sentinels or a Cluster serve Redis. When its master ends, no acknowledged delivery is lost. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openStateDirectory, tainHome } from "../../scripts/checkout.mjs";
import { examineRedis } from "../../src/cli/doctor/redis.ts";
import { findLacking } from "../../src/health/readiness.ts";
import { NOWHERE } from "../support/config.ts";
import { openMirror } from "../support/mirror.ts";
import { openRedisTopology, TOPOLOGIES } from "../support/redis-topologies.ts";
import { deliverTo, SECRET } from "./receiver-world.ts";

/** How many deliveries are sent one after the other, while the master ends. */
const DURING = Number(process.env.DELIVERIES ?? 20);

test.each(TOPOLOGIES)("%s: what is acknowledged while the master is killed is queued", async (kind) => {
  await using resources = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "tain-redis-"));
  resources.defer(() => rm(directory, { recursive: true, force: true }));
  const programs = await openStateDirectory(tainHome());
  const redis = resources.use(await openRedisTopology(kind, { directory, programs }));
  // Postgres is away, so Redis alone holds the acknowledged deliveries.
  const env = {
    DATABASE_URL: NOWHERE.database,
    REDIS_URL: redis.restrictedUrl,
    REDIS_PREFIX: "{tain}",
    WEBHOOK_SECRET: SECRET,
  };
  const mirror = resources.use(await openMirror({ env }));
  const { ctx } = mirror;
  const redisIsMissing = async () => (await findLacking(ctx)).some(({ what }) => what === "redis");
  expect(await redisIsMissing()).toBe(false);
  expect((await examineRedis(ctx)).filter(({ level }) => level === "problem")).toEqual([]);
  expect(await deliverTo(mirror.url)).toMatchObject({ status: 202 });

  let acknowledged = 1;
  const others = new Set<number>();
  const failing = redis.failOver(ctx.config.redisPrefix);
  for (let sent = 0; sent < DURING; sent++) {
    const { status } = await deliverTo(mirror.url);
    if (status === 202) acknowledged += 1;
    else others.add(status);
  }
  await failing;
  expect([...others].filter((status) => status !== 503)).toEqual([]);
  await redis.recover();
  await expect.poll(redisIsMissing).toBe(false);
  await expect.poll(async () => (await deliverTo(mirror.url)).status).toBe(202);
  acknowledged += 1;
  // A delivery that was answered with 503 may be in Redis all the same. Upstream sends it again, and the inbox knows
  // it.
  const waiting = await ctx.queues.inbox.getJobCountByTypes("waiting", "delayed", "active");
  expect(waiting).toBeGreaterThanOrEqual(acknowledged);
  expect(waiting).toBeLessThanOrEqual(DURING + 2 + 20);
});
