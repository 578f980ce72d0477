import type { Queries } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import type { ResourceKey } from "../../kinds/contract/kind.ts";
import { resourceOf } from "../../kinds/registry.ts";
import type { QuestionPace } from "./paced.ts";

/**
 * Of rows that deliveries alone have shown, upstream is asked about two a minute in each repository. A holder of its
 * secret may make up any number of them, and each costs a read to be taken back.
 */
export function toldRows(repositoryId: number): QuestionPace {
  return { name: `told rows ${repositoryId}`, everyMs: 30_000 };
}

/** Whether deliveries alone have shown the row as it is, and it is of a kind that a list confirms. */
export async function isToldAlone(db: Queries, { kind, repositoryId, key }: ResourceKey): Promise<boolean> {
  const { table, keyColumn, list, listBelow } = resourceOf(kind);
  if (!list && !listBelow) return false;
  const told = await db.count(sql`
    select from ${table} where repository_id = ${repositoryId} and ${sql.identifier(keyColumn)} = ${key} and not seen_by_read`);
  return told > 0;
}
