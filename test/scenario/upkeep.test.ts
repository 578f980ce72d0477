import { expect, test } from "vitest";
import { type Database, openDatabase } from "../../db/database.ts";
import { sql } from "../../db/sql.ts";
import { loadStatus } from "../../src/health/status.ts";
import { pruneDeliveries } from "../../src/inbox/prune.ts";
import { scheduleAudits } from "../../src/sync/audit/schedule.ts";
import { countAndStoreOurs } from "../../src/sync/catch-up/our-counts.ts";
import { sweep } from "../../src/sync/catch-up/sweep.ts";
import { checkDeliveries } from "../../src/sync/hook-deliveries/missed.ts";
import { NO_HOOK } from "../../src/sync/hook-deliveries/sent.ts";
import { pruneBodies, pruneValidators } from "../../src/upstream/conditional/validators.ts";
import { TEST_MS } from "../support/bounds.ts";
import { printFigures } from "../support/figures.ts";
import { openManyRepositories } from "../support/many-repositories.ts";
import { paced } from "../support/paced.ts";
import { until } from "../support/patience.ts";
import { type RowsRead, rowsReadBy } from "../support/rows-read.ts";
import type { TestWorld } from "../support/world.ts";

const REPOSITORIES = Number(process.env.UPKEEP_REPOSITORIES ?? 4);
/** How many issues, comments and deliveries each repository has. */
const ROWS = Number(process.env.UPKEEP_ROWS ?? 4_000);

/**
 * How many repositories have lists and hooks that are due. Tain asks for these at the pace that upstream allows,
 * however many there are. In all repositories it looks for changes.
 */
const ASKED = Math.min(100, REPOSITORIES - 1);

/**
 * Filling the tables takes most of this time: five million rows take a minute or two, or ten minutes beside other work.
 */
const TIMEOUT_MS = REPOSITORIES * ROWS > 1_000_000 ? 1_800_000 : TEST_MS;
const SWEEP_MS = 6 * 60_000;
/** The lists that a sweep counts in a repository that has changed. */
const LISTS = ["issues", "issue_comments", "pull_request_review_comments", "labels", "milestones"];
/** The tables of the mirror itself, and of what came from upstream's hooks. */
const BULK = [...LISTS, "deliveries", "audit_pages"];

function bulkOf(read: RowsRead): number {
  return BULK.reduce((sum, table) => sum + (read[table] ?? 0), 0);
}

interface Measured {
  rows: RowsRead;
  /** How often the task was begun. */
  turns: number;
}

/** A mirror with as many rows as a busy year leaves. `asked`: the repositories about which upstream is asked. */
async function openFilled(): Promise<{ world: TestWorld; asked: readonly number[] }> {
  const { world, ids } = await openManyRepositories({ repositories: REPOSITORIES, rows: ROWS });
  const asked = ids.slice(-ASKED);
  const { db, clock } = world.ctx;
  // By then the rows that were copied last are settled.
  world.advance(SWEEP_MS);
  const now = clock.now();
  const [counted = 0] = asked;
  await countAndStoreOurs(world.ctx, counted);
  await db.query(sql`
    update sweeps w set ours = one.ours, ours_revision = v.revision from sweeps one, revisions v
      where one.repository_id = ${counted} and v.repository_id = w.repository_id`);
  // Upstream was just asked about the hooks of all other repositories.
  await db.query(sql`insert into upkeep (task, done_until) values ('hooks', ${now})`);
  await db.query(sql`
    insert into hook_checks (repository_id, hook_id, checked_until, asked_at)
      select repository_id, ${NO_HOOK}, ${now}, ${now} from repository_syncs where not repository_id = any(${asked}::bigint[])`);
  await db.query(sql`analyze`);
  await countAllSoFar(world.ctx.config.databaseUrl);
  return { world, asked };
}

/**
 * An idle backend reports up to ten seconds later what it has read, and so would change the next figures. A backend
 * that ends reports at once.
 */
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

/** How many rows the lists of a repository have, deleted ones included. */
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
    const { world, asked } = await openFilled();
    await using _ = world;
    const { ctx } = world;
    const url = ctx.config.databaseUrl;
    // A task that upstream's pace stops is begun again. The quicker the machine, the more turns the task takes.
    const read = async (task: (measured: typeof ctx) => Promise<unknown>): Promise<Measured> => {
      let turns = 0;
      const turn = (db: Database) => {
        turns += 1;
        return task({ ...ctx, db });
      };
      const rows = await rowsReadBy(url, (db) => paced(world, () => turn(db)));
      return { rows, turns };
    };
    const sweepAgain = async () => {
      world.advance(SWEEP_MS);
      // This statement is counted by itself. Otherwise its reads would be reported during the sweep.
      await rowsReadBy(url, (db) =>
        db.query(
          sql`update sweeps set swept_at = ${ctx.clock.now()} where not repository_id = any(${asked}::bigint[])`,
        ),
      );
      return await read((measured) => sweep(measured));
    };
    const figures = new Map<string, Measured>();
    const upkeep = {
      sweep: sweepAgain,
      "check-deliveries": () => read((measured) => checkDeliveries(measured)),
      "schedule-audits": () => read((measured) => scheduleAudits(measured)),
      prune: () =>
        read((measured) => Promise.all([pruneDeliveries(measured), pruneValidators(measured), pruneBodies(measured)])),
      status: () => read((measured) => loadStatus(measured, async () => [])),
    };

    const ms: Record<string, number> = {};
    // The first run of each task has to look at everything.
    for (const task of Object.values(upkeep)) await task();
    for (const [name, task] of Object.entries(upkeep)) {
      const from = performance.now();
      figures.set(name, await task());
      ms[name] = Math.round(performance.now() - from);
    }
    printFigures("upkeep", {
      repositories: REPOSITORIES,
      rows: REPOSITORIES * ROWS,
      ms,
      turns: Object.fromEntries([...figures].map(([name, { turns }]) => [name, turns])),
      readsOfATurn: Object.fromEntries(
        [...figures].map(([name, { rows, turns }]) => [
          name,
          Math.round(Object.values(rows).reduce((a, b) => a + b, 0) / turns),
        ]),
      ),
      readsOfTheMirror: Object.fromEntries([...figures].map(([name, { rows }]) => [name, bulkOf(rows)])),
    });
    for (const [name, { rows }] of figures)
      expect(bulkOf(rows), `${name} reads ${JSON.stringify(rows)}`).toBeLessThan(100);

    // Tain reads the lists that have changed, and those of no other repository.
    const [changed = 0] = asked;
    await ctx.db.transaction(async (tx) => {
      await tx.query(
        sql`update issue_comments set deleted_at = now() where repository_id = ${changed} and id = 700000000001`,
      );
      tx.touch([changed]);
    });
    const { rows: after } = await sweepAgain();
    const has = await rowsOf(ctx, changed);
    const { reads, ofTheMirror } = { reads: JSON.stringify(after), ofTheMirror: bulkOf(after) };
    printFigures("upkeep of a change", { repositories: REPOSITORIES, has, ofTheMirror });
    // Each row is read once. Postgres reads whole tables when they are as small as those of a few repositories.
    expect(ofTheMirror, reads).toBeGreaterThanOrEqual(has - 1);
    expect(after.issue_comments ?? 0, reads).toBeLessThan(has);
  },
  TIMEOUT_MS,
);
