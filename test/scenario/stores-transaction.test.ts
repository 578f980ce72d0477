import { expect, test } from "vitest";
import { openDatabase } from "../../db/database.ts";
import { sql } from "../../db/sql.ts";
import { openTestDatabase } from "../support/database.ts";
import { until } from "../support/patience.ts";

test("a connection that Postgres ends between two statements fails the transaction, not the process", async () => {
  const database = await openTestDatabase();
  const db = openDatabase(database.url);
  try {
    const cut = db.transaction(async (tx) => {
      const [row] = await tx.query<{ pid: number }>(sql`select pg_backend_pid() as pid`);
      const pid = row?.pid ?? null;
      await db.query(sql`select pg_terminate_backend(${pid})`);
      await until("the backend has ended", async () => {
        const rowCount = await db.count(sql`select from pg_stat_activity where pid = ${pid}`);
        return rowCount === 0;
      });
      await tx.query(sql`select 1`);
    });
    await expect(cut).rejects.toThrow();
    expect(await db.query(sql`select 1`)).toHaveLength(1);
  } finally {
    await db.close();
  }
});
