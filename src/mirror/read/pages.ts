import type { Database } from "../../../db/database.ts";
import { isPostgresDataException } from "../../../db/outage.ts";
import { DIRECTIONS, type SQL, sql } from "../../../db/sql.ts";
import type { StoredDocument } from "../render/rendering.ts";

/** Rows of one kind that belong to a parent, in a total order. */
export interface PageSource {
  /** Tables, e.g. `issues i`. Conditions may refer to the parent as `x.r` (an id) and `x.n` (a number or an id). */
  from: SQL;
  /** The tables that suffice to count; absent: all. */
  counted?: SQL;
  /** A table `s` of lists under each parent, which are read one by one; a row may stand in several of them. */
  lists?: SQL;
  /** Whether rows are left out by what no index orders. Then finding a page may take long. */
  isFiltered?: boolean;
  /** The columns that make a stored document. */
  repositoryId: SQL;
  document: SQL;
  detail?: SQL;
  /** The text that a user wrote; read only if it is wanted. */
  body?: SQL;
  conditions: readonly SQL[];
  key: SQL;
  /** The type of `key`. */
  keyType: SQL;
  /** The row's number or id in the list. It orders rows with equal keys. */
  rowId: SQL;
  direction: "asc" | "desc";
}

/** The rows' parent: `r` an id; `n` a number or id within it, or 0 where `r` says all. */
export interface Parent {
  r: number;
  n: number;
}

/** Which page, in the source's order. `after` and `before` are positions: sort key and the row's number or id. */
export interface PageRequest {
  after: ListPosition | null;
  before: ListPosition | null;
  /** From the end, towards the beginning. */
  fromEnd: boolean;
  limit: number;
  /** Whether bodies are read. */
  withBody: boolean;
  /** Documents are read later, by `findIssueDocuments`; here they are empty. */
  withoutDocuments?: boolean;
}

export interface ListPosition {
  key: string;
  rowId: number;
}

export type PageRow = ListPosition & { stored: StoredDocument };

/** A position that no row of this order can have. */
export class InvalidPositionError extends Error {
  override name = "InvalidPositionError";
}

/**
 * The page of each parent, with one statement for all of them. Each page may hold one row above the limit, as a sign of
 * a further page. Rows come in the source's order.
 */
export async function findPages(
  db: Database,
  source: PageSource,
  parents: Parent[],
  request: PageRequest,
): Promise<PageRow[][]> {
  const { key, rowId } = source;
  const lists = source.lists ? sql`cross join ${source.lists}` : sql``;
  const conditions = [...source.conditions];
  const ascending = source.direction === "asc";
  for (const [position, isLater] of [
    [request.after, true],
    [request.before, false],
  ] as const) {
    if (!position) continue;
    const at = sql`(${position.key}::${source.keyType}, ${position.rowId}::bigint)`;
    conditions.push(sql`(${key}, ${rowId}) ${ascending === isLater ? sql`>` : sql`<`} ${at}`);
  }
  const way = DIRECTIONS[ascending === request.fromEnd ? "desc" : "asc"];
  const document = request.withoutDocuments ? sql`''` : sql`${source.document}::text`;
  const body = request.withBody && !request.withoutDocuments ? source.body : undefined;
  const rows = await readRows(
    db,
    sql`
      select x.at, p.repository_id, p.document, p.detail, p.body, p.sort_text, p.row_id
        from ${parentsTable(parents)} ${lists} cross join lateral (
          select ${source.repositoryId} as repository_id, ${document} as document, ${source.detail ?? NULL}::text as detail,
              ${body ?? NULL} as body, ${key} as sort_key, (${key})::text as sort_text, ${rowId} as row_id
            from ${source.from} where ${sql.and(conditions)} order by ${key} ${way}, ${rowId} ${way}
            limit ${request.limit + 1}) p
        order by x.at, p.sort_key ${way}, p.row_id ${way}`,
  );
  const pages: PageRow[][] = parents.map(() => []);
  for (const row of rows) {
    const page = pages[row.at - 1];
    if (!page || page.length > request.limit || page.at(-1)?.rowId === row.row_id) continue;
    const { repository_id: repositoryId, document, detail, body } = row;
    page.push({ key: row.sort_text, rowId: row.row_id, stored: { repositoryId, document, detail, body } });
  }
  return request.fromEnd ? pages.map((page) => page.reverse()) : pages;
}

const NULL = sql`null`;

/** The parents as a table `x` of `r`, `n` and their place. */
function parentsTable(parents: readonly Parent[]): SQL {
  const ids = parents.map(({ r }) => r);
  const numbers = parents.map(({ n }) => n);
  return sql`unnest(${sql.array(ids, "bigint")}, ${sql.array(numbers, "bigint")}) with ordinality x(r, n, at)`;
}

/** Those issues that are stored, by number. They may have changed since they were found. */
export async function findIssueDocuments(
  db: Database,
  repositoryId: number,
  numbers: readonly number[],
  { withBody }: Pick<PageRequest, "withBody">,
): Promise<Map<number, StoredDocument>> {
  const rows = await db.prepared<{ number: number; document: string; body: string | null }>(sql`
    select number, document::text as document, ${withBody ? sql`body` : NULL} as body from issues
      where repository_id = ${repositoryId} and number = any(${sql.array(numbers, "integer")}::integer[])`);
  return new Map(rows.map(({ number, document, body }) => [number, { repositoryId, document, body }]));
}

/** How many rows each parent has, and the sum of `measure` over them where one is given. */
export async function countPages(
  db: Database,
  source: Pick<PageSource, "from" | "counted" | "lists" | "conditions" | "rowId">,
  parents: Parent[],
  measure = sql`0`,
): Promise<{ count: number; sum: number }[]> {
  const lists = source.lists ? sql`${source.lists} cross join` : sql``;
  const count = source.lists ? sql`count(distinct ${source.rowId})` : sql`count(*)`;
  return await db.prepared<{ count: number; sum: number }>(sql`
    select p.* from ${parentsTable(parents)} cross join lateral (
      select ${count} as count, coalesce(sum(${measure}), 0)::bigint as sum from ${lists} ${source.counted ?? source.from}
        where ${sql.and(source.conditions)}) p order by x.at`);
}

interface RawRow {
  at: number;
  sort_text: string;
  row_id: number;
  repository_id: number;
  document: string;
  detail: string | null;
  body: string | null;
}

async function readRows(db: Database, statement: SQL): Promise<RawRow[]> {
  try {
    return await db.prepared<RawRow>(statement);
  } catch (error) {
    // The position of a forged cursor is not a time or a number.
    if (isPostgresDataException(error)) throw new InvalidPositionError("No row can be there", { cause: error });
    throw error;
  }
}

/** The sort key of a list, and its type. Rows with equal keys come by their number or id. */
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

export const time = (column: SQL): SortKey => ({ key: sql`coalesce(${column}, '-infinity')`, keyType: TIMESTAMP });

/** The condition that one of the columns holds the text. Upper and lower case are one. */
export function contains(columns: SQL[], query: string | null | undefined): SQL[] {
  if (!query) return [];
  const wanted = sql`${query}`;
  return [sql.or(columns.map((column) => sql`strpos(folded(coalesce(${column}, '')), folded(${wanted}::text)) > 0`))];
}
