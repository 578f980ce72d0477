import { DelayedError, type Job, UnrecoverableError, WaitingError, Worker } from "bullmq";
import type { Context } from "../src/context.ts";
import { reasonOf, withoutContents } from "../src/failure.ts";
import type { RedisClient } from "../src/operations/redis.ts";
import type { BurstJob, DeliveryJob, RepositoryJob } from "../src/queues/jobs.ts";
import { type CredentialWait, classifyFailure } from "../src/sync/problems/causes.ts";
import { CredentialRejectedError } from "../src/upstream/client/errors.ts";
import { type Backoff, jittered, waitAfterMs } from "../src/work/backoff.ts";

/** What every worker is opened with. */
export interface WorkerContext extends Context {
  /** A connection that waits for Redis instead of failing (`openWorkerRedis`), shared by the workers of a process. */
  jobs: RedisClient;
  /** Aborts when the process is to stop: long jobs stop at the next place where they can go on. */
  stopping: AbortSignal;
}

const SECONDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800];

// A worker that was killed stops renewing its locks; another takes its jobs over at the first check after they have ended.
const LOCK_MS = 6_000;
// BullMQ skips a check that comes within the interval after the last one, by the clock of Redis. So two checks may be
// twice the interval apart. At 3 s takeovers of more than 11 s were seen.
const STALLED_INTERVAL_MS = 1_000;
// If there is room, BullMQ fetches one job after the other until all places are taken, and only then begins with the
// first. Until then it renews no locks. With 256 places, and a Redis that takes 25 ms to answer, locks expired before
// the first job began.
const FETCHED_AHEAD = 16;
/** A job that keeps killing its worker must not do so for ever. What asked for it asks again. */
const MOST_TAKEOVERS = 3;
/** For jobs that stand for an acknowledged delivery. A worker that is stopped for some seconds is taken over as well. */
export const ANY_NUMBER = Number.MAX_SAFE_INTEGER;

/**
 * A BullMQ worker with our ways: the retry policy, takeover within ten seconds of a `kill -9`, bounded takeovers, a log line
 * for each job that fails. The job's signal aborts when the process stops or the job has been taken over by another.
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
      // Never fewer while any is under way, or what ends would not bring the next with it.
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
      lockDuration: LOCK_MS,
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

/** Counts runs of jobs, and how long they take. That one waits for its turn is no failure. */
function meterOf(
  { metrics }: Pick<WorkerContext, "metrics">,
  queue: string,
): (run: () => Promise<void>) => Promise<void> {
  const ended = metrics.counter("tain_jobs_total", "Runs of jobs that have ended.", ["queue", "outcome"]);
  const seconds = metrics.histogram("tain_job_duration_seconds", "How long they took.", ["queue"], SECONDS);
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

function logEvents<Payload, Name extends string>(
  { log }: Pick<WorkerContext, "log">,
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
  // The connection reports its own outages.
  worker.on("error", (error) => log.debug({ queue, err: error }, "A worker reports an error"));
}

/** Tells the job in the trace that it carries, or in one of its own. That it waits for its turn is no failure. */
async function traced(
  { tracing }: Pick<WorkerContext, "tracing">,
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

/** Which of BullMQ's words an error becomes. */
export type Verdict =
  /** Waiting our turn is not a failed attempt. */
  | { kind: "delay"; delayMs: number }
  /** Trying again cannot help. */
  | { kind: "give up" }
  /** Perhaps transient: BullMQ backs off and tries again, as often as the queue's `attempts` say. */
  | { kind: "retry" };

const OUTAGE_DELAY_MS = 2_000;
const REJECTED_DELAY_MS = 60_000;
const BACKOFF: Backoff = { firstMs: 1_000, longestMs: 60_000 };
/** Shorter, so that what waits in Redis comes soon after Postgres is back. */
const INBOX_BACKOFF: Backoff = { firstMs: 1_000, longestMs: 16_000 };

/** Says our errors in BullMQ's words. The one place that knows both. */
export async function withRetryPolicy<T>(
  ctx: Pick<Context, "random" | "log">,
  job: Pick<Job, "id" | "queueName" | "attemptsStarted" | "moveToDelayed" | "moveToWait">,
  token: string | undefined,
  signal: AbortSignal | undefined,
  run: () => Promise<T>,
): Promise<T> {
  try {
    signal?.throwIfAborted();
    return await run();
  } catch (thrown) {
    const error = withoutContents(thrown); // BullMQ keeps the message as the job's reason.
    if (isWaiting(error)) throw error;
    if (signal?.aborted) {
      // We are stopping, and the job stopped where it can go on: any other process may have it at once.
      await job.moveToWait(token);
      throw new WaitingError();
    }
    const verdict = verdictOn(error, { random: ctx.random, attempts: job.attemptsStarted });
    switch (verdict.kind) {
      case "delay":
        ctx.log.debug({ queue: job.queueName, jobId: job.id, ...verdict, reason: reasonOf(error) }, "A job waits");
        await job.moveToDelayed(Date.now() + verdict.delayMs, token);
        throw new DelayedError();
      case "give up":
        throw new UnrecoverableError(reasonOf(error));
      case "retry":
        throw error;
      default:
        verdict satisfies never;
        throw error;
    }
  }
}

/** Whether a job ended because it waits for its turn, not because it failed. */
export function isWaiting(error: unknown): boolean {
  return error instanceof DelayedError || error instanceof WaitingError;
}

/** Pure but for the clock: `resetAt` is compared with real time, which is what BullMQ's delays count. */
export function verdictOn(
  error: unknown,
  { random, attempts = 1, nowMs = Date.now() }: { random: () => number; attempts?: number; nowMs?: number },
): Verdict {
  const failure = classifyFailure(error);
  switch (failure.kind) {
    case "waits":
      return { kind: "delay", delayMs: untilMayAsk(failure.error, random, nowMs) };
    case "away":
      // The delivery was acknowledged and stands in Redis alone, so no number of attempts ends this.
      if (failure.what === "inbox") return { kind: "delay", delayMs: waitAfterMs(attempts, INBOX_BACKOFF, random) };
      if (failure.what === "postgres") return { kind: "delay", delayMs: jittered(OUTAGE_DELAY_MS, random) };
      return { kind: "retry" };
    case "failed":
      return { kind: failure.isFinal ? "give up" : "retry" };
    case "ended":
      return { kind: "retry" };
    default:
      return failure satisfies never;
  }
}

function untilMayAsk(error: CredentialWait, random: () => number, nowMs: number): number {
  // Nothing is wrong with the job; the operator has to replace the token.
  if (error instanceof CredentialRejectedError) return jittered(REJECTED_DELAY_MS, random);
  // Never earlier than upstream asked, and a little later at random, so that waiting jobs do not all wake at once.
  return Math.max(0, error.resetAt.getTime() - nowMs) + Math.round(random() * 1_000);
}

/** How long a job waits after its nth failed attempt. */
export function backoffMs(attemptsMade: number, random: () => number): number {
  return waitAfterMs(attemptsMade, BACKOFF, random);
}
