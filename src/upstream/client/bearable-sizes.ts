import { and, eq } from "drizzle-orm";
import { graphqlSizes } from "../../schema.ts";
import type { Stores } from "../../stores.ts";
import { TooHeavyError } from "../protocol/errors.ts";

/**
 * What upstream can bear more or less of at once, by the question and by the repository: a GraphQL query about several
 * pull requests, or a list of REST.
 */
export type SizedQuery = "pull pages" | "single pulls" | "mergeability" | `list ${string}`;

/** The most rows of a page of REST. */
const MOST_ROWS = 100;
/** The most pull requests that each query asks for, even if upstream could answer more. */
const MOST: Readonly<Record<string, number>> = {
  "pull pages": 100,
  // More in one query is answered slowly, and upstream cuts long answers off at ten seconds.
  "single pulls": 25,
  // One point for any number, since it asks for no connection. Upstream was seen to accept 600.
  mergeability: 500,
};

/** The most that is asked for at once. */
export function mostOf(query: SizedQuery): number {
  return MOST[query] ?? MOST_ROWS;
}

/** The size that was learnt for one query in one repository. Null: no query was ever too heavy. */
export interface Learnt {
  /** How many the next query asks for. */
  size: number;
  /**
   * The largest size that proved bearable. After a refusal the size doubles with each answer up to this one, since a
   * single heavy pull request is soon passed.
   */
  proved: number;
  isRetreating: boolean;
  /** Answers of the proved size since its last change or refusal. */
  answered: number;
  /** After this many answers a larger size is tried. */
  wait: number;
}

/** A refused try costs about eleven points, and a page costs one. So the first try comes after sixteen answers. */
const FIRST_WAIT = 16;
const LONGEST_WAIT = 1_024;

/**
 * Pure. A query of `size` was too heavy: half as much is asked for. A size that was only a try is given up, and tried
 * again after twice as many answers. So of n pages only about log n are refused.
 */
export function afterRefusal(known: Learnt | null, size: number): Learnt {
  const learnt = known ?? { size, proved: size, isRetreating: false, answered: 0, wait: FIRST_WAIT };
  if (size > learnt.proved) {
    const wait = Math.min(2 * learnt.wait, LONGEST_WAIT);
    return { ...learnt, size: learnt.proved, isRetreating: true, answered: 0, wait };
  }
  const half = Math.max(1, Math.floor(size / 2));
  // If this size was not answered since the last refusal, the size itself is too large, not one heavy pull request.
  const isBound = !learnt.isRetreating && learnt.answered === 0 && size === learnt.size;
  return { ...learnt, size: half, proved: isBound ? half : learnt.proved, isRetreating: true, answered: 0 };
}

/** Pure. A query of `size` was answered. A query smaller than the learnt size says nothing. */
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
  // The first try is half as large again. Each refusal makes the next try smaller.
  const more = Math.ceil((known.proved * FIRST_WAIT) / (2 * known.wait));
  return { ...answered, size: Math.min(most, known.proved + more), answered: 0 };
}

/**
 * Asks for as many as upstream can bear, and at most `atMost`. If that is too heavy, it asks for half as many. The size
 * that it learns is kept for the next question.
 * @throws TooHeavyError when even one is too much
 */
export async function inBearableSize<Value>(
  ctx: Pick<Stores, "db" | "clock">,
  { repositoryId, query, atMost }: { repositoryId: number; query: SizedQuery; atMost?: number },
  ask: (size: number) => Promise<Value>,
): Promise<Value> {
  const most = mostOf(query);
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
      if (!(error instanceof TooHeavyError)) throw error;
      await keep(afterRefusal(learnt, size));
      if (size === 1) throw error;
    }
  }
}

/**
 * Asks about all items in one query. If that is too heavy, it asks about each half by itself. Nothing is learnt from
 * it. Answers what the queries answered, in order.
 * @throws TooHeavyError when a single item is too much
 */
export async function inHalves<Item, Answer>(
  items: readonly Item[],
  ask: (some: readonly Item[]) => Promise<Answer>,
): Promise<Answer[]> {
  try {
    return [await ask(items)];
  } catch (error) {
    if (!(error instanceof TooHeavyError) || items.length <= 1) throw error;
    const middle = Math.ceil(items.length / 2);
    const first = await inHalves(items.slice(0, middle), ask);
    return [...first, ...(await inHalves(items.slice(middle), ask))];
  }
}

async function findLearnt(ctx: Pick<Stores, "db">, repositoryId: number, query: SizedQuery): Promise<Learnt | null> {
  const { size, proved, isRetreating, answered, wait } = graphqlSizes;
  const [row] = await ctx.db
    .select({ size, proved, isRetreating, answered, wait })
    .from(graphqlSizes)
    .where(isOf(repositoryId, query));
  return row ?? null;
}

/** If two jobs learn at once, the later one wins. That costs at most a refused page. */
async function saveLearnt(
  { db, clock }: Pick<Stores, "db" | "clock">,
  repositoryId: number,
  query: SizedQuery,
  learnt: Learnt | null,
): Promise<void> {
  if (!learnt) {
    await db.delete(graphqlSizes).where(isOf(repositoryId, query));
    return;
  }
  const { size, proved, isRetreating, answered, wait } = learnt;
  const set = { size, proved, isRetreating, answered, wait, learntAt: clock.now() };
  await db
    .insert(graphqlSizes)
    .values({ repositoryId, query, ...set })
    .onConflictDoUpdate({ target: [graphqlSizes.repositoryId, graphqlSizes.query], set });
}

function isOf(repositoryId: number, query: SizedQuery) {
  return and(eq(graphqlSizes.repositoryId, repositoryId), eq(graphqlSizes.query, query));
}
