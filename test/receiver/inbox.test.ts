import { Worker } from "bullmq";
import { Redis } from "ioredis";
import { describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { dispatchPending } from "../../src/inbox/dispatch.ts";
import { failDelivery, openDispatch, storeWaitingDelivery } from "../../src/inbox/inbox.ts";
import { pruneDeliveries } from "../../src/inbox/prune.ts";
import { queueCounts } from "../../src/queues/counts.ts";
import { enqueueBursts, enqueueDeliveries } from "../../src/queues/queues.ts";
import { QueueUnavailableError } from "../../src/queues/unavailable.ts";
import { NOWHERE } from "../support/config.ts";
import { connectTo, openTestDatabase, testRedis } from "../support/database.ts";
import { eventually } from "../support/patience.ts";
import { openLink } from "./breakable-link.ts";
import { opened, openReceiverWorld, type ReceiverWorld } from "./receiver-world.ts";

const queued = async ({ ctx }: ReceiverWorld) =>
  (await ctx.queues.deliveries.getJobs(["waiting"])).map((job) => job.data.deliveryId).sort();

const settle = async ({ ctx }: ReceiverWorld, guid: string, status: string, receivedAt = new Date()) =>
  await ctx.db.query(sql`
    update deliveries set status = ${status}, settled_at = now(), received_at = ${receivedAt}, reason = 'because'
      where guid = ${guid}`);

const seconds = (count: number) => new Date(Date.now() - count * 1_000);

describe("a delivery is kept once, whatever arrives", () => {
  test("an accepted delivery is in the inbox and queued", async () => {
    await using world = await openReceiverWorld();
    const guid = crypto.randomUUID();
    expect(await world.deliver({ guid })).toMatchObject({ status: 202, body: { delivery: guid, status: "accepted" } });
    const rows = await world.inbox();
    expect(rows).toMatchObject([
      {
        guid,
        hook_id: 42,
        event: "issues",
        action: "opened",
        repository_id: 7,
        status: "pending",
        payload: Buffer.from(JSON.stringify(opened)),
      },
    ]);
    await eventually(async () => expect(await queued(world)).toEqual([rows[0]?.id]));
  });

  test("fifty copies at once are one row and one job", async () => {
    await using world = await openReceiverWorld();
    const guid = crypto.randomUUID();
    const answers = await Promise.all(Array.from({ length: 50 }, () => world.deliver({ guid })));
    expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([202]));
    expect(await world.inbox()).toHaveLength(1);
    await eventually(async () => expect(await queued(world)).toHaveLength(1));
  });

  test("one event at two hooks is two deliveries", async () => {
    await using world = await openReceiverWorld();
    const guid = crypto.randomUUID();
    await world.deliver({ guid, hookId: 1 });
    await world.deliver({ guid, hookId: 2 });
    expect(await world.inbox()).toHaveLength(2);
  });

  test.each(["applied", "ignored"])("a redelivery of what was %s is known, and stays as it is", async (status) => {
    await using world = await openReceiverWorld();
    const guid = crypto.randomUUID();
    await world.deliver({ guid });
    await settle(world, guid, status);
    await eventually(async () => expect(await queued(world)).toHaveLength(1));
    await world.ctx.queues.deliveries.drain();
    expect(await world.deliver({ guid })).toMatchObject({ status: 202, body: { delivery: guid, status: "known" } });
    expect(await world.inbox()).toMatchObject([{ status, reason: "because" }]);
    expect(await queued(world)).toEqual([]);
  });

  test("a redelivery of what failed is applied after all", async () => {
    await using world = await openReceiverWorld();
    const guid = crypto.randomUUID();
    await world.deliver({ guid });
    const [{ id } = { id: "" }] = await world.inbox();
    await failDelivery(world.ctx, { deliveryId: id, reason: "cannot be read: \0", attempts: 8 });
    expect(await world.inbox()).toMatchObject([
      { status: "failed", reason: "cannot be read: \ufffd", settled_at: expect.any(Date) },
    ]);
    expect(await world.deliver({ guid })).toMatchObject({ status: 202, body: { status: "accepted" } });
    expect(await world.inbox()).toMatchObject([{ id, status: "pending", reason: null, settled_at: null }]);
  });

  test("a failure that comes late does not undo what was applied meanwhile", async () => {
    await using world = await openReceiverWorld();
    const guid = crypto.randomUUID();
    await world.deliver({ guid });
    await settle(world, guid, "applied");
    const [{ id } = { id: "" }] = await world.inbox();
    await failDelivery(world.ctx, { deliveryId: id, reason: "too late", attempts: 8 });
    expect(await world.inbox()).toMatchObject([{ status: "applied" }]);
  });
});

