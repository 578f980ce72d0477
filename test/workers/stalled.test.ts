/** Tain never gives up a delivery because its worker goes away, however often, since the delivery was acknowledged. */
import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { enqueueDeliveries, enqueueInbox } from "../../src/queues/queues.ts";
import { openDeliveriesWorker } from "../../workers/deliveries.ts";
import { openInboxWorker } from "../../workers/inbox.ts";
import { ANY_NUMBER, openWorker, type WorkerContext } from "../../workers/worker.ts";
import { eventually, until } from "../support/patience.ts";
import { arrive, opened, openMirrored, titles } from "./arrived.ts";
import { openWorkerWorld } from "./worker-world.ts";

/** More often than any usual bound allows. */
const TIMES = 5;

/** Workers take the only job of the queue `times` times. Each loses the job as a worker does that has gone. */
async function takenAndLost(ctx: WorkerContext, queue: "deliveries" | "inbox", times: number): Promise<void> {
  let taken = 0;
  // There is a place for each taking, because no taking gives its place back.
  const worker = openWorker(ctx, queue, { concurrency: times, mostTakeovers: ANY_NUMBER }, async (job) => {
    taken += 1;
    // A worker that has gone renews no lock, so its lock ends.
    await ctx.redis.del(`${ctx.config.redisPrefix}:${queue}:${job.id}:lock`);
    return new Promise(() => {});
  });
  await until(`the job was taken ${times} times`, async () => taken === times);
  // The job comes back to the queue after the last taking, too.
  await until("it waits", async () => (await ctx.queues[queue].getWaitingCount()) === 1);
  await worker.close(true);
}

test("a delivery that was taken many times and never tried is applied", async () => {
  await using world = await openMirrored();
  const ids = await arrive(world, [opened(world, 1, "edited", "2026-01-01T00:00:01Z")]);
  await enqueueDeliveries(world.ctx, ids);
  await takenAndLost(world.openWorkerContext(), "deliveries", TIMES);
  openDeliveriesWorker(world.openWorkerContext());
  await until("it is settled", async () => {
    const pending = sql`select from deliveries where status = 'pending'`;
    return (await world.ctx.db.count(pending)) === 0;
  });
  expect(await world.ctx.db.query(sql`select status, reason from deliveries`)).toEqual([
    { status: "applied", reason: null },
  ]);
  expect(await titles(world)).toEqual(["1 edited"]);
});

test("a delivery that waits in Redis comes to the inbox, however often its worker has gone", async () => {
  await using world = await openWorkerWorld();
  const { ctx } = world;
  const payload = Buffer.from(JSON.stringify({ action: "opened", repository: { id: 7 } })).toString("base64");
  const job = { hookId: 1, guid: "12345678", event: "issues", repositoryId: 7, payload };
  await enqueueInbox(ctx, { ...job, receivedAt: new Date().toISOString() });
  await takenAndLost(ctx, "inbox", TIMES);
  openInboxWorker(ctx);
  await eventually(async () => {
    expect(await ctx.db.query(sql`select guid from deliveries`)).toEqual([{ guid: "12345678" }]);
  });
});
