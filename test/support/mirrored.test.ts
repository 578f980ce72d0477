import { expect, test } from "vitest";
import { type Database, openDatabase } from "../../db/database.ts";
import { sql } from "../../db/sql.ts";
import { openSimulator } from "../../src/simulator/simulator.ts";
import { openTestDatabase } from "./database.ts";
import { findMirroredTemplate, mirrorWhole } from "./mirrored.ts";

test("a clone of the mirrored template is what mirroring the same world anew gives", async () => {
  const template = await findMirroredTemplate({ repositories: 2, issues: 60 });
  await using cloned = await openTestDatabase(template.name);
  await using empty = await openTestDatabase();
  await using resources = new AsyncDisposableStack();
  const open = (url: string) => {
    const db = openDatabase(url, { maxConnections: 1 });
    resources.defer(() => db.close());
    return db;
  };
  const upstream = resources.use(await openSimulator({ seed: 7 }));
  template.fill(upstream.world);
  upstream.tokens.create({ token: "all", login: "mirror-owner", repositories: "all" });
  const fresh = open(empty.url);
  await mirrorWhole({ db: fresh, clock: { now: () => new Date() } }, upstream, "all");
  const rows = await everyRow(open(cloned.url));
  expect(rows.length).toBeGreaterThan(500);
  const again = await everyRow(fresh);
  expect(rows.filter((row) => !again.includes(row))).toEqual([]);
  expect(again.filter((row) => !rows.includes(row))).toEqual([]);
});

/** Each row as `table: JSON`, without the times at which the mirror saw it. */
async function everyRow(db: Database): Promise<string[]> {
  const tables = await db.query<{ name: string; columns: string }>(sql`
    select table_name as name, string_agg(quote_ident(column_name), ', ' order by ordinal_position) as columns
      from information_schema.columns join information_schema.tables using (table_schema, table_name)
      where table_schema = 'public' and column_name <> all ('{seen_at,changed_at,added_at,backfilled_at,due_at,key_stamps}') and table_type = 'BASE TABLE'
      group by 1`);
  const found: string[] = [];
  for (const { name, columns } of tables) {
    const rows = await db.query<{ row: string }>(sql`
      select row_to_json(r)::text as row from (select ${sql.script(columns)} from ${sql.identifier(name)}) r`);
    found.push(...rows.map(({ row }) => `${name}: ${row}`));
  }
  return found.sort();
}