describe("who is received is answered", () => {
  test("a delivery under way when the server closes is acknowledged, and its connection closed", async () => {
    const world = await openReceiverWorld();
    const { db, config } = world.ctx;
    const holder = await connectTo(config.databaseUrl);
    await holder.query("begin");
    await holder.query("lock table deliveries");
    const guid = crypto.randomUUID();
    const answer = world.deliver({ guid });
    await eventually(async () => {
      const rows = await db.query(sql`
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`);
      expect(rows).toHaveLength(1);
    });
    const closed = world[Symbol.asyncDispose]();
    await eventually(() => expect(fetch(`${world.url}/webhooks`)).rejects.toThrow("fetch failed"));
    await holder.end();
    expect(await answer).toMatchObject({ status: 202, body: { delivery: guid, status: "accepted" } });
    expect((await answer).headers.get("connection")).toBe("close");
    await closed;
  });

  test("a hook's address may have a query", async () => {
    await using world = await openReceiverWorld();
    const guid = crypto.randomUUID();
    expect(await world.deliver({ guid, query: "?from=octo" })).toMatchObject({
      status: 202,
      body: { delivery: guid, status: "accepted" },
    });
    expect(await world.deliver({ query: "?from=octo", secret: "not the secret" })).toMatchObject({ status: 401 });
    expect(await world.inbox()).toMatchObject([{ guid }]);
  });
});

