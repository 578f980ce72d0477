import type { Queries } from "../../../db/database.ts";
import { type PgType, type SQL, sql, type Value } from "../../../db/sql.ts";
import type { StoredDocument } from "../render/rendering.ts";

/** What rows are asked for by: the column of each key in the table `x`, and its type. */
const COLUMNS = {
  repositoryId: ["repository_id", "bigint"],
  id: ["id", "bigint"],
  key: ["key", "bigint"],
  kind: ["kind", "text"],
  list: ["list", "text"],
  name: ["name", "text"],
  number: ["number", "integer"],
  ownerId: ["owner_id", "bigint"],
  sha: ["sha", "text"],
  tag: ["tag", "text"],
} as const satisfies Record<string, readonly [column: string, PgType]>;

type AskedBy = keyof typeof COLUMNS;
/** One question of several. A key that it lacks is null in the table. */
type OneAsked = Readonly<Partial<Record<AskedBy, Value>>>;

/** The questions as a table `x`: a column for each of the keys, and the question's place `at`, from 1. */
function askedTable(asked: readonly OneAsked[], by: readonly AskedBy[]): SQL {
  const arrays = by.map((key) =>
    sql.array(
      asked.map(({ [key]: value = null }) => value),
      COLUMNS[key][1],
    ),
  );
  const columns = [...by.map((key) => COLUMNS[key][0]), "at"].map(sql.identifier);
  return sql`unnest(${sql.join(arrays)}) with ordinality as x(${sql.join(columns)})`;
}

/**
 * Asks several questions in one statement. Answers the rows of each, in the statement's order.
 * @param statement selects `x.at` and the rows from the table `x`
 */
export async function findRowsOfEach<Row extends object>(
  db: Queries,
  asked: readonly OneAsked[],
  by: readonly AskedBy[],
  statement: (x: SQL) => SQL,
): Promise<Row[][]> {
  const rows = await db.prepared<Row & { at: number }>(statement(askedTable(asked, by)));
  const found = Map.groupBy(rows, ({ at }) => at - 1);
  return asked.map((_, at) => found.get(at) ?? []);
}

/** The same where each question has one row; null: it has none. */
export async function findEach<Row extends object>(
  ...question: Parameters<typeof findRowsOfEach<Row>>
): Promise<(Row | null)[]> {
  return (await findRowsOfEach<Row>(...question)).map(([row = null]) => row);
}

/** The same for documents. */
export async function findDocuments<More extends object = object>(
  db: Queries,
  asked: readonly (OneAsked & { repositoryId: number })[],
  ...question: [by: readonly AskedBy[], statement: (x: SQL) => SQL]
): Promise<((StoredDocument & More) | null)[]> {
  const rows = await findEach<{ document: string } & More>(db, asked, ...question);
  return asked.map(({ repositoryId }, at) => {
    const row = rows[at];
    return row ? { repositoryId, ...row } : null;
  });
}

/** Which of the questions have a row. */
export async function findWhether(...question: Parameters<typeof findRowsOfEach>): Promise<boolean[]> {
  return (await findRowsOfEach(...question)).map((rows) => rows.length > 0);
}
