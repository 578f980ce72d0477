import { sql } from "drizzle-orm";
import type { Queries } from "../../db/connection.ts";
import type { Context } from "../context.ts";
import { REPLICA_LAG_MS } from "../mirror/merge-rule.ts";
import type { Kind, ResourceKey } from "../mirror/resource.ts";
import type { Merged } from "../mirror/store.ts";
import { enqueueRefreshes, QueueUnavailableError } from "../operations/queues.ts";

/** A resource about which upstream must be asked, and when. */
export interface Mark extends ResourceKey {
  /** The newest reason to ask; only a read that begins later, by more than upstream's replicas lag, settles it. */
  askedAt: Date;
  notBefore: Date;
}

/** When a read is certain to show what was true at `moment`, whichever replica answers. */
export function afterLag(moment: Date): Date {
  return new Date(moment.getTime() + REPLICA_LAG_MS + 1_000);
}

/** The marks for what the merge could not decide: to be asked at once, and once more when no replica can lag behind. */
export function marksForTies(merged: Merged[], askedAt: Date): Mark[] {
  return merged
    .filter(({ outcome }) => outcome === "tied")
    .map(({ kind, repositoryId, key }) => ({ kind, repositoryId, key, askedAt, notBefore: askedAt }));
}

/** Stores marks with what gave reason to them, so that no loss of the queue forgets them. */
export async function storeMarks(queries: Pick<Queries, "execute">, marks: Mark[]): Promise<void> {
  if (marks.length === 0) return;
  const rows = marks.map(({ kind, repositoryId, key, askedAt, notBefore }) => ({
    kind,
    r: repositoryId,
    k: key,
    a: askedAt,
    n: notBefore,
  }));
  await queries.execute(sql`
    insert into refresh_marks (kind, repository_id, key, asked_at, not_before)
    select distinct on (kind, r, k) kind, r, k, a, n
      from json_to_recordset(${JSON.stringify(rows)}::json) as x(kind text, r bigint, k bigint, a timestamptz, n timestamptz) order by kind, r, k, n
    on conflict (kind, repository_id, key) do update set
      asked_at = greatest(refresh_marks.asked_at, excluded.asked_at), not_before = least(refresh_marks.not_before, excluded.not_before)`);
}

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
  kind: Kind;
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

export async function findMark(db: Context["db"], { kind, repositoryId, key }: ResourceKey): Promise<Mark | null> {
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