describe("one of the two stores may be away", () => {
  test("Redis away: the delivery is in the inbox, and is dispatched when Redis is back", async () => {
    await using link = await openLink(testRedis().url);
    await using world = await openReceiverWorld({ REDIS_URL: link.url });
    await link.cut();
    expect(await world.deliver()).toMatchObject({ status: 202, body: { status: "accepted" } });
    const [row] = await world.inbox();

    await world.ctx.db.query(sql`update deliveries set received_at = ${seconds(6)}`);
    await expect(dispatchPending(world.ctx)).rejects.toThrow("Redis cannot be reached");
    await link.mend();
    await eventually(async () => expect(await dispatchPending(world.ctx)).toBe(1));
    expect(await queued(world)).toEqual([row?.id]);
    await world.ctx.queues.deliveries.obliterate();
  });

  test("Redis away from the start: the receiver starts and serves", async () => {
    await using world = await openReceiverWorld({ REDIS_URL: NOWHERE.redis });
    expect(await world.deliver()).toMatchObject({ status: 202 });
    expect(await world.inbox()).toHaveLength(1);
  });

  test("Redis that does not answer is not waited for", async () => {
    await using link = await openLink(testRedis().url);
    await using world = await openReceiverWorld({ REDIS_URL: link.url });
    link.freeze();
    expect(await world.deliver()).toMatchObject({ status: 202 });
  });

  test("counting what is queued reports that Redis does not answer, or is away", async () => {
    await using link = await openLink(testRedis().url);
    await using world = await openReceiverWorld({ REDIS_URL: link.url });
    await world.ctx.queues.deliveries.waitUntilReady();
    link.freeze();
    const frozen = queueCounts(world.ctx);
    await expect(frozen).rejects.toThrow(QueueUnavailableError);
    await expect(frozen).rejects.toThrow("Redis does not answer for its queues: Command timed out");
    await link.cut();
    await eventually(() => expect(world.ctx.redis.status).not.toBe("ready"));
    await expect(queueCounts(world.ctx)).rejects.toThrow("Redis cannot be reached, so its queues cannot be used");
  });

  test("Postgres away: the delivery waits in Redis, byte for byte, and reaches the inbox once when Postgres is back", async () => {
    const database = await openTestDatabase();
    await using link = await openLink(database.url);
    await using world = await openReceiverWorld({ DATABASE_URL: link.url });
    await link.cut();
    const guid = crypto.randomUUID();
    const body = '{"action":"opened","title":"\\u0000 \\ud800 \u{1f980}","repository":{"id":7}}';
    expect(await world.deliver({ guid, body })).toMatchObject({ status: 202, body: { status: "accepted" } });
    expect(await world.deliver({ guid, body })).toMatchObject({ status: 202 });
    const jobs = await world.ctx.queues.inbox.getJobs(["waiting"]);
    expect(jobs).toHaveLength(1);

    await link.mend();
    for (const job of [jobs[0], jobs[0]])
      if (job) await storeWaitingDelivery(world.ctx, openDispatch(world.ctx), job.data);
    expect(await world.inbox()).toMatchObject([
      {
        guid,
        hook_id: 42,
        event: "issues",
        action: "opened",
        repository_id: 7,
        payload: Buffer.from(body),
        status: "pending",
      },
    ]);
    await eventually(async () => expect(await queued(world)).toHaveLength(1));
    expect(await world.deliver()).toMatchObject({ status: 202 });
    expect(await world.inbox()).toHaveLength(2);
  });

  test("Postgres that does not answer is not waited for: Redis takes over", async () => {
    const database = await openTestDatabase();
    await using link = await openLink(database.url);
    await using world = await openReceiverWorld({ DATABASE_URL: link.url });
    await world.deliver();
    link.freeze();
    expect(await world.deliver()).toMatchObject({ status: 202, body: { status: "accepted" } });
    expect(await world.ctx.queues.inbox.getWaitingCount()).toBe(1);
    await link.cut(); // This ends the connection that hangs, so that the pool can close.
  });

  test("Postgres that has not been migrated: the delivery waits in Redis", async () => {
    await using world = await openReceiverWorld();
    await world.ctx.db.query(sql`alter table deliveries rename to elsewhere`);
    expect(await world.deliver()).toMatchObject({ status: 202 });
    expect(await world.ctx.queues.inbox.getWaitingCount()).toBe(1);
  });

  test("both away: 503 with Retry-After, and the same delivery is taken once one is back", async () => {
    await using link = await openLink(testRedis().url);
    await using world = await openReceiverWorld({ DATABASE_URL: NOWHERE.database, REDIS_URL: link.url });
    await link.cut();
    const guid = crypto.randomUUID();
    const refused = await world.deliver({ guid });
    expect(refused).toMatchObject({ status: 503, body: { message: expect.stringContaining("again later") } });
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    await link.mend();
    await eventually(async () => expect(await world.deliver({ guid })).toMatchObject({ status: 202 }));
    expect(await world.ctx.queues.inbox.getWaitingCount()).toBe(1);
    await world.ctx.queues.inbox.obliterate();
  });
});

test("what is asked for at one moment shares jobs of sixteen; a lone one has its own, and copies of one are one", async () => {
  await using world = await openReceiverWorld();
  const { queues } = world.ctx;
  const dispatch = openDispatch(world.ctx);
  const ids = Array.from({ length: 33 }, () => crypto.randomUUID());
  for (const deliveryId of [...ids, ...ids]) dispatch({ deliveryId, traceparent: null });
  await eventually(async () => expect(await queued(world)).toEqual([ids[32]]));
  const bursts = await queues.bursts.getJobs(["waiting"], 0, -1, true);
  expect(bursts.map((job) => job.data.deliveryIds)).toEqual([ids.slice(0, 16), ids.slice(16, 32)]);
  expect((await queueCounts(world.ctx)).deliveries).toMatchObject({ waiting: 33 });
});

