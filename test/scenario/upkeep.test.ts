import { expect, test } from "vitest";
import { openDatabase } from "../../db/database.ts";
import { sql } from "../../db/sql.ts";
import { loadStatus } from "../../src/health/status.ts";
import { pruneDeliveries } from "../../src/inbox/prune.ts";
import { generateWorld } from "../../src/simulator/generate.ts";
import { scheduleAudits } from "../../src/sync/audit/schedule.ts";
import { backfill } from "../../src/sync/backfill/backfill.ts";
import { sweep } from "../../src/sync/catch-up/sweep.ts";
import { checkDeliveries } from "../../src/sync/deliveries/missed.ts";
import { addSelections, resolveSelections } from "../../src/sync/following/selection.ts";
import { pruneBodies, pruneValidators } from "../../src/upstream/conditional/validators.ts";
import { TEST_MS } from "../support/bounds.ts";
import { printFigures } from "../support/figures.ts";
import { paced } from "../support/paced.ts";
import { until } from "../support/patience.ts";
import { type RowsRead, rowsReadBy } from "../support/rows-read.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

const { signal } = new AbortController();
const REPOSITORIES = Number(process.env.UPKEEP_REPOSITORIES ?? 4);
/** How many comments and deliveries lie in each, beside what upstream has. */
const ROWS = Number(process.env.UPKEEP_ROWS ?? 2_000);

/** Filling takes most of it. */
const TIMEOUT_MS = Math.max(TEST_MS, 2_000 * REPOSITORIES);
const SWEEP_MS = 6 * 60_000;
/** What a sweep counts of a repository in which something has changed. */
const LISTS = ["issues", "issue_comments", "pull_request_review_comments", "labels", "milestones"];
/** Rows of the mirror itself, and what came from upstream's hooks. */
const BULK = [...LISTS, "deliveries", "audit_pages"];

function bulkOf(read: RowsRead): number {
  return BULK.reduce((sum, table) => sum + (read[table] ?? 0), 0);
}

/** A mirror with as many rows as a busy year leaves, whose repositories have all been swept once. */
async function openFilled(): Promise<{ world: TestWorld; changed: number }> {
  const world = await openWorld({
    workers: false,
    fill: ({ world: upstream }) =>
      void generateWorld(upstream, { seed: 9, repositories: REPOSITORIES, issues: 3 * REPOSITORIES, pulls: 2 }),
  });
  const { ctx } = world;
  const listed = [...world.simulator.world.repositories.values()].filter(({ fork }) => !fork);
  await addSelections(
    ctx,
    listed.map((one) => world.simulator.world.fullName(one)),
  );
  await paced(world, () => resolveSelections(ctx));
  for (const { id } of listed) await paced(world, () => backfill(ctx, { repositoryId: id }, signal));
  const ids = listed.map(({ id }) => id);
  // Of the first, which has a third of all issues, Postgres would read whole tables; of an archived one a sweep reads nothing.
  const changed = listed.findLast(({ archived }) => !archived)?.id ?? 0;
  const longAgo = new Date(ctx.clock.now().getTime() - 3_600_000);
  await ctx.db.query(sql`
    insert into issue_comments (repository_id, id, issue_number, body, created_at, updated_at, document, seen_at, seen_by_read)
      select r, 900000000000 + n, 1, 'a comment', ${longAgo}, ${longAgo}, '{}', ${longAgo}, true
        from unnest(${ids}::bigint[]) r, generate_series(1, ${ROWS}) n`);
  await ctx.db.query(sql`
    insert into deliveries (hook_id, guid, event, repository_id, payload, status, received_at, settled_at)
      select 77, r || '-' || n, 'issues', r, '{}', 'applied', ${longAgo}, ${longAgo}
        from unnest(${ids}::bigint[]) r, generate_series(1, ${ROWS}) n`);
  await ctx.db.query(sql`analyze`);
  await countAllSoFar(ctx.config.databaseUrl);
  return { world, changed };
}

