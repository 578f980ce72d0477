import { sql } from "../../../db/sql.ts";
import type { Context } from "../../context.ts";
import { GraphqlTooHeavyError } from "../../upstream/client/errors.ts";

/** A query about several pull requests. How many upstream can bear at once depends on the query and on the repository. */
export type SizedQuery = "pull pages" | "single pulls" | "mergeability";

/** The most that each asks for, whatever upstream could bear. */
export const MOST: Record<SizedQuery, number> = {
  "pull pages": 100,
  // More in one query is answered slowly, and upstream cuts long answers off at ten seconds.
  "single pulls": 25,
  // One point for any number, since it asks for no connection. Upstream was seen to accept 600.
  mergeability: 500,
};

/** What was learnt of one query in one repository. Null: nothing was ever too heavy. */
export interface Learnt {
  /** How many the next query asks for. */
  size: number;
  /** After a query was too heavy, the size doubles with each answer up to this one: a single dear pull request is soon over. */
  proved: number;
  isRetreating: boolean;
  /** Answers of the proved size since it was last changed or refused. */
  answered: number;
  /** After so many answers a larger size is tried. */
  wait: number;
}

/** A refused try costs about eleven points, and a page one: so a first try after sixteen. */
const FIRST_WAIT = 16;
const LONGEST_WAIT = 1_024;

/**
 * Pure. A query of `size` was too heavy: half as much is asked for. What was only tried is given up, and tried again after
 * twice as many answers. So of n pages no more than about log n are asked for in vain.
 */
export function afterRefusal(known: Learnt | null, size: number): Learnt {
  const learnt = known ?? { size, proved: size, isRetreating: false, answered: 0, wait: FIRST_WAIT };
  if (size > learnt.proved) {
    const wait = Math.min(2 * learnt.wait, LONGEST_WAIT);
    return { ...learnt, size: learnt.proved, isRetreating: true, answered: 0, wait };
  }
  const half = Math.max(1, Math.floor(size / 2));
  // Without an answer of this size since the last refusal, not one pull request is dear, but as many as this.
  const isBound = !learnt.isRetreating && learnt.answered === 0 && size === learnt.size;
  return { ...learnt, size: half, proved: isBound ? half : learnt.proved, isRetreating: true, answered: 0 };
}

/** Pure. A query of `size` was answered. One that was smaller than it might have been says nothing. */
export function afterAnswer(known: Learnt | null, size: number, most: number): Learnt | null {
  if (!known || size < known.size) return known;
  const answered = { ...known, isRetreating: false };
  if (size < known.proved) return { ...answered, size: Math.min(2 * size, known.proved) };
  if (size > known.proved) {
    const wait = Math.max(FIRST_WAIT, known.wait / 2);
    return size >= most ? null : { ...answered, proved: size, answered: 0, wait };
  }
  if (size >= most) return null;
  if (known.answered + 1 < known.wait) return { ...answered, answered: known.answered + 1 };
  // A half more at first, and the less the more often that was refused.
  const more = Math.ceil((known.proved * FIRST_WAIT) / (2 * known.wait));
  return { ...answered, size: Math.min(most, known.proved + more), answered: 0 };
}

/**
 * Asks for as many as upstream can bear, and at most `atMost`. If that is too heavy, it asks for half as many. The size
 * that it learns is kept for the next question.
 * @throws GraphqlTooHeavyError when even one is too much
 */
export async function inBearableSize<Value>(
  ctx: Pick<Context, "db" | "clock">,
  { repositoryId, query, atMost }: { repositoryId: number; query: SizedQuery; atMost?: number },
  ask: (size: number) => Promise<Value>,
): Promise<Value> {
  const most = MOST[query];
  let learnt = await findLearnt(ctx, repositoryId, query);
  const keep = async (next: Learnt | null) => {
    if (next !== learnt) await saveLearnt(ctx, repositoryId, query, next);
    learnt = next;
  };
  while (true) {
    const size = Math.min(learnt?.size ?? most, atMost ?? most);
    try {
      const value = await ask(size);
      await keep(afterAnswer(learnt, size, most));
      return value;
    } catch (error) {
      if (!(error instanceof GraphqlTooHeavyError)) throw error;
      await keep(afterRefusal(learnt, size));
      if (size === 1) throw error;
    }
  }
}

async function findLearnt(ctx: Pick<Context, "db">, repositoryId: number, query: SizedQuery): Promise<Learnt | null> {
  const [row] = await ctx.db.query<Learnt>(sql`
    select size, proved, is_retreating as "isRetreating", answered, wait from graphql_sizes
      where repository_id = ${repositoryId} and query = ${query}`);
  return row ?? null;
}

/** When two learn at once, the later one counts. Both are as true, and the loss is a page more or less in vain. */
async function saveLearnt(
  { db, clock }: Pick<Context, "db" | "clock">,
  repositoryId: number,
  query: SizedQuery,
  learnt: Learnt | null,
): Promise<void> {
  if (!learnt) {
    await db.query(sql`delete from graphql_sizes where repository_id = ${repositoryId} and query = ${query}`);
    return;
  }
  const { size, proved, isRetreating, answered, wait } = learnt;
  await db.query(sql`
    insert into graphql_sizes (repository_id, query, size, proved, is_retreating, answered, wait, learnt_at)
      values (${repositoryId}, ${query}, ${size}, ${proved}, ${isRetreating}, ${answered}, ${wait}, ${clock.now()})
      on conflict (repository_id, query) do update set size = excluded.size, proved = excluded.proved,
        is_retreating = excluded.is_retreating, answered = excluded.answered, wait = excluded.wait,
        learnt_at = excluded.learnt_at`);
}