test("deliveries of a long backlog are counted by the ids of its jobs: what is in them stays in Redis", async () => {
  await using world = await openReceiverWorld();
  const { redis, queues } = world.ctx;
  if (!(redis instanceof Redis)) throw new Error("This connection goes to one server");
  await enqueueBursts(
    world.ctx,
    Array.from({ length: 1_605 }, () => crypto.randomUUID()),
  );
  const before = redis.stream.bytesRead;
  expect((await queueCounts(world.ctx)).deliveries).toMatchObject({ waiting: 1_605 });
  // A job's id has some 45 bytes, and the job itself a thousand.
  expect(redis.stream.bytesRead - before).toBeLessThan(10_000);
  // Older versions add a job in this form.
  await queues.bursts.add("apply", { deliveryIds: Array.from({ length: 16 }, () => crypto.randomUUID()) });
  expect((await queueCounts(world.ctx)).deliveries).toMatchObject({ waiting: 1_621 });
});

describe("dispatching what lost its job", () => {
  test("after Redis lost everything, each overdue delivery gets one job, over many batches", async () => {
    await using world = await openReceiverWorld();
    const { db } = world.ctx;
    await db.query(sql`insert into deliveries (hook_id, guid, event, payload, received_at)
        select 1, 'g-' || n, 'issues', '{}', now() - interval '1 minute' - n % 7 * interval '1 second' from generate_series(1, 2500) n`);
    expect(await dispatchPending(world.ctx)).toBe(2_500);
    expect(await dispatchPending(world.ctx)).toBe(0);
    expect(await world.ctx.queues.deliveries.getWaitingCount()).toBe(2_500);
  });

  test("those that wait in a burst are not asked for again, in whatever state it is; what it does not name is, once it is overdue", async () => {
    await using world = await openReceiverWorld();
    const { db, queues } = world.ctx;
    const rows = await db.query<{ id: string }>(sql`
      insert into deliveries (hook_id, guid, event, payload, received_at)
        select 1, 'g-' || n, 'issues', '{}', now() - interval '1 minute' from generate_series(1, 50) n returning id`);
    const ids = rows.map(({ id }) => id);
    const lost = ids.slice(48);
    await enqueueBursts(world.ctx, ids.slice(0, 48));
    expect(await queues.bursts.getWaitingCount()).toBe(3);
    // One job is taken up, and one waits for Postgres.
    const worker = new Worker(queues.bursts.name, null, {
      connection: { url: testRedis().url },
      prefix: world.ctx.config.redisPrefix,
      autorun: false,
    });
    try {
      await worker.getNextJob("active");
      const delayed = await worker.getNextJob("delayed");
      await delayed?.moveToDelayed(Date.now() + 60_000, "delayed");
      expect(await queues.bursts.getJobCounts("waiting", "active", "delayed")).toEqual({
        waiting: 1,
        active: 1,
        delayed: 1,
      });
      expect(await dispatchPending(world.ctx)).toBe(2);
      expect(await dispatchPending(world.ctx)).toBe(0);
      expect(await queued(world)).toEqual([...lost].sort());
      expect((await queueCounts(world.ctx)).deliveries).toEqual({ waiting: 18, active: 16, delayed: 16, failed: 0 });
    } finally {
      await worker.close();
    }
    // Redis forgets them all.
    for (const queue of [queues.bursts, queues.deliveries]) await queue.obliterate({ force: true });
    expect(await dispatchPending(world.ctx)).toBe(50);
    expect(await queued(world)).toEqual([...ids].sort());
  });

  test("of a long backlog no more is read than tells of the deliveries that are looked at", async () => {
    await using world = await openReceiverWorld();
    const { db, queues } = world.ctx;
    const rows = await db.query<{ id: string }>(sql`
      insert into deliveries (hook_id, guid, event, payload, received_at)
        select 1, 'g-' || n, 'issues', '{}', now() - interval '1 minute' from generate_series(1, 40) n returning id`);
    const later = Array.from({ length: 2_500 }, () => [crypto.randomUUID(), crypto.randomUUID()]);
    await enqueueBursts(
      world.ctx,
      rows.map(({ id }) => id),
    );
    await queues.bursts.addBulk(later.map((deliveryIds) => ({ name: "apply", data: { deliveryIds } })));
    const readJobs = queues.bursts.getJobs.bind(queues.bursts);
    let read = 0;
    queues.bursts.getJobs = async (...asked) => {
      const jobs = await readJobs(...asked);
      read += jobs.length;
      return jobs;
    };
    expect(await dispatchPending(world.ctx)).toBe(0);
    expect(read).toBeLessThanOrEqual(1_000);
    // A delivery that no job names is looked for in all jobs. It is then asked for once.
    await db.query(sql`insert into deliveries (hook_id, guid, event, payload, received_at)
      values (1, 'g-lost', 'issues', '{}', now() - interval '1 minute')`);
    expect(await dispatchPending(world.ctx)).toBe(1);
    expect(read).toBeGreaterThan(2_500);
    expect(await dispatchPending(world.ctx)).toBe(0);
  });

  test("a delivery just received is left to the job that its receiver adds, and a settled one to itself", async () => {
    await using world = await openReceiverWorld({ REDIS_URL: NOWHERE.redis });
    await world.deliver({ guid: "recent-1" });
    await world.deliver({ guid: "settled-1" });
    await settle(world, "settled-1", "failed", seconds(60));
    expect(await dispatchPending(world.ctx)).toBe(0);
  });

  test("one that is being applied is not queued a second time", async () => {
    await using world = await openReceiverWorld();
    await world.deliver({ guid: "in-progress" });
    await world.ctx.db.query(sql`update deliveries set received_at = ${seconds(60)}`);
    const [{ id } = { id: "" }] = await world.inbox();
    await eventually(async () => expect(await queued(world)).toEqual([id]));
    await Promise.all([dispatchPending(world.ctx), enqueueDeliveries(world.ctx, [id])]);
    expect(await queued(world)).toEqual([id]);
  });
});

