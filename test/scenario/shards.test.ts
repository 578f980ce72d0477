/** The work on a large fleet is divided among workers. */
import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import type { Shard } from "../../src/queues/jobs.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { backfill } from "../../src/sync/backfill/backfill.ts";
import { sweep } from "../../src/sync/catch-up/sweep.ts";
import { addSelections, resolveSelections } from "../../src/sync/following/selection.ts";
import { inShards, shardsOf, WHOLE } from "../../src/sync/turns/shards.ts";
import { eventually } from "../support/patience.ts";
import { rowsReadBy } from "../support/rows-read.ts";
import { openWorld } from "../support/world.ts";

const { signal } = new AbortController();
const REPOSITORIES = 3;

test("a large fleet is swept in shards at once, each repository by one, and a shard that waits is asked for once", async () => {
  await using world = await openWorld({
    workers: false,
    fill: ({ world: upstream }) =>
      void generateWorld(upstream, { seed: 9, repositories: REPOSITORIES, issues: 9, pulls: 2 }),
  });
  const { ctx, simulator } = world;
  const listed = [...simulator.world.repositories.values()].filter(({ fork }) => !fork);
  await addSelections(
    ctx,
    listed.map((one) => simulator.world.fullName(one)),
  );
  await resolveSelections(ctx);
  for (const { id } of listed) await backfill(ctx, { repositoryId: id }, signal);
  const shards = await shardsOf(ctx, 1);
  const sweepAll = async () =>
    (await Promise.all(shards.map((shard) => sweep(ctx, { shard })))).map(({ swept }) => swept);
  expect(await sweepAll()).toEqual([1, 1, 1]);
  expect(await sweepAll()).toEqual([0, 0, 0]);

  // There are so many repositories that they are divided. Upstream shows none of them, and nothing of them is due.
  await ctx.db.query(sql`insert into repository_syncs (repository_id, state, added_at, backfilled_at, confirmed_at)
    select -n, 'live', now(), now(), now() from generate_series(1, 1800) n`);
  world.advance(10 * 60_000);
  const alone = () => Promise.reject(new Error("one worker was to do all of it"));
  for (let time = 0; time < 2; time++) await inShards(ctx, "sweep", alone);
  expect(await ctx.queues.shards.getJobCounts("waiting", "active")).toEqual({ waiting: 2, active: 0 });
  world.work();
  const due = new Date(ctx.clock.now().getTime() - 60_000);
  await eventually(async () =>
    expect(await ctx.db.count(sql`select from sweeps where swept_at > ${due}`)).toBe(REPOSITORIES),
  );
});

test("the shards of a fleet read hardly more rows together than one worker for all of it", async () => {
  await using world = await openWorld({ workers: false, fill: () => {} });
  const { ctx } = world;
  const now = ctx.clock.now();
  await ctx.db.query(sql`insert into repository_syncs (repository_id, state, added_at, backfilled_at, confirmed_at)
    select n, 'live', ${now}, ${now}, ${now} from generate_series(1, 20000) n`);
  await ctx.db.query(sql`insert into sweeps (repository_id, shown, shown_at, swept_at)
    select n, '{}', ${now}, ${now} from generate_series(1, 20000) n`);
  await ctx.db.query(sql`insert into audits (repository_id, repair, started_at, finished_at, phase, report)
    select n, true, ${now}, ${now}, 'ended', '{}' from generate_series(1, 20000) n`);
  await ctx.db.query(sql`vacuum analyze repository_syncs, sweeps, audits`);
  const sweptBy = async (shards: readonly Shard[]) => {
    const read = await rowsReadBy(ctx.config.databaseUrl, async (db) => {
      for (const shard of shards) await sweep({ ...ctx, db }, { shard, largeFleet: 1_000_000 });
    });
    return (read.repository_syncs ?? 0) + (read.sweeps ?? 0) + (read.audits ?? 0);
  };
  const whole = await sweptBy([WHOLE]);
  expect(whole).toBeGreaterThanOrEqual(20_000);
  expect((await sweptBy(await shardsOf(ctx, 900))) / whole).toBeLessThan(1.1);
});
