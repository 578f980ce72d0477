import { type Database, openDatabase } from "../../db/database.ts";
import { type SQL, sql } from "../../db/sql.ts";
import { until } from "./patience.ts";

/** How many rows, or index entries, were read of each table. Tables that were not read are left out. */
export type RowsRead = Record<string, number>;

const NAME = "tain counted";

/**
 * How much `task` reads of Postgres through the database that it gets, as Postgres counts. Rows that planning looks at
 * are not counted.
 * @param url of a superuser
 */
export async function rowsReadBy(url: string, task: (db: Database) => Promise<unknown>): Promise<RowsRead> {
  const observer = openDatabase(url, { maxConnections: 1, applicationName: "tain observer" });
  try {
    const before = await counts(observer);
    const db = openDatabase(url, { maxConnections: 6, applicationName: NAME });
    try {
      await task(db);
    } finally {
      await db.close();
    }
    // A backend adds its reads to the counts when it ends, which is after its client has gone.
    await until("the counted connections have ended", async () => {
      const [row] = await observer.query<{ open: number }>(
        sql`select count(*)::int as open from pg_stat_activity where application_name = ${NAME} and datname = current_database()`,
      );
      return row?.open === 0;
    });
    const read = Object.entries(await counts(observer)).map(([table, count]) => [table, count - (before[table] ?? 0)]);
    return Object.fromEntries(read.filter(([, count]) => count !== 0));
  } finally {
    await observer.close();
  }
}

async function counts(observer: Database): Promise<RowsRead> {
  const entries: SQL = sql`(select sum(i.idx_tup_read) from pg_stat_user_indexes i where i.relid = t.relid)`;
  const rows = await observer.query<{ table: string; count: string }>(
    sql`select t.relname as table, t.seq_tup_read + coalesce(${entries}, 0) as count from pg_stat_user_tables t`,
  );
  return Object.fromEntries(rows.map(({ table, count }) => [table, Number(count)]));
}
