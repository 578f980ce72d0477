import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";

/** So many moments of a pace may follow each other closely. */
const BURST = 8;
/** In the long run there is one moment in this time: it bounds what a lively hour costs. */
export const PACE_MS = 180_000;

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
 * Takes one moment of a pace: a bucket of BURST, which gets one in PACE_MS. All processes share it, and its row of
 * `upkeep` keeps when it will be full.
 * @throws QuestionsPacedError
 */
export async function takeMoment({ db, clock }: Pick<Context, "db" | "clock">, pace: string): Promise<void> {
  const now = clock.now();
  const after = (moments: number) => new Date(now.getTime() + moments * PACE_MS);
  // A clock that was put back does not make the questions wait.
  const taken = await db.count(sql`
    insert into upkeep as u (task, done_until) values (${pace}, ${after(1)})
      on conflict (task) do update set done_until = case when u.done_until > ${after(BURST)} then ${after(1)}
          else greatest(u.done_until, ${now}) + ${`${PACE_MS} milliseconds`}::interval end
        where u.done_until <= ${after(BURST - 1)} or u.done_until > ${after(BURST)}
      returning task`);
  if (taken > 0) return;
  const [row] = await db.query<{ fullAt: Date }>(sql`select done_until as "fullAt" from upkeep where task = ${pace}`);
  const fullAt = row?.fullAt ?? now;
  throw new QuestionsPacedError(new Date(fullAt.getTime() - (BURST - 1) * PACE_MS));
}
