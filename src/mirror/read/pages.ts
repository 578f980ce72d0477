import pg from "pg";
import type { Database } from "../../../db/connection.ts";
import { Statement } from "../../../db/statement.ts";
import type { StoredDocument } from "../render/rendering.ts";

/** Rows of one kind that belong to a parent, in a total order. SQL in here is ours alone: values are the statement's. */
export interface PageSource {
  /** Tables, e.g. `issues i`. Conditions may refer to the parent as `x.r` (an id) and `x.n` (a number or an id). */
  from: string;
  /** Those of them that suffice to count; absent: all. */
  counted?: string;
  /** A table `s` of lists under each parent, which are read one by one; a row may stand in several of them. */
  lists?: (statement: Statement) => string;
  /** The columns that make a stored document. */
  repositoryId: string;
  document: string;
  detail?: string;
  /** What people wrote, which is read only where it is wanted. */
  body?: string;
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
  /** Whether bodies are read. */
  withBody: boolean;
  /** Documents are read later, by `findIssueDocuments`; here they are empty. */
  withoutDocuments?: boolean;
}

export interface Position {
  key: string;
  tie: number;
}

export type PageRow = Position & { stored: StoredDocument };

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
  const [ids, numbers] = [statement.arrayIn(parents, "r", "bigint"), statement.arrayIn(parents, "n", "bigint")];
  const lists = source.lists ? ` cross join ${source.lists(statement)}` : "";
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
  const body = request.withBody && !request.withoutDocuments ? source.body : undefined;
  const columns = `${source.repositoryId} as repository_id, ${request.withoutDocuments ? "''" : `${source.document}::text`} as document, ${source.detail ?? "null"}::text as detail, ${body ?? "null"} as body`;
  const text = `select x.at::integer, p.repository_id::float8, p.document, p.detail, p.body, p.sort_text, p.tie::float8 from unnest(${ids}, ${numbers}) with ordinality x(r, n, at)${lists}
    cross join lateral (select ${columns}, ${source.key} as sort_key, (${source.key})::text as sort_text, ${source.tie} as tie
      from ${source.from} where ${conditions.join(" and ")}
      order by ${source.key} ${direction}, ${source.tie} ${direction} limit ${statement.value(request.limit + 1)}) p
    order by x.at, p.sort_key ${direction}, p.tie ${direction}`;
  const rows = await run(db, statement, text);
  const pages: PageRow[][] = parents.map(() => []);
  for (const { at, sort_text, tie, repository_id, document, detail, body } of rows) {
    const page = pages[at - 1];
    if (!page || page.length > request.limit || page.at(-1)?.tie === tie) continue;
    page.push({ key: sort_text, tie, stored: { repositoryId: repository_id, document, detail, body } });
  }
  return request.fromEnd ? pages.map((page) => page.reverse()) : pages;
}

/** Those of these issues that are stored, by their numbers, whatever has become of them since they were found. */
export async function findIssueDocuments(
  db: Database,
  repositoryId: number,
  numbers: readonly number[],
  { withBody }: Pick<PageRequest, "withBody">,
): Promise<Map<number, StoredDocument>> {
  const statement = new Statement();
  const rows = await statement.rows<{ number: number; document: string; body: string | null }>(
    db,
    `select number, document::text as document, ${withBody ? "body" : "null as body"} from issues
      where repository_id = ${statement.value(repositoryId)} and number = any(${statement.array(numbers, "integer")}::integer[])`,
  );
  return new Map(rows.map(({ number, document, body }) => [number, { repositoryId, document, body }]));
}

/** How many rows each parent has, and the sum of `measure` over them where one is given. */
export async function countPages(
  db: Database,
  source: Pick<PageSource, "from" | "counted" | "lists" | "conditions" | "tie">,
  parents: Parent[],
  measure = "0",
): Promise<{ count: number; sum: number }[]> {
  const statement = new Statement();
  const [ids, numbers] = [statement.arrayIn(parents, "r", "bigint"), statement.arrayIn(parents, "n", "bigint")];
  const lists = source.lists ? `${source.lists(statement)} cross join ` : "";
  const count = source.lists ? `count(distinct ${source.tie})` : "count(*)";
  const conditions = source.conditions(statement);
  const rows = await statement.rows<{ count: string; sum: string | null }>(
    db,
    `select p.* from unnest(${ids}, ${numbers}) with ordinality x(r, n, at)
      cross join lateral (select ${count} as count, sum(${measure}) as sum from ${lists}${source.counted ?? source.from} where ${conditions.join(" and ")}) p order by x.at`,
  );
  return rows.map(({ count, sum }) => ({ count: Number(count), sum: Number(sum ?? 0) }));
}

interface RawRow {
  at: number;
  sort_text: string;
  tie: number;
  repository_id: number;
  document: string;
  detail: string | null;
  body: string | null;
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
