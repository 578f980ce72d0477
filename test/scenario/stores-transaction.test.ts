import { expect, test } from "vitest";
import { openDatabase } from "../../db/connection.ts";
import { sql } from "../../db/drizzle.ts";
import { openTestDatabase } from "../support/database.ts";
import { until } from "../support/patience.ts";

test("a connection that Postgres ends between two statements fails the transaction, not the process", async () => {
  const database = await openTestDatabase();
  const db = openDatabase(database.url);
  try {
    const cut = db.transaction(async (tx) => {
      const { rows } = await tx.execute<{ pid: number }>(sql`select pg_backend_pid() as pid`);
      const pid = rows[0]?.pid;
      await db.$client.query("select pg_terminate_backend($1)", [pid]);
      await until("the backend has ended", async () => {
        const { rowCount } = await db.$client.query("select from pg_stat_activity where pid = $1", [pid]);
        return rowCount === 0;
      });
      await tx.execute(sql`select 1`);
    });
    await expect(cut).rejects.toThrow();
    expect((await db.execute(sql`select 1`)).rows).toHaveLength(1);
  } finally {
    await db.$client.end();
  }
});
