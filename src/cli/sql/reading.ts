import pg from "pg";
import Cursor from "pg-cursor";
import { secretFileProblems } from "../../config.ts";
import { codeOf, reasonOf } from "../../failure.ts";
import { CommandError, listOf } from "../terminal/command.ts";
import { START } from "../terminal/typed.ts";

export const READER = "tain_reader";

/** Where a reader finds names: a view before the table of the same name. */
export const SEARCH_PATH = "tain_v1, public";

/** The database's address: that of a session, since a pooler would share the session. @throws CommandError */
export function databaseAddress(env: NodeJS.ProcessEnv): string {
  const problems = secretFileProblems(env, ["DATABASE_URL", "DATABASE_DIRECT_URL"]);
  if (problems.length > 0) throw new CommandError(problems.join("; "));
  const url = env.DATABASE_DIRECT_URL?.trim() || env.DATABASE_URL?.trim();
  if (!url)
    throw new CommandError("DATABASE_URL is not set, and no instance runs here: set it to the mirror's database");
  return url;
}

/**
 * Opens a connection that reads what `tain_reader` may, in one transaction that writes nothing. Times are UTC.
 * @throws CommandError
 */
export async function openReader(env: NodeJS.ProcessEnv, resources: AsyncDisposableStack): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: databaseAddress(env), application_name: "tain sql" });
  // A connection that breaks fails the query that runs.
  client.on("error", () => {});
  try {
    await client.connect();
  } catch (error) {
    throw new CommandError(
      `Postgres cannot be used (${reasonOf(error)}): see that DATABASE_URL is right and the server runs`,
      { cause: error },
    );
  }
  resources.defer(() => client.end());
  try {
    await client.query(`begin read only; set local search_path = ${SEARCH_PATH}; set local timezone = 'UTC';
      set local datestyle = 'ISO'; set local role ${READER}`);
  } catch (error) {
    throw new CommandError(
      `Queries run with the rights of ${READER}, and that role cannot be taken (${reasonOf(error)}): ` +
        `\`${START}\` or \`node db/migrate.ts\` makes it, and the user of DATABASE_URL must be its member or a superuser`,
      { cause: error },
    );
  }
  return client;
}

const { builtins } = pg.types;
/** The types of numbers. */
export const NUMBERS: ReadonlySet<number> = new Set([
  ...[builtins.INT2, builtins.INT4, builtins.INT8, builtins.OID],
  ...[builtins.FLOAT4, builtins.FLOAT8, builtins.NUMERIC],
]);
const TEXT_ARRAY: number = 1009;
/** The type of an array, and that of its members. */
export const ARRAYS: ReadonlyMap<number, number> = new Map([
  [1000, builtins.BOOL],
  [1005, builtins.INT2],
  [1007, builtins.INT4],
  [TEXT_ARRAY, builtins.TEXT],
  [1015, builtins.VARCHAR],
  [1016, builtins.INT8],
  [1185, builtins.TIMESTAMPTZ],
]);
/** The members of an array as Postgres writes it, as texts. */
export const readTexts: (text: string) => unknown = pg.types.getTypeParser(TEXT_ARRAY);

/** Some rows of an answer, each value as Postgres writes it. */
export interface Batch {
  fields: readonly pg.FieldDef[];
  rows: readonly (readonly (string | null)[])[];
}

/** So many rows are in memory at once. The largest texts have 64 KB. */
const BATCH = 200;

const AS_WRITTEN: pg.CustomTypesConfig = { getTypeParser: () => (value: string) => value };

/**
 * The rows that one statement answers, batch by batch. The first batch comes even if it is empty.
 * @throws CommandError for a statement that Postgres refuses
 */
export async function* readRows(
  client: pg.Client,
  text: string,
  values: readonly unknown[] = [],
): AsyncGenerator<Batch, void, undefined> {
  const cursor = client.query(
    new Cursor<(string | null)[]>(text, [...values], { rowMode: "array", types: AS_WRITTEN }),
  );
  try {
    for (let isFirst = true; ; isFirst = false) {
      const batch = await nextBatch(cursor);
      if (isFirst || batch.rows.length > 0) yield batch;
      if (batch.rows.length < BATCH) return;
    }
  } catch (error) {
    throw await refusalOf(client, text, error);
  }
}

async function nextBatch(cursor: Cursor<(string | null)[]>): Promise<Batch> {
  return await new Promise((resolve, reject) => {
    cursor.read(BATCH, (error, rows, result) => (error ? reject(error) : resolve({ fields: result.fields, rows })));
  });
}

/** What Postgres said of a query, with what would be right where that is known. */
async function refusalOf(client: pg.Client, text: string, error: unknown): Promise<unknown> {
  if (!(error instanceof pg.DatabaseError)) return error;
  const place = error.position === undefined ? "" : ` at ${placeIn(text, Number(error.position))}`;
  const said = `Postgres refuses the query${place}: ${error.message}`;
  const more = (await adviceOn(client, codeOf(error))) ?? error.hint?.replace(/\.$/, "");
  return new CommandError(more ? `${said}. ${more}` : said, { cause: error });
}

async function adviceOn(client: pg.Client, code: string | undefined): Promise<string | null> {
  switch (code) {
    case "42P01": {
      // undefined_table
      const views = await viewNames(client);
      return views.length > 0
        ? `The views are ${listOf(views)}`
        : `The database has no views yet: \`${START}\` makes them, or \`node db/migrate.ts\``;
    }
    case "25006": // read_only_sql_transaction
      return "The mirror is only read: what it holds is upstream's";
    case "42501": // insufficient_privilege
      return `${READER} reads the views and most tables, and writes nothing (docs/sql.md)`;
    case "42601": // syntax_error; several statements count as one
      return "One query is run, without psql's own commands";
    default:
      return null;
  }
}

/** The views that readers have, in order. */
async function viewNames(client: pg.Client): Promise<string[]> {
  await client.query("rollback");
  const { rows } = await client.query<{ name: string }>(
    "select viewname as name from pg_views where schemaname = 'tain_v1' order by 1",
  );
  return rows.map(({ name }) => name);
}

/** Pure. @param position counted in characters from 1, as Postgres does */
function placeIn(text: string, position: number): string {
  const lines = [...text]
    .slice(0, position - 1)
    .join("")
    .split("\n");
  return `line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1}`;
}
