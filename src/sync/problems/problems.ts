import { createHash } from "node:crypto";
import { and, eq } from "drizzle-orm";
import type { Queries } from "../../../db/database.ts";
import { among, type SQL, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { afterLag } from "../../mirror/store/marks.ts";
import { problems } from "../../schema.ts";
import { parseTokens } from "../../upstream/credentials/credentials.ts";
import { type Backoff, waitAfterMs } from "../../waits/backoff.ts";
import { RETRIES } from "../../waits/retries.ts";

/**
 * Why one thing failed, while others may succeed:
 * - absent: upstream does not show it. Deleted, hidden, forbidden and misspelt look alike.
 * - refused: upstream understood, and will not (403 by a permission, SAML, 422 …).
 * - unavailable: upstream failed with 5xx, ran out of time, or its answer could not be read.
 * - unread: upstream is a mirror, and has still to read it.
 * - own: a bug of ours. It is logged as an error, and must not stop the others either.
 */
export type Cause = "absent" | "refused" | "unavailable" | "unread" | "own";

/** Work on one thing at a time. This module alone writes the table `problems`. */
export type Task =
  | "select"
  | "token"
  | "installation"
  | "backfill"
  | "part"
  | "catch-up"
  | "sweep"
  | "audit"
  | "refresh"
  | "hook"
  | "names"
  | "events";

/** One thing that may fail alone. */
export interface Subject {
  task: Task;
  /** The thing that the task works on: a selection, an installation, a repository's id … */
  key: string;
  /** The repository that it concerns; null: none, or several. */
  repositoryId: number | null;
}

/** How it failed when it was last tried. */
export interface Problem {
  cause: Cause;
  failures: number;
  since: Date;
  failedAt: Date;
  nextAt: Date;
  /** The thing is left alone for now. */
  isResting: boolean;
}

/**
 * How long a failed thing is left alone. A single resource that upstream refuses for good is asked for as seldom as an
 * absent one.
 */
function waitsOf(task: Task, cause: Cause): Backoff {
  return task === "refresh" && cause === "refused" ? RETRIES.absent : RETRIES[cause];
}

/** Failures that began within this time of one another probably have one reason: upstream was down. */
const TOGETHER = `${5 * 60_000} milliseconds`;

type ProblemContext = Pick<Context, "db" | "clock" | "config">;

/** The subjects' problems, by `problemName`. */
export async function findProblems(ctx: ProblemContext, subjects: readonly Subject[]): Promise<Map<string, Problem>> {
  if (subjects.length === 0) return new Map();
  const tasks = sql.array([...new Set(subjects.map(({ task }) => task))], "text");
  const keys = sql.array(
    subjects.map(({ key }) => key),
    "text",
  );
  const rows = await ctx.db.prepared<Subject & Problem>(sql`
    select p.task, p.key, p.cause, p.failures, p.since, p.failed_at as "failedAt", p.next_at as "nextAt", ${isResting(ctx)} as "isResting" from problems p
      where p.task = any(${tasks}::text[]) and p.key = any(${keys}::text[])`);
  return new Map(rows.map((row) => [problemName(row), row]));
}

export function problemName({ task, key }: Pick<Subject, "task" | "key">): string {
  return `${task} ${key}`;
}

/** Whether the row `p` is left alone for now. */
function isResting({ clock, config }: Pick<Context, "clock" | "config">): SQL {
  return sql`(p.next_at > ${clock.now()} and p.credentials = ${credentialsOf(config)})`;
}

/** Whether the task leaves the thing named `key` alone for now; `key` is a text in SQL. */
export function rests(ctx: Pick<Context, "clock" | "config">, task: Task, key: SQL): SQL {
  return sql`exists (select from problems p where p.task = ${task} and p.key = ${key} and ${isResting(ctx)})`;
}

/**
 * A digest of the credentials. With new credentials all problems are tried again, since upstream may show them more.
 */
function credentialsOf({ upstreamTokens, appId, appPrivateKey }: Context["config"]): string {
  const all = [...parseTokens(upstreamTokens).keys()].sort().concat(appId ?? "", appPrivateKey ?? "");
  return createHash("sha256").update(all.join(" ")).digest("hex").slice(0, 16);
}

/**
 * Notes one more failure, and answers until when the subject is left alone. A reason to try again may have come while
 * the failed work ran. It is newer than the failure, so it stays.
 * @param known the problem as it stood when the work began
 */
export async function noteFailure(
  ctx: ProblemContext & Pick<Context, "random">,
  { task, key, repositoryId }: Subject,
  { cause, problem, known }: { cause: Cause; problem: string; known: Problem | null },
): Promise<{ failures: number; nextAt: Date }> {
  const failures = (known?.failures ?? 0) + 1;
  const now = ctx.clock.now();
  // A single 404 may be false: of a replica that lags, or of a server that fails.
  const isPartAbsent = task === "part" && cause === "absent";
  const attempt = isPartAbsent ? failures - 1 : failures;
  const nextAt =
    attempt === 0 ? afterLag(now) : new Date(now.getTime() + waitAfterMs(attempt, waitsOf(task, cause), ctx.random));
  const failure = { cause, problem, failures, failedAt: now, credentials: credentialsOf(ctx.config) };
  const isAsKnown = sql`${problems.nextAt} = ${known?.nextAt ?? null}::timestamptz`;
  const [noted] = await ctx.db
    .insert(problems)
    .values({ task, key, repositoryId, ...failure, since: now, nextAt })
    .onConflictDoUpdate({
      target: [problems.task, problems.key],
      set: { ...failure, nextAt: sql`case when ${isAsKnown} then excluded.next_at else ${problems.nextAt} end` },
    })
    .returning({ nextAt: problems.nextAt });
  return { failures, nextAt: noted?.nextAt ?? nextAt };
}

/**
 * Ends the problem of a subject that went well. Other subjects that began to fail in the same outage need not wait any
 * longer either.
 */
export async function endProblem(
  ctx: ProblemContext,
  { task, key }: Subject,
  { cause, since }: Problem,
): Promise<void> {
  await ctx.db.delete(problems).where(and(eq(problems.task, task), eq(problems.key, key)));
  if (cause !== "unavailable") return;
  const now = ctx.clock.now();
  await ctx.db.query(sql`
    update problems set next_at = ${now} where cause = 'unavailable' and next_at > ${now}
      and since between ${since}::timestamptz - ${TOGETHER}::interval and ${since}::timestamptz + ${TOGETHER}::interval`);
}

type Which = { repositoryIds: readonly number[] } | { task: Task; keys: readonly string[] };

function isAmong(which: Which): SQL | undefined {
  return "task" in which
    ? and(eq(problems.task, which.task), among(problems.key, which.keys))
    : among(problems.repositoryId, which.repositoryIds);
}

/** Forgets problems of things that are followed anew, or no longer. */
export async function forgetProblems(queries: Queries, which: Which): Promise<void> {
  await queries.delete(problems).where(isAmong(which));
}

/**
 * Lets subjects be tried at once. The reason may be a webhook, an operator or a restored permission. Each call moves
 * `next_at`, so that work that fails meanwhile notices the reason (`noteFailure`).
 */
export async function tryAgain(queries: Queries, which: Which): Promise<void> {
  await queries
    .update(problems)
    .set({ nextAt: sql`least(${problems.failedAt}, ${problems.nextAt} - interval '1 millisecond')` })
    .where(isAmong(which));
}

/** Lets everything be tried at once that failed after `since`, as of `now`. Answers how many there are. */
export async function tryAgainSince(queries: Queries, since: Date, now: Date): Promise<number> {
  return await queries.count(sql`
    update problems set since = least(since, ${now}), failed_at = ${now}, next_at = ${now} where failed_at > ${since}`);
}
