import { DelayedError, type Job, UnrecoverableError, WaitingError } from "bullmq";
import type { Context } from "../src/context.ts";
import { reasonOf, withoutContents } from "../src/failure.ts";
import { type CredentialWait, classifyFailure } from "../src/sync/problems/causes.ts";
import { CredentialRejectedError } from "../src/upstream/protocol/errors.ts";
import { afterAskedMs, waitAfterMs } from "../src/waits/backoff.ts";
import { RETRIES } from "../src/waits/retries.ts";

/** What BullMQ should do with a job after an error. */
type Verdict =
  /** Run the job later. This does not count as a failed attempt. */
  | { kind: "delay"; delayMs: number }
  /** Trying again cannot help. */
  | { kind: "give up" }
  /** Perhaps transient: BullMQ backs off and tries again, as often as the queue's `attempts` say. */
  | { kind: "retry" };

/** Translates our errors to BullMQ's. No other module knows both. */
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
    const error = withoutContents(thrown); // BullMQ stores the message in Redis, as the job's reason.
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
      if (failure.what === "inbox") return { kind: "delay", delayMs: waitAfterMs(attempts, RETRIES.inboxJob, random) };
      if (failure.what === "postgres")
        return { kind: "delay", delayMs: waitAfterMs(1, RETRIES.jobWithoutPostgres, random) };
      return { kind: "retry" };
    case "unusable":
      return { kind: "give up" };
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
  if (error instanceof CredentialRejectedError) return waitAfterMs(1, RETRIES.jobWithoutToken, random);
  return afterAskedMs(error.resetAt.getTime() - nowMs, random);
}

/** How long a job waits after its nth failed attempt. */
export function backoffMs(attemptsMade: number, random: () => number): number {
  return waitAfterMs(attemptsMade, RETRIES.job, random);
}
