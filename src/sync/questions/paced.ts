import { eq } from "drizzle-orm";
import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import type { MarkKey } from "../../mirror/store/marks.ts";
import { upkeep } from "../../schema.ts";

/** So many moments of a pace may follow each other closely. */
const BURST = 8;
/** A pace: in the long run there is one moment in `everyMs`, which bounds what a lively hour costs. */
export interface QuestionPace {
  name: string;
  everyMs: number;
}

/** The moments of a pace follow each other too closely. Ask at `notBefore`; do not guess. */
export class QuestionsPacedError extends Error {
  override name = "QuestionsPacedError";
  readonly notBefore: Date;

  constructor(notBefore: Date) {
    super(`These questions are paced until ${notBefore.toISOString()}`);
    this.notBefore = notBefore;
  }
}

/**
 * Takes one moment of a pace: a bucket of BURST, which gets one in `everyMs`. All processes share it, and its row of
 * `upkeep` keeps when it will be full.
 * @throws QuestionsPacedError
 */
export async function takeMoment(
  { db, clock }: Pick<Context, "db" | "clock">,
  { name, everyMs }: QuestionPace,
): Promise<void> {
  const now = clock.now();
  const after = (moments: number) => new Date(now.getTime() + moments * everyMs);
  // A clock that was put back does not make the questions wait.
  const taken = await db.count(sql`
    insert into upkeep as u (task, done_until) values (${name}, ${after(1)})
      on conflict (task) do update set done_until = case when u.done_until > ${after(BURST)} then ${after(1)}
          else greatest(u.done_until, ${now}) + ${`${everyMs} milliseconds`}::interval end
        where u.done_until <= ${after(BURST - 1)} or u.done_until > ${after(BURST)}
      returning task`);
  if (taken > 0) return;
  const [row] = await db.select({ fullAt: upkeep.doneUntil }).from(upkeep).where(eq(upkeep.task, name));
  const fullAt = row?.fullAt ?? now;
  throw new QuestionsPacedError(new Date(fullAt.getTime() - (BURST - 1) * everyMs));
}

/** Takes one moment, if there is one. */
export async function mayTakeMoment(ctx: Pick<Context, "db" | "clock">, pace: QuestionPace): Promise<boolean> {
  try {
    await takeMoment(ctx, pace);
    return true;
  } catch (error) {
    if (error instanceof QuestionsPacedError) return false;
    throw error;
  }
}

/**
 * Takes one moment for this mark alone. Where many marks wait for one pace, each comes again at its own time: all of them
 * at each moment would cost Postgres more than the moment saves.
 * @throws QuestionsPacedError
 */
export async function takeMomentAlone(
  ctx: Pick<Context, "db" | "clock" | "random">,
  pace: QuestionPace,
  { kind, repositoryId }: MarkKey,
): Promise<void> {
  try {
    await takeMoment(ctx, pace);
  } catch (error) {
    if (!(error instanceof QuestionsPacedError)) throw error;
    const waiting = await ctx.db.count(sql`
      select from refresh_marks where kind = ${kind} and repository_id = ${repositoryId} limit ${MOST_COUNTED}`);
    throw new QuestionsPacedError(new Date(error.notBefore.getTime() + ctx.random() * waiting * pace.everyMs));
  }
}

const MOST_COUNTED = 1_000;