/** An idle backend tells what it has read up to ten seconds later, so into somebody else's figures; one that ends tells it at once. */
async function countAllSoFar(url: string): Promise<void> {
  const observer = openDatabase(url, { maxConnections: 1, applicationName: "tain observer" });
  try {
    const ended = await observer.query<{ pid: number }>(sql`
      with idle as materialized (
        select pid from pg_stat_activity
          where datname = current_database() and state = 'idle' and pid <> pg_backend_pid())
      select pid from idle where pg_terminate_backend(pid)`);
    const pids = ended.map(({ pid }) => pid);
    await until("idle connections have ended", async () => {
      const [row] = await observer.query<{ open: number }>(
        sql`select count(*)::int as open from pg_stat_activity where pid = any(${pids})`,
      );
      return row?.open === 0;
    });
  } finally {
    await observer.close();
  }
}

/** How many rows of its lists a repository has, the deleted ones too. */
async function rowsOf({ db }: TestWorld["ctx"], repositoryId: number): Promise<number> {
  const counts = LISTS.map(
    (table) => sql`(select count(*) from ${sql.identifier(table)} where repository_id = ${repositoryId})`,
  );
  const [row] = await db.query<{ count: number }>(sql`select (${sql.join(counts, " + ")})::int as count`);
  return row?.count ?? 0;
}

test(
  "upkeep reads what has changed, and not what there is",
  async () => {
    const { world, changed } = await openFilled();
    await using _ = world;
    const { ctx } = world;
    const url = ctx.config.databaseUrl;
    const read = (task: (measured: typeof ctx) => Promise<unknown>) =>
      rowsReadBy(url, (db) => paced(world, () => task({ ...ctx, db })));
    const sweepAgain = async () => {
      world.advance(SWEEP_MS);
      return await read((measured) => sweep(measured));
    };
    const figures = new Map<string, RowsRead>();
    const upkeep = {
      sweep: sweepAgain,
      "check-deliveries": () => read((measured) => checkDeliveries(measured)),
      "schedule-audits": () => read((measured) => scheduleAudits(measured)),
      prune: () =>
        read((measured) => Promise.all([pruneDeliveries(measured), pruneValidators(measured), pruneBodies(measured)])),
      status: () => read((measured) => loadStatus(measured, async () => [])),
    };

    // The first time each has all to look at.
    for (const task of Object.values(upkeep)) await task();
    for (const [name, task] of Object.entries(upkeep)) figures.set(name, await task());
    printFigures("upkeep", {
      repositories: REPOSITORIES,
      rows: REPOSITORIES * ROWS * 2,
      reads: Object.fromEntries(
        [...figures].map(([name, rows]) => [name, Object.values(rows).reduce((a, b) => a + b, 0)]),
      ),
      readsOfTheMirror: Object.fromEntries([...figures].map(([name, rows]) => [name, bulkOf(rows)])),
    });
    for (const [name, rows] of figures) expect(bulkOf(rows), `${name} reads ${JSON.stringify(rows)}`).toBeLessThan(100);

    // What changes is read, of that repository alone.
    await ctx.db.transaction(async (tx) => {
      await tx.query(
        sql`update issue_comments set deleted_at = now() where repository_id = ${changed} and id = 900000000001`,
      );
      tx.touch([changed]);
    });
    const after = await sweepAgain();
    const has = await rowsOf(ctx, changed);
    const { reads, ofTheMirror } = { reads: JSON.stringify(after), ofTheMirror: bulkOf(after) };
    printFigures("upkeep of a change", { has, ofTheMirror });
    // Once, and tables that are small enough to be read whole.
    expect(ofTheMirror, reads).toBeGreaterThanOrEqual(has - 1);
    expect(ofTheMirror, reads).toBeLessThan(has + 200);
  },
  TIMEOUT_MS,
);
