import type { Queries } from "../../db/connection.ts";
import { sql } from "../../db/drizzle.ts";
import type { Context } from "../context.ts";
import type { Mark, MarkKey } from "../mirror/marks.ts";
import { enqueueRefreshes, QueueUnavailableError } from "../operations/queues.ts";

/** Queues the refresh of marks that are stored already. With Redis down the scheduler finds them later. */
export async function enqueueMarks(
  ctx: Pick<Context, "queues" | "redis" | "clock" | "log">,
  marks: Mark[],
): Promise<void> {
  try {
    const now = ctx.clock.now().getTime();
    await enqueueRefreshes(
      ctx,
      marks.map(({ kind, repositoryId, key, notBefore }) => ({
        job: { kind, repositoryId, key },
        delayMs: Math.max(0, notBefore.getTime() - now),
      })),
    );
  } catch (error) {
    if (!(error instanceof QueueUnavailableError)) throw error;
    ctx.log.warn({ marks: marks.length }, "Refreshes wait for Redis");
  }
}

interface MarkRow extends Record<string, unknown> {
  kind: Mark["kind"];
  repository_id: string;
  key: string;
  asked_at: Date;
  not_before: Date;
}

const OVERDUE_MS = 15_000;
const BATCH = 1_000;

/** Queues the marks whose time has passed and whose job was lost, the oldest first. Answers how many. */
export async function dispatchMarks(ctx: Pick<Context, "db" | "queues" | "redis" | "clock" | "log">): Promise<number> {
  const due = new Date(ctx.clock.now().getTime() - OVERDUE_MS);
  const { rows } = await ctx.db.$client.query<MarkRow>(
    `select * from refresh_marks where not_before <= $1 order by not_before limit ${BATCH}`,
    [due],
  );
  const marks = rows.map(toMark);
  await enqueueMarks(ctx, marks);
  return marks.length;
}

export async function findMark(db: Context["db"], { kind, repositoryId, key }: MarkKey): Promise<Mark | null> {
  const { rows } = await db.$client.query<MarkRow>(
    "select * from refresh_marks where kind = $1 and repository_id = $2 and key = $3",
    [kind, repositoryId, key],
  );
  return rows[0] ? toMark(rows[0]) : null;
}

/** Takes a mark away, unless a newer reason to ask has arisen since `mark` was read. */
export async function settleMark(
  queries: Pick<Queries, "execute">,
  { kind, repositoryId, key, askedAt }: Mark,
): Promise<void> {
  await queries.execute(sql`delete from refresh_marks
    where kind = ${kind} and repository_id = ${repositoryId} and key = ${key} and asked_at <= ${askedAt.toISOString()}::timestamptz`);
}

/** The resource will be asked for again; the mark stays. */
export async function postponeMark(
  queries: Pick<Queries, "execute">,
  { kind, repositoryId, key }: Mark,
  notBefore: Date,
): Promise<void> {
  await queries.execute(sql`update refresh_marks set not_before = ${notBefore.toISOString()}::timestamptz
    where kind = ${kind} and repository_id = ${repositoryId} and key = ${key}`);
}

function toMark(row: MarkRow): Mark {
  return {
    kind: row.kind,
    repositoryId: Number(row.repository_id),
    key: Number(row.key),
    askedAt: row.asked_at,
    notBefore: row.not_before,
  };
}
