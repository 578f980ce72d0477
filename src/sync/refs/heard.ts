import type { Transaction } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import { IS_UNSURE } from "../../mirror/read/refs.ts";
import { afterLag, type Mark, repositoryMark } from "../../mirror/store/marks.ts";
import { lockRefs, storeTold } from "../../mirror/store/refs.ts";
import type { MergedDeliveries } from "../events/read.ts";

/**
 * Moves the branches and tags that deliveries name. Answers a mark for each repository that upstream has to be asked
 * about.
 */
export async function hearRefs(tx: Transaction, { shown, parts, askedAt }: MergedDeliveries): Promise<Mark[]> {
  const told = shown.flatMap(({ repositoryId, toldRef }) =>
    toldRef !== null && repositoryId !== null && parts.get(repositoryId)?.includes("refs")
      ? [{ repositoryId, toldRef }]
      : [],
  );
  if (told.length === 0) return [];
  const byRepository = [...Map.groupBy(told, ({ repositoryId }) => repositoryId)].sort(([a], [b]) => a - b);
  const ids = byRepository.map(([id]) => id);
  await lockRefs(tx, ids);
  for (const [id, some] of byRepository)
    await storeTold(
      tx,
      id,
      some.map(({ toldRef }) => toldRef),
      askedAt,
    );
  tx.touch(ids);
  const unsure = await tx.query<{ id: number }>(sql`
    select distinct f.repository_id as id from refs f
      where f.repository_id = any(${ids}::bigint[]) and ${IS_UNSURE} order by 1`);
  // A read before that moment would not be believed, since replicas may lag.
  return unsure.map(({ id }) => ({ ...repositoryMark("refs", id, askedAt), notBefore: afterLag(askedAt) }));
}
