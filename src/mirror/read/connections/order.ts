import { type Sql, sql } from "../../../../db/sql.ts";
import type { PageSource } from "../pages.ts";

/** The sort key of a list, and its type. Rows that tie come by their number or id. */
export type SortKey = Pick<PageSource, "key" | "keyType">;

export const TIMESTAMP = sql`timestamptz`;
export const INTEGER = sql`integer`;
export const BIGINT = sql`bigint`;
export const TEXT = sql`text`;

export interface Order {
  field: string;
  direction: "ASC" | "DESC";
}

export function direction(orderBy: Order | null | undefined): "asc" | "desc" {
  return orderBy?.direction === "DESC" ? "desc" : "asc";
}

export const time = (column: Sql): SortKey => ({ key: sql`coalesce(${column}, '-infinity')`, keyType: TIMESTAMP });

/** The condition that one of the columns holds the text. Upper and lower case are one. */
export function contains(columns: Sql[], query: string | null | undefined): Sql[] {
  if (!query) return [];
  const wanted = sql.value(query.toLowerCase());
  return [sql.or(columns.map((column) => sql`strpos(lower(coalesce(${column}, '')), ${wanted}) > 0`))];
}
