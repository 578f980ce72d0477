import type { Database } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import { mirroredWhere } from "./shown-repository.ts";
import { type Sight, visible } from "./sight.ts";

/** When upstream last confirmed the seen repository whose confirmation is the oldest; null: one never was, or none is seen. */
export async function findOldestConfirmation(db: Database, sight: Sight): Promise<Date | null> {
  const [row] = await db.prepared<{ oldest: Date | null; is_complete: boolean | null }>(sql`
    select min(s.confirmed_at) as oldest, bool_and(s.confirmed_at is not null) as is_complete
      ${mirroredWhere(visible(sql`r`, sight, "metadata"))}`);
  return row?.is_complete ? row.oldest : null;
}

/** The oldest confirmation of these repositories; null: one never was. Undefined: none of them is mirrored. */
export async function findConfirmation(db: Database, ids: readonly number[]): Promise<Date | null | undefined> {
  const [row] = await db.prepared<{ confirmed_at: Date | null }>(sql`
    select s.confirmed_at from repository_syncs s where s.repository_id = any(${ids}::bigint[])
      order by s.confirmed_at nulls first limit 1`);
  return row?.confirmed_at;
}
