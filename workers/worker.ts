import { type Job, Worker } from "bullmq";
import type { Context } from "../src/context.ts";
import { levelOf } from "../src/failure.ts";
import type { RedisClient } from "../src/operations/redis.ts";
import type { BurstJob, DeliveryJob, RepositoryJob } from "../src/queues/jobs.ts";
import { MOST_TAKEOVERS } from "../src/waits/retries.ts";
import { backoffMs, isWaiting, withRetryPolicy } from "./retry-policy.ts";

/** What every worker is opened with. */
export interface WorkerContext extends Context {
  /** A connection that waits for Redis instead of failing (`openWorkerRedis`), shared by the workers of a process. */
  jobs: RedisClient;
  /** Aborts when the process is to stop: long jobs stop at the next place where they can go on. */
  stopping: AbortSignal;
}

// A worker that was killed stops renewing its locks; another takes its jobs over at the first check after they have
// ended.
const JOB_LOCK_MS = 6_000;
// BullMQ skips a check that comes within the interval after the last one, by the clock of Redis. So two checks may be
// twice the interval apart. At 3 s takeovers of more than 11 s were seen.
const STALLED_INTERVAL_MS = 1_000;
// If there is room, BullMQ fetches one job after the other until all places are taken, and only then begins with the
// first. Until then it renews no locks. With 256 places, and a Redis that takes 25 ms to answer, locks expired before
// the first job began.
const FETCHED_AHEAD = 16;
/**
 * For jobs that stand for an acknowledged delivery. A worker that is stopped for some seconds is taken over as well.
 */
export const ANY_NUMBER = Number.MAX_SAFE_INTEGER;

/**
 * A BullMQ worker with our ways: the retry policy, takeover within ten seconds of a `kill -9`, bounded takeovers, a log
 * line for each job that fails. The job's signal aborts when the process stops or the job has been taken over by
 * another.
 */
export function openWorker<Payload, Name extends string = string>(
  ctx: WorkerContext,
  name: string,
  { concurrency, mostTakeovers = MOST_TAKEOVERS }: { concurrency: number; mostTakeovers?: number },
  run: (job: Job<Payload, void, Name>, signal: AbortSignal, token: string | undefined) => Promise<unknown>,
): Worker<Payload, void, Name> {
  const fewest = Math.min(concurrency, FETCHED_AHEAD);
  let underWay = 0;
  const metered = meterOf(ctx, name);
  const worker: Worker<Payload, void, Name> = new Worker<Payload, void, Name>(
    name,
    async (job, token, cancelled) => {
      const signal = cancelled ? AbortSignal.any([ctx.stopping, cancelled]) : ctx.stopping;
      underWay += 1;
      // It does not fall while jobs are under way: a job that ends fetches the next one only below this number.
      worker.concurrency = Math.min(concurrency, Math.max(worker.concurrency, underWay + FETCHED_AHEAD));
      try {
        await metered(() =>
          traced(ctx, name, job, () => withRetryPolicy(ctx, job, token, signal, () => run(job, signal, token))),
        );
      } finally {
        underWay -= 1;
        if (underWay === 0) worker.concurrency = fewest;
      }
    },
    {
      connection: ctx.jobs,
      prefix: ctx.config.redisPrefix,
      concurrency: fewest,
      lockDuration: JOB_LOCK_MS,
      stalledInterval: STALLED_INTERVAL_MS,
      maxStalledCount: mostTakeovers,
      settings: { backoffStrategy: (attemptsMade) => backoffMs(attemptsMade, ctx.random) },
    },
  );
  logEvents(ctx, name, worker);
  worker.on("lockRenewalFailed", (jobIds) => {
    for (const jobId of jobIds) worker.cancelJob(jobId, "another worker may hold it");
  });
  // At once, not later when the process closes the worker: a job that stopped at a resumable place must not be taken up
  // here again.
  ctx.stopping.addEventListener("abort", () => {
    // While Redis is away the worker could not settle its jobs anyway, and closing would wait for Redis.
    worker
      .close(ctx.jobs.status !== "ready")
      .catch((error: Error) => ctx.log.warn({ queue: name, err: error }, "A worker could not be closed"));
  });
  return worker;
}

// Reports about running jobs: counts, log lines and traces.

const JOB_SECONDS: readonly number[] = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800];

/** Counts runs of jobs and their durations. A job that is delayed to wait for quota does not count as failed. */
function meterOf({ metrics }: Pick<Context, "metrics">, queue: string): (run: () => Promise<void>) => Promise<void> {
  const ended = metrics.counter("tain_jobs_total", "Runs of jobs that have ended.", ["queue", "outcome"]);
  const seconds = metrics.histogram("tain_job_duration_seconds", "How long they took.", ["queue"], JOB_SECONDS);
  return async (run) => {
    const startedAt = performance.now();
    let outcome = "failed";
    try {
      await run();
      outcome = "done";
    } catch (error) {
      if (isWaiting(error)) outcome = "waits";
      throw error;
    } finally {
      ended.inc({ queue, outcome });
      seconds.observe({ queue }, (performance.now() - startedAt) / 1_000);
    }
  };
}

export function logEvents<Payload, Name extends string>(
  { log }: Pick<Context, "log">,
  queue: string,
  worker: Worker<Payload, void, Name>,
): void {
  worker.on("failed", (job, error) => {
    const { id: jobId, data, attemptsMade: attempts, opts } = job ?? {};
    const isFinal = !job || job.finishedOn !== undefined;
    log[isFinal ? "error" : "warn"](
      { queue, jobId, key: queue === "inbox" ? undefined : data, attempts, of: opts?.attempts, err: error },
      isFinal ? "A job failed for good" : "A job failed and will be tried again",
    );
  });
  worker.on("stalled", (jobId) => log.warn({ queue, jobId }, "A job's worker has gone; another takes it over"));
  // An outage only at debug level, because the connection logs its own outages.
  worker.on("error", (error) => log[levelOf(error, "debug")]({ queue, err: error }, "A worker reports an error"));
}

/**
 * Records the job in the trace that it carries, or in a new one. A job that is delayed to wait for quota does not count
 * as failed.
 */
async function traced(
  { tracing }: Pick<Context, "tracing">,
  queue: string,
  { id, name, data, attemptsMade }: Job,
  run: () => Promise<unknown>,
): Promise<void> {
  if (!tracing.isOn) return void (await run());
  const { traceparent, traceparents = [], repositoryId }: Partial<DeliveryJob & BurstJob & RepositoryJob> = data;
  const attributes = {
    "messaging.system": "bullmq",
    "messaging.destination.name": queue,
    "messaging.message.id": id ?? "",
    "tain.attempt": attemptsMade + 1,
    ...(repositoryId !== undefined && { "tain.repository": repositoryId }),
  };
  const about = {
    kind: "consumer",
    attributes,
    links: traceparents,
    isFailure: (error: unknown) => !isWaiting(error),
  } as const;
  await tracing.begin(`${queue} ${name}`, traceparent, about, run);
}
