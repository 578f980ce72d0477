import type { Context } from "../../context.ts";
import { levelOf, reasonOf } from "../../failure.ts";
import { QuotaSpentError } from "../../upstream/protocol/errors.ts";
import { QUICK_ATTEMPTS } from "../../waits/retries.ts";
import { type CredentialWait, classifyFailure } from "./causes.ts";
import {
  type Cause,
  endProblem,
  findProblems,
  noteFailure,
  type Problem,
  problemName,
  type Subject,
} from "./problems.ts";

type Isolating = Pick<Context, "db" | "clock" | "config" | "random" | "log">;

/**
 * How to work on several things, one by one. Every loop that asks upstream about repositories, installations,
 * selections, hooks, marks or tokens goes through `eachAlone`, so that a failed one does not stop the others. The
 * exception is `refresh/mergeability.ts`: its job takes marks of many repositories, and the job of each mark reports
 * that mark's failure. Loops that only write rows or queue jobs need no isolation.
 */
interface Each<Item, Value> {
  subjectOf(item: Item): Subject;
  /**
   * The group of items that need the same credential: when its quota is spent for one, the others wait as well.
   * Default: all items.
   */
  groupOf?(item: Item): unknown;
  /** Default 1. */
  atOnce?: number;
  signal?: AbortSignal | undefined;
  work(item: Item): Promise<Value>;
  /**
   * Called with the results of each batch, before the next batch begins. `failed`: items that failed, which count as
   * tried.
   */
  store?(done: readonly { item: Item; value: Value }[], failed: readonly Item[]): Promise<void>;
}

/**
 * Does the work for each item that is not left alone, in their order. An item that fails keeps its problem in words,
 * and is left alone for a while, which doubles with each failure. Answers why some items could not be tried; null: all
 * were tried.
 * @throws an error that is no item's fault, such as an absent Postgres: the first; further ones are logged
 */
export async function eachAlone<Item, Value>(
  ctx: Isolating,
  items: readonly Item[],
  { subjectOf, groupOf = () => null, atOnce = 1, signal, work, store }: Each<Item, Value>,
): Promise<CredentialWait | null> {
  const problems = await findProblems(ctx, items.map(subjectOf));
  const problemOf = (item: Item) => problems.get(problemName(subjectOf(item)));
  const waiting = new Map<unknown, CredentialWait>();
  const open = items.filter((item) => !problemOf(item)?.isResting);
  for (let start = 0; start < open.length && !signal?.aborted; start += atOnce) {
    const some = open.slice(start, start + atOnce).filter((item) => !waiting.has(groupOf(item)));
    const settled = await Promise.allSettled(some.map((item) => work(item)));
    const done: { item: Item; value: Value }[] = [];
    const failed: { item: Item; cause: Cause; error: unknown }[] = [];
    const notTheirs: unknown[] = [];
    for (const [at, item] of some.entries()) {
      const outcome = settled[at];
      if (outcome?.status === "fulfilled") done.push({ item, value: outcome.value });
      if (outcome?.status !== "rejected") continue;
      const failure = classifyFailure(outcome.reason);
      if (failure.kind === "waits") waiting.set(groupOf(item), failure.error);
      else if (failure.kind === "failed") failed.push({ item, cause: failure.cause, error: outcome.reason });
      else notTheirs.push(outcome.reason);
    }
    await store?.(
      done,
      failed.map(({ item }) => item),
    );
    for (const { item, cause, error } of failed)
      await noteIsolated(ctx, subjectOf(item), cause, error, problemOf(item));
    for (const { item } of done) {
      const problem = problemOf(item);
      if (problem) await endProblem(ctx, subjectOf(item), problem);
    }
    const [thrown, ...others] = notTheirs;
    for (const err of others)
      ctx.log[levelOf(err, "warn")]({ err }, "Another item was stopped as well, by an error that is not its own");
    if (notTheirs.length > 0) throw thrown;
  }
  return soonest([...waiting.values()]);
}

/**
 * Stores each row of an answer, one by one: a row that cannot be stored keeps no other from being stored. Answers why
 * some were not. @throws an error that is no row's fault
 */
export async function eachStored<Row>(rows: readonly Row[], store: (row: Row) => Promise<void>): Promise<unknown[]> {
  const faults: unknown[] = [];
  for (const row of rows) {
    try {
      await store(row);
    } catch (error) {
      if (classifyFailure(error).kind !== "failed") throw error;
      faults.push(error);
    }
  }
  return faults;
}

/**
 * As `eachAlone`, for a job with a single thing to work on. False: the thing is left alone for now, or it failed.
 * Errors that mostly pass within seconds are thrown the first few times, so that the queue tries again.
 */
export async function tryAlone(ctx: Isolating, subject: Subject, work: () => Promise<unknown>): Promise<boolean> {
  const problem = (await findProblems(ctx, [subject])).get(problemName(subject)) ?? null;
  if (problem?.isResting && !isQuick(problem.cause, problem.failures)) return false;
  try {
    await work();
  } catch (error) {
    await failAlone(ctx, subject, error, problem);
    return false;
  }
  if (problem) await endProblem(ctx, subject, problem);
  return true;
}

/**
 * Notes that the one thing has failed, and answers until when it is left alone.
 * @param problem the thing's problem before this failure
 * @throws the error itself if it is not the thing's fault, or mostly passes within seconds
 */
export async function failAlone(
  ctx: Isolating,
  subject: Subject,
  error: unknown,
  problem: Problem | null,
): Promise<Date> {
  const failure = classifyFailure(error);
  if (failure.kind !== "failed") throw error;
  const nextAt = await noteIsolated(ctx, subject, failure.cause, error, problem);
  if (isQuick(failure.cause, (problem?.failures ?? 0) + 1)) throw error;
  return nextAt;
}

function isQuick(cause: Cause, failures: number): boolean {
  return (cause === "unavailable" || cause === "own") && failures <= QUICK_ATTEMPTS;
}

async function noteIsolated(
  ctx: Isolating,
  subject: Subject,
  cause: Cause,
  error: unknown,
  known: Problem | null | undefined,
): Promise<Date> {
  const reason = reasonOf(error);
  const problem = cause === "own" ? `Tain itself failed, and its log says where: ${reason}` : reason;
  const { failures, nextAt } = await noteFailure(ctx, subject, { cause, problem, known: known ?? null });
  const told = { ...subject, failures, nextAt };
  if (cause === "own") ctx.log.error({ ...told, err: error }, "An item failed by a fault of Tain's");
  else if (cause === "unread") ctx.log.debug({ ...told, reason }, "The upstream mirror has still to read an item");
  else ctx.log.warn({ ...told, reason }, "An item failed and is left alone for a while");
  return nextAt;
}

/** The wait that ends first. */
function soonest(waiting: readonly CredentialWait[]): CredentialWait | null {
  const spent = waiting.filter((error) => error instanceof QuotaSpentError);
  const first = spent.toSorted((a, b) => a.resetAt.getTime() - b.resetAt.getTime())[0];
  return first ?? waiting[0] ?? null;
}
