import type { Queries } from "../../../db/connection.ts";
import { sql } from "../../../db/drizzle.ts";

/**
 * - backfilling: the first full copy is under way; what it has is served.
 * - live: complete, and followed.
 * - paused: upstream does not show it at the moment; what we have is kept, and upstream is asked again now and then.
 * - gone: upstream deleted it, or it was removed here.
 */
export type SyncState = "backfilling" | "live" | "paused" | "gone";

/** Reads begin so long before their watermark: `updated_at` counts whole seconds, and a replica may show a change late. */
export const OVERLAP_MS = 30_000;

export async function isMirrored(queries: Pick<Queries, "execute">, repositoryId: number): Promise<boolean> {
  return (await findMirrored(queries, [repositoryId])).size > 0;
}

/** Which of these are mirrored, live or not. */
export async function findMirrored(
  queries: Pick<Queries, "execute">,
  repositoryIds: readonly number[],
): Promise<Set<number>> {
  const { rows } = await queries.execute<{ repository_id: string }>(
    sql`select repository_id from repository_syncs where repository_id = any(${sql.param([...repositoryIds])}::bigint[]) and state <> 'gone'`,
  );
  return new Set(rows.map(({ repository_id }) => Number(repository_id)));
}

export async function setSyncState(
  queries: Pick<Queries, "execute">,
  repositoryId: number,
  state: SyncState,
  problem: string | null,
): Promise<void> {
  await queries.execute(
    sql`update repository_syncs set state = ${state}, problem = ${problem} where repository_id = ${repositoryId}`,
  );
}
