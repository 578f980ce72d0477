import type { Transaction } from "../../../db/database.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import type { MirrorPart } from "../../config/parts.ts";
import type { Context } from "../../context.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import { afterLag, type Mark, type RepositoryMarkKind, repositoryMark, storeMarks } from "../../mirror/store/marks.ts";
import { waitAtAgeMs } from "../../waits/backoff.ts";
import { RETRIES } from "../../waits/retries.ts";
import type { MergedDeliveries } from "../events/read.ts";
import { enqueueMarks, nextAsk, postponeMarks, settleMarks } from "../marks/marks.ts";
import { rests } from "../problems/problems.ts";
import type { NodeQuestions } from "../questions/node-questions.ts";

/** Lists of a repository that upstream shows whole, and that are read together. One mark stands for them. */
export interface Whole {
  /** The kind of the mark. */
  kind: RepositoryMarkKind;
  /** They are read where one of these is mirrored. */
  parts: readonly MirrorPart[];
  /** Of a repository `r` and its row `s` of `repository_syncs`: some are to be read again, and when they last were. */
  due: (ctx: Pick<Context, "clock" | "config">) => { isDue: SQL; confirmedAt: SQL };
  /** Notes what deliveries tell of them. Answers a mark for each repository in which some are to be read. */
  hear: (tx: Transaction, heard: MergedDeliveries) => Promise<Mark[]>;
  /** Reads those that are due, or not all here. */
  read: (ctx: Context, begun: BegunRead, nodes: NodeQuestions) => Promise<WholeRead>;
}

interface BegunRead {
  mark: Mark;
  repository: MirroredRepository;
  /** When the read began. */
  now: Date;
}

interface WholeRead {
  /** Everything is here, and no replica can have lacked what was known. */
  isDone: boolean;
  /** There is more to read at once. */
  goesOn?: boolean;
  /** Upstream is a mirror that still has to read something. */
  isUnread?: boolean;
  /** Chooses when to read again. @param waitMs how long to wait at least */
  notBefore?: (waitMs: number) => Date;
}

const DUE_AT_ONCE = 1_000;

/** Marks the repositories in which these are due, so a lost webhook is made up for. The longest unconfirmed come first. */
export async function markDue(
  ctx: Pick<Context, "config" | "db" | "queues" | "redis" | "clock" | "log">,
  { kind, parts, due }: Whole,
): Promise<void> {
  const now = ctx.clock.now();
  const { isDue, confirmedAt } = due(ctx);
  const rows = await ctx.db.query<{ id: number }>(sql`
    select r.id from repositories r join repository_syncs s on s.repository_id = r.id
      where s.state = 'live' and s.mirrors && ${[...parts]}::text[] and not ${rests(ctx, "refresh", sql`r.id::text`)}
        and not exists (select from refresh_marks m where m.kind = ${kind} and m.repository_id = r.id)
        and ${isDue}
      order by ${confirmedAt} nulls first, r.id limit ${DUE_AT_ONCE}`);
  const marks = rows.map(({ id }) => repositoryMark(kind, id, now));
  await storeMarks(ctx.db, marks);
  await enqueueMarks(ctx, marks);
}

/** Reads them, and settles their mark once everything is here. "unknown": they are not mirrored there. */
export async function refreshWhole(
  ctx: Context,
  nodes: NodeQuestions,
  whole: Whole,
  repositoryId: number,
): Promise<"merged" | "kept" | "unknown"> {
  const { kind, parts } = whole;
  const now = ctx.clock.now();
  const mark =
    (await ctx.jobReads.mark({ kind, repositoryId, key: repositoryId })) ?? repositoryMark(kind, repositoryId, now);
  const repository = await ctx.jobReads.repository(repositoryId);
  if (repository?.mirrors.some((part) => parts.includes(part)))
    return await settleOrWait(ctx, { mark, now }, await whole.read(ctx, { mark, repository, now }, nodes));
  await settleMarks(ctx.db, [mark]);
  return "unknown";
}

/**
 * A mark that is not done is postponed: to now if there is more to read, else for a while. After some minutes it is settled
 * anyway, unless upstream still has to read something. A newer reason to ask keeps its own time.
 */
async function settleOrWait(
  ctx: Context,
  { mark, now }: Pick<BegunRead, "mark" | "now">,
  {
    isDone,
    goesOn = false,
    isUnread = false,
    notBefore: chosen = (waitMs) => new Date(Math.max(now.getTime() + waitMs, afterLag(now).getTime())),
  }: WholeRead,
): Promise<"merged" | "kept"> {
  const age = now.getTime() - mark.askedAt.getTime();
  if ((isDone || (age >= RETRIES.missing.withinMs && !goesOn)) && !isUnread) {
    await settleMarks(ctx.db, [mark]);
    return "merged";
  }
  const notBefore = goesOn ? now : isUnread ? nextAsk(mark, now) : chosen(waitAtAgeMs(age, RETRIES.missing, 2));
  await enqueueMarks(ctx, await postponeMarks(ctx.db, [{ ...mark, notBefore }]));
  return "kept";
}