describe("pruning", () => {
  test("settled deliveries go after DELIVERY_RETENTION, pending and younger ones stay", async () => {
    await using world = await openReceiverWorld({ DELIVERY_RETENTION: "1h" });
    await world.ctx.db.query(sql`insert into deliveries (hook_id, guid, event, payload, received_at, status)
        select 1, status || '-' || age || '-' || n, 'issues', '{}', now() - age * interval '1 minute', status
          from generate_series(1, 700) n, unnest(array[50, 70]) age, unnest(array['pending', 'applied', 'ignored', 'failed']) status`);
    const counts = await Promise.all([pruneDeliveries(world.ctx), pruneDeliveries(world.ctx)]);
    expect(counts.reduce((sum, count) => sum + count)).toBe(2_100);
    const left = await world.inbox();
    expect(left).toHaveLength(8 * 700 - 2_100);
    expect(left.filter((row) => row.guid.includes("-70-")).every((row) => row.status === "pending")).toBe(true);
  });

  test("pruning neither waits for a row that someone holds nor keeps deliveries from arriving", async () => {
    await using world = await openReceiverWorld({ DELIVERY_RETENTION: "1h" });
    await world.deliver({ guid: "held-by-someone" });
    await world.deliver({ guid: "free-to-go" });
    for (const guid of ["held-by-someone", "free-to-go"]) await settle(world, guid, "applied", seconds(7_200));
    const holder = await connectTo(world.ctx.config.databaseUrl);
    try {
      await holder.query("begin");
      await holder.query("select from deliveries where guid = 'held-by-someone' for update");
      expect(await pruneDeliveries(world.ctx)).toBe(1);
      expect(await world.deliver({ guid: "arriving-now" })).toMatchObject({ status: 202 });
    } finally {
      await holder.end();
    }
    expect((await world.inbox()).map((row) => row.guid).sort()).toEqual(["arriving-now", "held-by-someone"]);
  });
});
