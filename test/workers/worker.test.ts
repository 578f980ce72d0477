import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Job, Worker } from "bullmq";
import { describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import type { RepositoryJob } from "../../src/queues/jobs.ts";
import { enqueueCatchUp, enqueueCatchUps, enqueueDeliveries } from "../../src/queues/queues.ts";
import { InvalidPayloadError } from "../../src/sync/events/read.ts";
import { upsertSchedules } from "../../src/sync/schedules.ts";
import { QuotaSpentError } from "../../src/upstream/protocol/errors.ts";
import { openDeliveriesWorker } from "../../workers/deliveries.ts";
import { openInboxWorker } from "../../workers/inbox.ts";
import { openWorker, type WorkerContext } from "../../workers/worker.ts";
import { openLink } from "../receiver/breakable-link.ts";
import { openTestDatabase } from "../support/database.ts";
import { eventually } from "../support/patience.ts";
import { openWorkerWorld, type WorkerWorld } from "./worker-world.ts";

/** A worker on the queue for catch-ups that does what the test says. */
function work(
  world: WorkerWorld,
  run: (job: Job<RepositoryJob>, signal: AbortSignal) => Promise<unknown>,
  ctx: WorkerContext = world.ctx,
): Worker {
  const worker = openWorker<RepositoryJob>(ctx, "catch-up", { concurrency: 4 }, run);
  world.defer(() => worker.close());
  return worker;
}

async function finished(worker: Worker): Promise<Job<RepositoryJob>> {
  const [job] = await once(worker, "completed");
  return job;
}

const seeing = (world: WorkerWorld) =>
  world.ctx.queues.catchUp.getJobCounts("waiting", "active", "delayed", "failed", "completed");

describe("the retry policy in BullMQ", () => {
  test("waiting for quota costs no attempt and ends at the reset", async () => {
    await using world = await openWorkerWorld();
    const runs: number[] = [];
    const resetAt = new Date(Date.now() + 1_200);
    const worker = work(world, async () => {
      runs.push(Date.now());
      if (runs.length === 1) throw new QuotaSpentError("core", resetAt);
    });
    const done = finished(worker);
    await enqueueCatchUp(world.ctx, { repositoryId: 1 });
    await eventually(async () => expect(await seeing(world)).toMatchObject({ delayed: 1, active: 0, failed: 0 }));
    const job = await done;
    expect(runs).toHaveLength(2);
    expect(runs[1]).toBeGreaterThanOrEqual(resetAt.getTime());
    expect(job.attemptsMade).toBe(1); // The attempt that succeeded is the only one that counts.
  });

  test("what cannot be helped fails at once and keeps its reason", async () => {
    await using world = await openWorkerWorld();
    let runs = 0;
    const worker = work(world, async () => {
      runs++;
      throw new InvalidPayloadError("it has no subject");
    });
    const failed = once(worker, "failed");
    await enqueueCatchUp(world.ctx, { repositoryId: 1 });
    await failed;
    expect(runs).toBe(1);
    expect(await world.ctx.queues.catchUp.getJobs(["failed"])).toMatchObject([{ failedReason: "it has no subject" }]);
  });

  test("an unknown failure is tried again after a while, and the job can be retried by hand once it has failed for good", async () => {
    await using world = await openWorkerWorld();
    const finals: boolean[] = [];
    let isMended = false;
    const worker = work(world, async () => {
      if (!isMended) throw new Error("perhaps transient");
    });
    worker.on("failed", (job) => finals.push(job?.finishedOn !== undefined));
    await world.ctx.queues.catchUp.add("catch-up", { repositoryId: 1 }, { attempts: 2 });
    await eventually(() => expect(finals).toEqual([false, true]));
    const [job] = await world.ctx.queues.catchUp.getJobs(["failed"]);
    expect(job).toMatchObject({ failedReason: "perhaps transient", attemptsMade: 2 });
    isMended = true;
    const done = finished(worker);
    await job?.retry();
    await done;
  });

  test("asked for while it runs, a catch-up runs once more, and not twice", async () => {
    await using world = await openWorkerWorld();
    const runs = { begun: 0 };
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    work(world, async () => {
      runs.begun++;
      await gate;
    });
    await enqueueCatchUp(world.ctx, { repositoryId: 1 });
    await eventually(() => expect(runs.begun).toBe(1));
    for (let i = 0; i < 3; i++) await enqueueCatchUp(world.ctx, { repositoryId: 1 });
    open();
    await eventually(async () => expect(await seeing(world)).toMatchObject({ completed: 2, waiting: 0, active: 0 }));
    expect(runs.begun).toBe(2);
  });
});

describe("fetching jobs", () => {
  test("with many at once, the first begins before the last is fetched, since only the locks of those that began are renewed", async () => {
    await using world = await openWorkerWorld();
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    let atFirst: ReturnType<typeof seeing> | undefined;
    const ids = Array.from({ length: 300 }, (_, index) => index + 1);
    // Each is asked for twice, and still is one job.
    for (let turn = 0; turn < 2; turn++) await enqueueCatchUps(world.ctx, ids);
    expect(await seeing(world)).toMatchObject({ waiting: 300 });
    const worker = openWorker<RepositoryJob>(world.ctx, "catch-up", { concurrency: 256 }, async () => {
      atFirst ??= seeing(world);
      await gate;
    });
    world.defer(() => worker.close());
    // The gate opens even when the test fails, because closing waits for jobs under way.
    world.defer(async () => open());
    await eventually(async () => expect(await seeing(world)).toMatchObject({ active: 256 }));
    expect((await atFirst)?.active).toBeLessThan(64);
    open();
    await eventually(async () => expect(await seeing(world)).toMatchObject({ waiting: 0, active: 0 }));
  });
});

describe("stopping and dying", () => {
  test("a worker that stops hands an interrupted job to another at once, at no cost of attempts", async () => {
    await using world = await openWorkerWorld();
    const first = work(world, async (_job, signal) => {
      await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    });
    await enqueueCatchUp(world.ctx, { repositoryId: 1 });
    await eventually(async () => expect(await seeing(world)).toMatchObject({ active: 1 }));
    world.stop();
    await first.close();
    expect(await seeing(world)).toMatchObject({ waiting: 1, active: 0, failed: 0 });

    const second = work(world, async () => {}, { ...world.ctx, stopping: new AbortController().signal });
    expect((await finished(second)).attemptsMade).toBe(1);
  });

  test("a worker that stops lets a job that does not listen finish", async () => {
    await using world = await openWorkerWorld();
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const worker = work(world, async () => {
      begin();
      await gate;
    });
    await enqueueCatchUp(world.ctx, { repositoryId: 1 });
    // It is not enough that Redis calls the job active. A job that was fetched but has not begun goes back to the
    // queue.
    await begun;
    world.stop();
    const closed = worker.close();
    open();
    await closed;
    expect(await seeing(world)).toMatchObject({ completed: 1, waiting: 0, failed: 0 });
  });

  test("the job of a worker that was killed is taken over", async () => {
    await using world = await openWorkerWorld();
    await enqueueCatchUp(world.ctx, { repositoryId: 1 });
    const victim = spawn(process.execPath, [new URL("./stuck-worker.ts", import.meta.url).pathname], {
      env: { ...process.env, ...world.env },
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(victim.stdout, "data"); // By then the victim holds the job.
    victim.kill("SIGKILL");
    await once(victim, "exit");
    const job = await finished(work(world, async () => {}));
    expect(job).toMatchObject({ data: { repositoryId: 1 }, stalledCounter: 1 });
  });
});

describe("acknowledged deliveries reach the mirror", () => {
  test("one that waits in Redis while Postgres is away is stored when it is back, however often that failed before", async () => {
    const database = await openTestDatabase();
    await using link = await openLink(database.url);
    await using world = await openWorkerWorld({ DATABASE_URL: link.url });
    const { queues, db } = world.ctx;
    await link.cut();
    const payload = Buffer.from('{"action":"opened"}').toString("base64");
    const receivedAt = "2026-01-01T00:00:00.000Z";
    await queues.inbox.add(
      "store",
      { hookId: 1, guid: "waiting-1", event: "issues", payload, receivedAt },
      { attempts: 1 },
    );
    const worker = openInboxWorker(world.ctx);
    world.defer(() => worker.close());
    await eventually(async () => expect((await queues.inbox.getDelayed())[0]?.attemptsStarted).toBeGreaterThan(1));
    await link.mend();
    await eventually(async () => {
      const rows = await db.query(sql`select guid, status, received_at from deliveries`);
      expect(rows).toEqual([{ guid: "waiting-1", status: "pending", received_at: new Date(receivedAt) }]);
    });
    expect(await queues.inbox.getJobCounts("waiting", "delayed", "failed")).toEqual({
      waiting: 0,
      delayed: 0,
      failed: 0,
    });
    await eventually(async () => expect(await queues.deliveries.getWaitingCount()).toBe(1));
  });

  test("one that Postgres can never store is kept with its reason", async () => {
    await using world = await openWorkerWorld();
    const worker = openInboxWorker(world.ctx);
    world.defer(() => worker.close());
    const payload = Buffer.from("{}").toString("base64");
    const failed = once(worker, "failed");
    await world.ctx.queues.inbox.add("store", {
      hookId: 2 ** 70,
      guid: "storable-nowhere",
      event: "issues",
      payload,
      receivedAt: "2026-01-01T00:00:00Z",
    });
    await failed;
    expect(await world.ctx.queues.inbox.getJobs(["failed"])).toMatchObject([
      { failedReason: expect.stringContaining("bigint") },
    ]);
  });

  test("one that a mistake of ours keeps from being stored is tried so often and no more, and kept with its reason", async () => {
    await using world = await openWorkerWorld();
    const { inbox } = world.ctx.queues;
    const worker = openInboxWorker(world.ctx);
    world.defer(() => worker.close());
    // The receiver accepts no such payload, so the code does not expect one.
    const payload = Buffer.from("null").toString("base64");
    const receivedAt = "2026-01-01T00:00:00Z";
    const failing = once(worker, "failed");
    const job = await inbox.add("store", { hookId: 1, guid: "ours", event: "issues", payload, receivedAt });
    expect((await failing)[1]).toBeInstanceOf(TypeError);
    expect(job.opts).toMatchObject({ attempts: 8, removeOnFail: false });

    await inbox.add("store", { hookId: 1, guid: "last", event: "issues", payload, receivedAt }, { attempts: 1 });
    await eventually(async () => {
      expect(await inbox.getJobs(["failed"])).toMatchObject([
        { data: { guid: "last", payload }, failedReason: expect.stringContaining("null") },
      ]);
    });
  });

  test("one that cannot be applied is settled as failed with its reason, and Postgres away is no such reason", async () => {
    const database = await openTestDatabase();
    await using link = await openLink(database.url);
    await using world = await openWorkerWorld({ DATABASE_URL: link.url });
    const { db, queues } = world.ctx;
    const rows = await db.query<{ id: string }>(sql`
      with mirrored as (insert into repository_syncs (repository_id, state, added_at) values (7, 'live', now()))
        insert into deliveries (hook_id, guid, event, payload, received_at)
        values (1, 'invalid-1', 'issues', '{"action":"opened","issue":{},"repository":{"id":7,"full_name":"octo/demo"}}', now())
        returning id`);
    const deliveryId = rows[0]?.id ?? "";
    await link.cut();
    await enqueueDeliveries(world.ctx, [deliveryId]);
    const worker = openDeliveriesWorker(world.ctx);
    world.defer(() => worker.close());
    await eventually(async () => expect(await queues.deliveries.getDelayedCount()).toBe(1));
    expect((await queues.deliveries.getDelayed())[0]).toMatchObject({ attemptsMade: 0 });
    await link.mend();
    await eventually(async () => {
      const settled = await db.query(sql`select status, reason from deliveries`);
      expect(settled).toEqual([{ status: "failed", reason: expect.stringContaining("issues") }]);
    });
  });
});

describe("schedules", () => {
  test("each task has one schedule, however many schedulers look after them", async () => {
    await using world = await openWorkerWorld();
    await Promise.all([upsertSchedules(world.ctx), upsertSchedules(world.ctx), upsertSchedules(world.ctx)]);
    const schedules = await world.ctx.queues.maintenance.getJobSchedulers();
    expect(schedules.map((schedule) => schedule.key).sort()).toEqual([
      "check-deliveries",
      "dispatch",
      "note-quota",
      "prune",
      "read-names",
      "schedule-audits",
      "schedule-catch-up",
      "select",
      "subscribe",
      "sweep",
    ]);
    expect(await upsertSchedules(world.ctx)).toEqual([]);
  });

  test("tasks keep running at their interval while schedules are looked after, and again after Redis lost everything", async () => {
    await using world = await openWorkerWorld();
    const runs: string[] = [];
    const worker = openWorker(world.ctx, "maintenance", { concurrency: 4 }, async (job) => runs.push(job.name));
    world.defer(() => worker.close());
    const upkeep = setInterval(() => void upsertSchedules(world.ctx).catch(() => {}), 300);
    try {
      const dispatched = () => runs.filter((name) => name === "dispatch").length;
      await eventually(() => expect(dispatched()).toBeGreaterThanOrEqual(3));
      const keys = await world.ctx.redis.keys(`${world.ctx.config.redisPrefix}:*`);
      await world.ctx.redis.del(keys);
      runs.length = 0;
      await eventually(() => expect(dispatched()).toBeGreaterThanOrEqual(3));
    } finally {
      clearInterval(upkeep);
    }
  });
});
