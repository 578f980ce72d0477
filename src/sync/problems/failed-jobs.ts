import type { Job } from "bullmq";
import { type SQL, sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { objectOf, wholeOf } from "../../json.ts";
import { failedIn, retried } from "../../queues/failed.ts";
import { askQueues, QUEUE_KEYS, type Queues } from "../../queues/queues.ts";
import { waitAfterMs } from "../../waits/backoff.ts";
import { JOB_ATTEMPTS, RETRIES } from "../../waits/retries.ts";

/** How many failed jobs of a queue are looked at in a minute, the oldest first. */
const LOOKED_AT = 100;
/** So long an operator is told what came of a command. */
const COMMAND_TOLD_MS = 10 * 60_000;
/** BullMQ's words for a job that has killed its workers. It would kill the next. */
const KILLS_WORKERS = /^job stalled more than/;

type FailedJobsContext = Pick<Context, "config" | "db" | "queues" | "redis" | "random">;

/** A failed job, and the keys of what it was to be done to; null: it names none, or an odd one. */
interface FailedSubject {
  job: Job;
  failedAt: Date;
  /** A repository, or a target. */
  owner: number | null;
  /** A hook, or a resource. */
  key: number | null;
  /** A GUID, a delivery's id, or a kind. */
  text: string;
}

/**
 * Takes failed jobs away whose work has been done since, or is not to be done any more: others were asked for the same.
 * Deliveries that only Redis has are tried again, since nothing else asks for them. Answers how many went.
 */
export async function settleFailedJobs(ctx: FailedJobsContext, signal?: AbortSignal): Promise<number> {
  let settled = 0;
  for (const key of QUEUE_KEYS) {
    for await (const jobs of failedIn(ctx, key, { limit: LOOKED_AT, isOldestFirst: true })) {
      if (signal?.aborted) return settled;
      const failed = jobs.map(subjectOf);
      const over = await settledAmong(ctx, key, failed);
      for (const { job } of over) await askQueues(ctx, () => job.remove());
      settled += over.length;
      if (key !== "inbox") continue;
      const due = failed.filter((one) => !over.includes(one) && isDue(one.job));
      for (const { job } of due) await askQueues(ctx, () => retried(job));
    }
  }
  return settled;
}

/** Whether a delivery is to be tried again. BullMQ counts by real time. */
function isDue({ failedReason, finishedOn, attemptsMade }: Job): boolean {
  if (KILLS_WORKERS.test(failedReason ?? "")) return false;
  const times = Math.max(1, attemptsMade - JOB_ATTEMPTS.inbox + 1);
  return Date.now() >= (finishedOn ?? 0) + waitAfterMs(times, RETRIES.failedDelivery, () => 0.5);
}

function subjectOf(job: Job): FailedSubject {
  // A job of another version may look otherwise.
  const { repositoryId, targetId, hookId, key, guid, deliveryId, kind } = objectOf(job.data);
  return {
    job,
    failedAt: new Date(job.finishedOn ?? 0),
    owner: wholeOf(repositoryId ?? targetId),
    key: wholeOf(hookId ?? key),
    text: String(guid ?? deliveryId ?? kind ?? ""),
  };
}

/** Those whose work is done, or is no work any more. */
async function settledAmong(
  ctx: FailedJobsContext,
  key: keyof Queues,
  failed: FailedSubject[],
): Promise<FailedSubject[]> {
  // BullMQ counts by real time.
  if (key === "commands") return failed.filter(({ failedAt }) => failedAt.getTime() <= Date.now() - COMMAND_TOLD_MS);
  const isSettled = IS_SETTLED[key];
  return isSettled ? await among(ctx, failed, isSettled) : [];
}

/** Whether the work of the failed job `f` is done, or is no work any more, by queue. Null: no row says so. */
const IS_SETTLED: Readonly<Record<Exclude<keyof Queues, "commands">, SQL | null>> = {
  inbox: sql`exists (select from deliveries d where d.hook_id = f.key and d.guid = f.text)`,
  deliveries: sql`not exists (select from deliveries d where d.id::text = f.text and d.status = 'pending')`,
  backfill: sql`not exists (select from repository_syncs s where s.repository_id = f.owner and s.state = 'backfilling')`,
  catchUp: sql`not exists (select from repository_syncs s where s.repository_id = f.owner
    and s.state in ('live', 'paused') and (s.caught_up_at is null or s.caught_up_at <= f.failed_at))`,
  audit: sql`not exists (select from audits a where a.repository_id = f.owner
    and (a.finished_at is null or a.finished_at <= f.failed_at))`,
  refresh: sql`not exists (select from refresh_marks m
    where m.kind = f.text and m.repository_id = f.owner and m.key = f.key)`,
  targets: sql`not exists (select from target_cursors c where c.target_id = f.owner and c.wanted_id > c.done_id)`,
  // The next run that goes well takes them away: `workers/maintenance.ts`.
  maintenance: null,
  shards: null,
  // They are kept only while they run.
  bursts: null,
};

/** Those of which the condition, about the row `f`, holds. */
async function among(
  { db }: Pick<FailedJobsContext, "db">,
  failed: FailedSubject[],
  holds: SQL,
): Promise<FailedSubject[]> {
  const of = <Key extends keyof FailedSubject>(key: Key) => failed.map((one) => one[key]);
  const rows = await db.query<{ at: number }>(sql`
    select f.at - 1 as at
      from unnest(${of("owner")}::bigint[], ${of("key")}::bigint[], ${of("text")}::text[], ${of("failedAt")}::timestamptz[])
        with ordinality as f(owner, key, text, failed_at, at)
      where ${holds}`);
  return rows.flatMap(({ at }) => failed[at] ?? []);
}
