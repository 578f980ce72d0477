import type { Queries } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { MARK_COLUMNS, type Mark, withMarks } from "../../mirror/store/marks.ts";
import { refreshesWithoutJob } from "../../queues/open-jobs.ts";
import { enqueueRefreshes, orLater } from "../../queues/queues.ts";
import { waitAtAgeMs } from "../../waits/backoff.ts";
import { RETRIES } from "../../waits/retries.ts";
import { rests } from "../problems/problems.ts";

/**
 * While a job waits, the queue drops further jobs for the same mark, even earlier ones. So no job waits longer than
 * this. The scheduler finds marks that are due later.
 */
const LONGEST_DELAY_MS = 60_000;

/** Queues the refresh of marks that are stored already. With Redis away the scheduler finds them later. */
export async function enqueueMarks(
  ctx: Pick<Context, "queues" | "redis" | "clock" | "log">,
  marks: Mark[],
): Promise<void> {
  const now = ctx.clock.now().getTime();
  const asks = marks
    .map(({ kind, repositoryId, key, notBefore }) => ({
      job: { kind, repositoryId, key },
      delayMs: Math.max(0, notBefore.getTime() - now),
    }))
    .filter(({ delayMs }) => delayMs <= LONGEST_DELAY_MS);
  await orLater(ctx, { refreshes: asks.length }, () => enqueueRefreshes(ctx, asks));
}

const MARK_OVERDUE_MS = 15_000;
const MARKS_A_BATCH = 1_000;

/**
 * Queues the oldest marks whose time has passed and whose job was lost. A repository that was refused as a whole is
 * tried by one of its marks. Answers how many were queued.
 */
export async function dispatchMarks(
  ctx: Pick<Context, "config" | "db" | "queues" | "redis" | "clock" | "log">,
): Promise<number> {
  const due = new Date(ctx.clock.now().getTime() - MARK_OVERDUE_MS);
  const key = sql`m.repository_id::text`;
  const marks = await ctx.db.query<Mark>(sql`
    select ${MARK_COLUMNS} from refresh_marks m where m.not_before <= ${due} and not ${rests(ctx, "refresh", key)}
        and not exists (select from problems p, refresh_marks o where p.task = 'refresh' and p.key = ${key}
          and o.repository_id = m.repository_id and (o.not_before, o.kind, o.key) < (m.not_before, m.kind, m.key))
      order by m.not_before limit ${MARKS_A_BATCH}`);
  // Marks that still have a job are not queued again, so that a backlog does not grow.
  const lost = await refreshesWithoutJob(ctx, marks);
  await enqueueMarks(ctx, lost);
  return lost.length;
}

/** Locks marks that will be stored, settled or postponed, in the order in which others store them. */
export async function lockMarks(db: Queries, marks: readonly Mark[]): Promise<void> {
  await withMarks(
    db,
    marks,
    (x) => sql`
      select from refresh_marks m join ${x} on m.kind = x.kind and m.repository_id = x.r and m.key = x.k
        order by m.kind, m.repository_id, m.key for update of m`,
  );
}

/** Takes marks away, unless a newer reason to ask has arisen since they were read. */
export async function settleMarks(db: Queries, marks: readonly Mark[]): Promise<void> {
  await withMarks(
    db,
    marks,
    (x) => sql`
      delete from refresh_marks m using ${x}
        where m.kind = x.kind and m.repository_id = x.r and m.key = x.k and m.asked_at <= x.a`,
  );
}

/**
 * The resources will be asked for again at their `notBefore`; the marks stay. A mark that has a newer reason to ask
 * than the one given keeps its own time.
 * @param marks as they were when the read began
 * @returns the marks as they stand now
 */
export async function postponeMarks(db: Queries, marks: readonly Mark[]): Promise<Mark[]> {
  return await withMarks<Mark>(
    db,
    marks,
    (x) => sql`
      update refresh_marks m set not_before = case when m.asked_at <= x.a then x.n else m.not_before end from ${x}
        where m.kind = x.kind and m.repository_id = x.r and m.key = x.k returning ${MARK_COLUMNS}`,
  );
}

/**
 * When to ask a mirror again that still has to read something: ever more seldom, since its own upstream may be away. A
 * mark counts no attempts. Here and in `wholes/whole.ts` its age stands for them, and the waits grow with that.
 */
export function nextAsk({ askedAt }: Mark, now: Date, leastMs = 0): Date {
  const waitMs = waitAtAgeMs(now.getTime() - askedAt.getTime(), RETRIES.unread);
  return new Date(now.getTime() + Math.max(leastMs, waitMs));
}
