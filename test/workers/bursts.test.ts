import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { dispatchPending } from "../../src/inbox/dispatch.ts";
import { queueCounts } from "../../src/queues/counts.ts";
import { enqueueBursts, enqueueDeliveries } from "../../src/queues/queues.ts";
import { DeliveryBatches, openBurstsWorker, openDeliveriesWorker } from "../../workers/deliveries.ts";
import { openLink } from "../receiver/breakable-link.ts";
import { testEnvironment } from "../support/config.ts";
import { connectTo, openTestDatabase } from "../support/database.ts";
import { until } from "../support/patience.ts";
import { startProgram } from "../support/program.ts";
import { arrive, type MirroredWorld, opened, openMirrored, titles } from "./arrived.ts";
import { openWorkerWorld } from "./worker-world.ts";

const edits = (world: MirroredWorld, numbers: number[]) =>
  numbers.map((number) => opened(world, number, `edited ${number}`, "2026-01-01T00:00:01Z"));

/** The status and the attempts of each delivery, in the order of the ids. */
async function outcomes({ ctx }: Pick<MirroredWorld, "ctx">, ids: string[]): Promise<string[]> {
  const rows = await ctx.db.query<{ outcome: string }>(sql`select d.status || ' ' || d.attempts as outcome
      from unnest(${ids}::uuid[]) with ordinality x(id, n) join deliveries d using (id) order by n`);
  return rows.map(({ outcome }) => outcome);
}

const settled = (world: Pick<MirroredWorld, "ctx">, ids: string[]) =>
  until("all are settled", async () => (await outcomes(world, ids)).every((one) => !one.startsWith("pending")));

test("what cannot be applied ends as failed with its own attempts and reason; its neighbours are applied, once each", async () => {
  await using world = await openMirrored();
  const { ctx } = world;
  const ids = await arrive(world, [
    ...edits(world, [1, 2]),
    "{ not json",
    // No column holds an issue without a title.
    opened(world, 3, "refused", "2026-01-01T00:00:01Z", { title: null }),
    ...edits(world, [4]),
  ]);
  await enqueueBursts(ctx, ids);
  expect(await ctx.queues.deliveries.getWaitingCount()).toBe(0);
  world.work();
  await until("the refused one has failed", async () =>
    (await outcomes(world, ids)).every((one) => !one.startsWith("pending")),
  );
  // The value is missing for good, so another attempt cannot help.
  expect(await outcomes(world, ids)).toEqual(["applied 1", "applied 1", "failed 1", "failed 1", "applied 1"]);
  const rows = await ctx.db.query<{ reason: string }>(sql`
    select reason from deliveries where status = 'failed' order by received_at`);
  expect(rows.map(({ reason }) => reason)).toEqual(["The payload is not JSON", expect.stringContaining("title")]);
  expect(await titles(world)).toEqual(["1 edited 1", "2 edited 2", "4 edited 4"]);
  await until("no job is left", async () => {
    const { waiting, active, delayed } = (await queueCounts(ctx)).deliveries ?? {};
    return waiting === 0 && active === 0 && delayed === 0;
  });
  expect((await queueCounts(ctx)).deliveries).toMatchObject({ failed: 2 });
  expect(await ctx.queues.bursts.getJobCounts()).toMatchObject({ failed: 0, completed: 0 });
});

test("a worker killed in the middle of a burst leaves all of it to another, which applies each once", async () => {
  await using world = await openMirrored();
  const { ctx } = world;
  const ids = await arrive(world, edits(world, [1, 2, 3, 4]));
  const { databaseUrl: database, redisUrl, redisPrefix, upstreamUrl: upstream } = ctx.config;
  const env = testEnvironment({ database, redis: { url: redisUrl, prefix: redisPrefix }, upstream });
  // The worker that is killed cannot finish, because another connection holds the lock of one of its deliveries.
  const holder = await connectTo(ctx.config.databaseUrl);
  try {
    await holder.query("begin");
    await holder.query("select from deliveries where id = $1 for update", [ids[2]]);
    await enqueueBursts(ctx, ids);
    const victim = startProgram("workers/main.ts", env);
    await until("the victim waits in its transaction", async () => {
      const rows = await ctx.db.query(sql`
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`);
      return rows.length > 0;
    });
    await victim.kill();
  } finally {
    await holder.end();
  }
  expect(await queueCounts(ctx)).toMatchObject({ deliveries: { waiting: 0, active: 4, delayed: 0, failed: 0 } });
  world.work();
  await settled(world, ids);
  expect(await outcomes(world, ids)).toEqual(Array(4).fill("applied 1"));
  expect(await titles(world)).toEqual(["1 edited 1", "2 edited 2", "3 edited 3", "4 edited 4"]);
});

test("bursts that Redis forgot are found by the dispatcher; one that is asked for twice is applied once", async () => {
  await using world = await openMirrored();
  const { ctx } = world;
  const ids = await arrive(
    world,
    edits(
      world,
      Array.from({ length: 40 }, (_, index) => index + 1),
    ),
  );
  await enqueueBursts(ctx, ids);
  expect(await dispatchPending(ctx)).toBe(0);
  await ctx.redis.del(await ctx.redis.keys(`${ctx.config.redisPrefix}:*`));
  expect(await dispatchPending(ctx)).toBe(40);
  await enqueueBursts(ctx, ids);
  await enqueueDeliveries(ctx, ids);
  world.work();
  await settled(world, ids);
  await world.settle();
  expect(await outcomes(world, ids)).toEqual(Array(40).fill("applied 1"));
});

test("with Postgres away a burst waits as a whole, at no cost of attempts, and none of it gets a job of its own", async () => {
  const database = await openTestDatabase();
  await using link = await openLink(database.url);
  await using world = await openWorkerWorld({ DATABASE_URL: link.url });
  const { db, queues } = world.ctx;
  const rows = await db.query<{ id: string }>(sql`
    insert into deliveries (hook_id, guid, event, payload, received_at)
      select 1, 'star-' || n, 'star', '{}', now() from generate_series(1, 3) n returning id`);
  const ids = rows.map(({ id }) => id);
  await link.cut();
  await enqueueBursts(world.ctx, ids);
  const batches = new DeliveryBatches(world.ctx);
  for (const worker of [openBurstsWorker(world.ctx, batches), openDeliveriesWorker(world.ctx, batches)])
    world.defer(() => worker.close());
  await until("the burst waits", async () => (await queues.bursts.getDelayedCount()) === 1);
  expect((await queues.bursts.getDelayed())[0]).toMatchObject({ attemptsMade: 0 });
  expect(await queueCounts(world.ctx)).toMatchObject({ deliveries: { waiting: 0, active: 0, delayed: 3, failed: 0 } });
  expect(await queues.deliveries.getJobCounts()).toMatchObject({ waiting: 0, delayed: 0, failed: 0 });
  await link.mend();
  await settled(world, ids);
  expect(await outcomes(world, ids)).toEqual(Array(3).fill("ignored 1"));
});
