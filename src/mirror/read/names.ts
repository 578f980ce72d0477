import { type SQL, sql } from "../../../db/sql.ts";

/**
 * The condition that the column holds one of these names, in any case of their letters. Postgres folds both sides: any
 * other function differs from it beyond ASCII.
 */
export function isNamed(column: SQL, names: readonly string[]): SQL {
  return sql`folded(${column}) = any(folded(${names}::text[]))`;
}
