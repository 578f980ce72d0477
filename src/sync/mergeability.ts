import type { Context } from "../context.ts";
import type { MirroredRepository } from "../mirror/find-repository.ts";
import { mergeObserved, type Transaction } from "../mirror/store.ts";
import type { Priority } from "../upstream/client.ts";
import { GraphqlTooHeavyError } from "../upstream/errors.ts";
import { readSinglePulls } from "./pull-details.ts";
import { MERGEABILITY_FIELDS, type Mergeability, observeMergeability } from "./pull-observations.ts";

/** A point, however many there are, since no connection is asked for. It was seen to take 600 of them in a query. */
const PULLS_A_QUERY = 250;
const PATIENCE_MS = 15 * 60_000;

/** Asks again about the open pull requests of which upstream did not know lately whether they can be merged. */
export async function storeMergeability(
  ctx: Context,
  repository: MirroredRepository,
  priority: Priority,
  signal: AbortSignal,
): Promise<void> {
  // Some it never knows, so not those of which nothing has been heard for long.
  const heardSince = new Date(ctx.clock.now().getTime() - PATIENCE_MS);
  const from = (after: number) => ({ after, heardSince, priority, signal });
  for (let after: number | null = 0; after !== null; )
    after = await storeMergeabilityAfter(ctx, repository, from(after), async () => {});
}

/**
 * Upstream works out whether a pull request can be merged only once it is asked, and then it takes a while. Asks again
 * about the open ones that it did not know of.
 *
 * One query, about those numbered above `after`. Answers the last number it was about, which `remember` gets in the
 * transaction that stores the answer; null when none was left.
 */
export async function storeMergeabilityAfter(
  ctx: Context,
  repository: MirroredRepository,
  from: { after: number; heardSince: Date | null; priority: Priority; signal: AbortSignal },
  remember: (tx: Transaction, last: number) => Promise<void>,
): Promise<number | null> {
  for (let most = PULLS_A_QUERY; ; most = Math.floor(most / 2)) {
    const numbers = await findUnknown(ctx, repository, from, most);
    const last = numbers.at(-1);
    if (last === undefined) return null;
    try {
      const read = { priority: from.priority, signal: from.signal };
      const { pulls, seenAt } = await readSinglePulls<Mergeability>(
        ctx,
        repository,
        numbers,
        MERGEABILITY_FIELDS,
        read,
      );
      await ctx.db.transaction(async (tx) => {
        await mergeObserved(tx, observeMergeability(ctx, repository, pulls, seenAt));
        await remember(tx, last);
      });
      return last;
    } catch (error) {
      if (!(error instanceof GraphqlTooHeavyError) || most === 1) throw error;
    }
  }
}

async function findUnknown(
  ctx: Pick<Context, "db">,
  repository: MirroredRepository,
  { after, heardSince }: { after: number; heardSince: Date | null },
  most: number,
): Promise<number[]> {
  const { rows } = await ctx.db.$client.query<{ number: number }>(
    `select number from pull_requests where repository_id = $1 and number > $2 and id is not null and state = 'open'
      and mergeable is null and deleted_at is null and ($3::timestamptz is null or seen_at > $3) order by number limit $4`,
    [repository.id, after, heardSince, most],
  );
  return rows.map((row) => row.number);
}
