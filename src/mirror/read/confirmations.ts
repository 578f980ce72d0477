import type { Database } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import { mirroredWhere } from "./shown-repository.ts";
import { type Sight, visible } from "./sight.ts";

/** Upstream's confirmation of the rows that an answer shows. */
export interface Confirmation {
  /** The oldest confirmation of all that is shown, by our clock; null: a part was never confirmed. */
  confirmedAt: Date | null;
  /** The parts that upstream did not show then, as answers name them; null: none. */
  missing: string | null;
}

/** The confirmation of several repositories together; undefined: there are none. Pure. */
export function joinConfirmations(all: Iterable<Confirmation>): Confirmation | undefined {
  let joined: Confirmation | undefined;
  for (const { confirmedAt, missing } of all) {
    if (joined === undefined) joined = { confirmedAt, missing };
    else {
      const isOlder = joined.confirmedAt !== null && (confirmedAt === null || confirmedAt < joined.confirmedAt);
      if (isOlder) joined.confirmedAt = confirmedAt;
      joined.missing = joinParts([joined.missing, missing]);
    }
  }
  return joined;
}

function joinParts(lists: readonly (string | null)[]): string | null {
  const parts = new Set(lists.flatMap((list) => list?.split(", ") ?? []));
  return parts.size > 0 ? [...parts].join(", ") : null;
}

/** The confirmation of all repositories that are seen. */
export async function findOldestConfirmation(db: Database, sight: Sight): Promise<Confirmation> {
  const [row] = await db.prepared<{ oldest: Date | null; is_complete: boolean | null; missing: string[] | null }>(sql`
    select min(s.confirmed_at) as oldest, bool_and(s.confirmed_at is not null) as is_complete,
        array_agg(distinct s.parts_missing) filter (where s.parts_missing is not null) as missing
      ${mirroredWhere(visible(sql`r`, sight, "metadata"))}`);
  return { confirmedAt: row?.is_complete ? row.oldest : null, missing: joinParts(row?.missing ?? []) };
}

/** The confirmation of these repositories. Undefined: none of them is mirrored. */
export async function findConfirmation(db: Database, ids: readonly number[]): Promise<Confirmation | undefined> {
  return joinConfirmations(
    await db.prepared<Confirmation>(sql`
      select s.confirmed_at as "confirmedAt", s.parts_missing as missing from repository_syncs s
        where s.repository_id = any(${ids}::bigint[])`),
  );
}
