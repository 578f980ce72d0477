import type { Job, Worker } from "bullmq";
import type { Context } from "../src/context.ts";
import { levelOf } from "../src/failure.ts";
import type { BurstJob, DeliveryJob, RepositoryJob } from "../src/queues/jobs.ts";
import { isWaiting } from "./retry-policy.ts";

// Reports about running jobs: counts, log lines and traces.

const JOB_SECONDS: readonly number[] = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800];

/** Counts runs of jobs and their durations. A job that is delayed to wait for quota does not count as failed. */
export function meterOf(
  { metrics }: Pick<Context, "metrics">,
  queue: string,
): (run: () => Promise<void>) => Promise<void> {
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
export async function traced(
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
