import { expect, test, vi } from "vitest";
import { BURST_SIZE } from "../../src/queues/jobs.ts";
import {
  enqueueBackfills,
  enqueueBursts,
  enqueueCatchUps,
  enqueueDeliveries,
  enqueueRefreshes,
  enqueueShards,
  enqueueTargets,
  type QueueAccess,
  type Queues,
} from "../../src/queues/queues.ts";
import { openWorkerWorld } from "./worker-world.ts";

/** Two requests to Redis take 2,000 jobs. These are two more. */
const MANY = 2_002;
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

const ways: [keyof Queues, (ctx: QueueAccess, count: number) => Promise<void>][] = [
  ["deliveries", (ctx, count) => enqueueDeliveries(ctx, upTo(count).map(String))],
  ["bursts", (ctx, count) => enqueueBursts(ctx, upTo(count * BURST_SIZE).map(String))],
  ["backfill", (ctx, count) => enqueueBackfills(ctx, upTo(count))],
  ["catchUp", (ctx, count) => enqueueCatchUps(ctx, upTo(count))],
  [
    "refresh",
    (ctx, count) =>
      enqueueRefreshes(
        ctx,
        upTo(count).map((key) => ({ job: refreshOf(key), delayMs: 60_000 })),
      ),
  ],
  ["targets", (ctx, count) => enqueueTargets(ctx, upTo(count))],
  [
    "shards",
    (ctx, count) =>
      enqueueShards(
        ctx,
        "sweep",
        upTo(count).map((at) => ({ at, of: count, from: null, until: null })),
      ),
  ],
];

const refreshOf = (key: number) => ({ kind: "issue" as const, repositoryId: 1, key });

test.each(ways)(
  "many jobs of %s are bounded requests to Redis, and a single one needs no pipeline",
  async (key, ask) => {
    await using world = await openWorkerWorld();
    const queue = world.ctx.queues[key];
    const asked = vi.spyOn(queue, "addBulk");
    await ask(world.ctx, 0);
    await ask(world.ctx, 1);
    expect(asked).not.toHaveBeenCalled();
    await queue.obliterate();
    await ask(world.ctx, MANY);
    expect(asked.mock.calls.map(([jobs]) => jobs.length)).toEqual([1_000, 1_000, 2]);
    const counts = await queue.getJobCounts("waiting", "delayed", "prioritized");
    expect(Object.values(counts).reduce((sum, count) => sum + count)).toBe(MANY);
  },
);

test("catch-ups that wait for a better time, however many, wait no more where they are asked for at once", async () => {
  await using world = await openWorkerWorld();
  const { catchUp } = world.ctx.queues;
  const ids = upTo(250);
  const later = (repositoryId: number) => ({
    name: "catch-up",
    data: { repositoryId },
    opts: { delay: 60_000, deduplication: { id: String(repositoryId), keepLastIfActive: true } },
  });
  await catchUp.addBulk(ids.map(later));
  await enqueueCatchUps(world.ctx, ids);
  expect(await catchUp.getJobCounts("waiting", "delayed")).toEqual({ waiting: 0, delayed: 250 });
  await enqueueCatchUps(world.ctx, ids, { atOnce: true });
  expect(await catchUp.getJobCounts("waiting", "delayed")).toEqual({ waiting: 250, delayed: 0 });
});
