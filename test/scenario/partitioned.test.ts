/**
 * Tables whose keys all begin with the repository's id are divided by that id, as an engine that shards Postgres would
 * do.
 */
import { expect, test } from "vitest";
import { migrate } from "../../db/migrate.ts";
import { sql } from "../../db/sql.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { removeSelection } from "../../src/sync/following/removal.ts";
import { compare } from "../support/comparison.ts";
import { connectTo, openTestDatabase } from "../support/database.ts";
import { openWorld } from "../support/world.ts";

const PARTITIONS = 4;

/**
 * Divides each table whose keys all begin with `repository_id` into partitions by the id's hash. Answers their names.
 */
async function divide(url: string): Promise<string[]> {
  const client = await connectTo(url);
  const { rows } = await client.query<{ name: string; triggers: string[] }>(`
    select c.relname as name,
        array(select pg_get_triggerdef(t.oid) from pg_trigger t where t.tgrelid = c.oid and not t.tgisinternal) as triggers
      from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
        and 'repository_id' = all(select a.attname from pg_index i join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]
          where i.indrelid = c.oid and i.indisunique) order by 1`);
  for (const { name, triggers } of rows) {
    await client.query(`alter table ${name} rename to whole_${name}`);
    await client.query(`create table ${name} (like whole_${name} including all) partition by hash (repository_id)`);
    for (let at = 0; at < PARTITIONS; at++)
      await client.query(
        `create table ${name}_${at} partition of ${name} for values with (modulus ${PARTITIONS}, remainder ${at})`,
      );
    // The views for readers are of the undivided tables, and go with them.
    await client.query(`drop table whole_${name} cascade`);
    for (const trigger of triggers) await client.query(trigger);
  }
  await client.end();
  await migrate(url); // This grants the rights anew.
  return rows.map(({ name }) => name);
}

test("a mirror on hash partitions follows its repositories, and removes one without touching the others", async () => {
  await using database = await openTestDatabase();
  expect(await divide(database.url)).toEqual(expect.arrayContaining(["issues", "pull_requests", "issue_comments"]));
  await using world = await openWorld({
    env: { DATABASE_URL: database.url },
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 3, repositories: 3, issues: 18, pulls: 9 }),
  });
  const { ctx, simulator } = world;
  const names = [...simulator.world.repositories.values()]
    .filter(({ fork }) => !fork)
    .map((one) => simulator.world.fullName(one));
  await world.mirror(...names);
  await world.listen(...names);
  const live = simulator.startLive({ ratePerSecond: 0, seed: 3 });
  for (let change = 0; change < 10; change++) live.step();
  await world.settle();
  await world.settleMarks();
  await world.catchUp();
  const differences = async (fullName: string) => (await compare(ctx, simulator, fullName)).differences;
  for (const name of names) expect(await differences(name)).toEqual([]);
  const divided = await ctx.db.query<{ rows: number }>(sql`select count(*)::int as rows from issues group by tableoid`);
  expect(divided.length).toBeGreaterThan(1);

  const [removed = "", ...kept] = names;
  expect(await removeSelection(ctx, removed, { purge: true })).toEqual([removed]);
  for (const name of kept) expect(await differences(name)).toEqual([]);
});
