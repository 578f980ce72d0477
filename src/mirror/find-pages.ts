import pg from "pg";
import type { Database } from "../../db/connection.ts";
import { Statement } from "./statement.ts";

/** Rows of one kind that belong to a parent, in a total order. SQL in here is ours alone: values are the statement's. */
export interface PageSource {
  /** Tables, e.g. `issues i`. Conditions may refer to the parent as `x.r` (an id) and `x.n` (a number or an id). */
  from: string;
  /** What is selected beside the sort key and the tie-break. */
  columns: string;
  conditions: (statement: Statement) => string[];
  key: string;
  keyType: "timestamptz" | "integer" | "text" | "bigint";
  tie: string;
  direction: "asc" | "desc";
}

/** The rows' parent: `r` an id; `n` a number or id within it, or 0 where `r` says all. */
export interface Parent {
  r: number;
  n: number;
}

/** Which page, in the source's order. `after` and `before` are positions: sort key and tie-break. */
export interface PageRequest {
  after: Position | null;
  before: Position | null;
  /** From the end, towards the beginning. */
  fromEnd: boolean;
  limit: number;
}

export interface Position {
  key: string;
  tie: number;
}

export type PageRow = Position & { columns: Record<string, unknown> };

/** A position that no row of this order can have. */
export class InvalidPositionError extends Error {
  override name = "InvalidPositionError";
}

/**
 * The page of each parent, with one statement for all of them; each holds up to one row more than the limit, which tells
 * that there is a further page. Rows come in the source's order.
 */
export async function findPages(
  db: Database,
  source: PageSource,
  parents: Parent[],
  request: PageRequest,
): Promise<PageRow[][]> {
  const statement = new Statement();
  const [ids, numbers] = [statement.value(parents.map(({ r }) => r)), statement.value(parents.map(({ n }) => n))];
  const conditions = source.conditions(statement);
  const ascending = source.direction === "asc";
  for (const [position, isLater] of [
    [request.after, true],
    [request.before, false],
  ] as const) {
    if (!position) continue;
    const at = `(${statement.value(position.key)}::${source.keyType}, ${statement.value(position.tie)}::bigint)`;
    conditions.push(`(${source.key}, ${source.tie}) ${ascending === isLater ? ">" : "<"} ${at}`);
  }
  const direction = ascending === request.fromEnd ? "desc" : "asc";
  const text = `select x.at, p.* from unnest(${ids}::bigint[], ${numbers}::bigint[]) with ordinality x(r, n, at)
    cross join lateral (select ${source.columns}, ${source.key} as sort_key, (${source.key})::text as sort_text, ${source.tie} as tie
      from ${source.from} where ${conditions.join(" and ")}
      order by ${source.key} ${direction}, ${source.tie} ${direction} limit ${statement.value(request.limit + 1)}) p
    order by x.at, p.sort_key ${direction}, p.tie ${direction}`;
  const rows = await run(db, statement, text);
  const pages: PageRow[][] = parents.map(() => []);
  for (const { at, sort_key: _key, sort_text, tie, ...columns } of rows) {
    pages[Number(at) - 1]?.push({ key: sort_text, tie: Number(tie), columns });
  }
  return request.fromEnd ? pages.map((page) => page.reverse()) : pages;
}

/** How many rows each parent has, and the sum of `measure` over them where one is given. */
export async function countPages(
  db: Database,
  source: Pick<PageSource, "from" | "conditions">,
  parents: Parent[],
  measure = "0",
): Promise<{ count: number; sum: number }[]> {
  const statement = new Statement();
  const [ids, numbers] = [statement.value(parents.map(({ r }) => r)), statement.value(parents.map(({ n }) => n))];
  const conditions = source.conditions(statement);
  const rows = await statement.rows<{ count: string; sum: string | null }>(
    db,
    `select p.* from unnest(${ids}::bigint[], ${numbers}::bigint[]) with ordinality x(r, n, at)
      cross join lateral (select count(*) as count, sum(${measure}) as sum from ${source.from} where ${conditions.join(" and ")}) p order by x.at`,
  );
  return rows.map(({ count, sum }) => ({ count: Number(count), sum: Number(sum ?? 0) }));
}

interface RawRow {
  at: string;
  sort_key: unknown;
  sort_text: string;
  tie: string;
  [column: string]: unknown;
}

async function run(db: Database, statement: Statement, text: string): Promise<RawRow[]> {
  try {
    return await statement.rows<RawRow>(db, text);
  } catch (error) {
    // Class 22 is "data exception": a position out of a forged cursor is no time or no number.
    if (error instanceof pg.DatabaseError && error.code?.startsWith("22"))
      throw new InvalidPositionError("No row can be there", { cause: error });
    throw error;
  }
}
