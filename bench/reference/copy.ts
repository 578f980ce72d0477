import { randomBytes } from "node:crypto";
import pg from "pg";

/** Tables, each with its columns that are not generated, and with the file on the server that holds its rows. */
export type Dump = { table: string; columns: string; file: string }[];

/** The tables that migrations have filled, asked of an empty mirror. */
export async function tablesWithRows(databaseUrl: string): Promise<string[]> {
  return await connected(databaseUrl, async (client) => {
    const { rows: tables } = await client.query<{ table: string }>(
      `select relname as table from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'`,
    );
    const filled: string[] = [];
    for (const { table } of tables) {
      const { rowCount } = await client.query(`select from ${table} limit 1`);
      if (rowCount) filled.push(table);
    }
    return filled;
  });
}

/**
 * Writes each table that has rows to a file of the server's.
 * @param without tables in which an empty mirror has rows, too
 */
export async function dumpRows(databaseUrl: string, { without }: { without: readonly string[] }): Promise<Dump> {
  return await connected(databaseUrl, async (client) => {
    const { rows: tables } = await client.query<{ table: string; columns: string; folder: string }>(
      `select c.relname as table, string_agg(quote_ident(a.attname), ', ' order by a.attnum) as columns, current_setting('data_directory') as folder
        from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
        where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and c.relname <> all($1) group by c.relname`,
      [without],
    );
    const dump: Dump = [];
    for (const { table, columns, folder } of tables) {
      const file = `${folder}/bench-${randomBytes(4).toString("hex")}`;
      const { rowCount } = await client.query(`copy ${table} (${columns}) to '${file}'`);
      if (rowCount) dump.push({ table, columns, file });
    }
    return dump;
  });
}

/** Reads the files into the same tables of an empty mirror, in one transaction. Answers how many seconds it took. */
export async function copyRows(databaseUrl: string, dump: Dump): Promise<number> {
  return await connected(databaseUrl, async (client) => {
    const startedAt = performance.now();
    await client.query("begin");
    for (const { table, columns, file } of dump) await client.query(`copy ${table} (${columns}) from '${file}'`);
    await client.query("commit");
    return (performance.now() - startedAt) / 1_000;
  });
}

async function connected<T>(databaseUrl: string, run: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    return await run(client);
  } finally {
    await client.end();
  }
}
