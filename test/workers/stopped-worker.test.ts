/**
 * A worker that stands still for longer than its locks last loses its deliveries to another worker. No delivery is
 * given up.
 */
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { queueCounts } from "../../src/queues/counts.ts";
import { enqueueBursts } from "../../src/queues/queues.ts";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { connectTo } from "../support/database.ts";
import { printFigures } from "../support/figures.ts";
import { until } from "../support/patience.ts";
import { startProgramAt } from "../support/program.ts";
import { arrive, opened, openMirrored, statuses, titles } from "./arrived.ts";

/** `npm run proofs stopped` stops it eight times, for half a minute each. */
const STOPS = Number(process.env.STOPS ?? 1);
const STOPPED_MS = process.env.STOPS ? 30_000 : 0;
/** So many deliveries go into several bursts. */
const DELIVERIES = 40;
/** Upstream does not know the resources of these deliveries, so this worker must not ask it. */
const WORKER = fileURLToPath(new URL("./deliveries-worker.ts", import.meta.url));
const TAKEN_OVER = "A job's worker has gone; another takes it over";

test(
  "a worker that is stopped in the middle of its deliveries, again and again, loses none and fails none",
  async () => {
    await using world = await openMirrored();
    const { ctx } = world;
    const env = { ...world.env, LOG_LEVEL: "warn" };
    const victim = startProgramAt("/", WORKER, env);
    const all: string[] = [];
    let takenOver = 0;
    for (let stop = 1; stop <= STOPS; stop++) {
      const edits = Array.from({ length: DELIVERIES }, (_, at) =>
        opened(world, at + 1, `edited ${stop}`, new Date(Date.UTC(2026, 0, 1, 0, stop)).toISOString()),
      );
      const ids = await arrive(world, edits);
      all.push(...ids);
      // The worker cannot go on while another connection holds the locks of these rows.
      const holder = await connectTo(ctx.config.databaseUrl);
      try {
        await holder.query("begin");
        await holder.query("select from deliveries where id = any($1) for update", [ids]);
        await enqueueBursts(ctx, ids);
        await until("the victim waits in its transaction", async () => {
          const rows = await ctx.db.query(sql`
            select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`);
          return rows.length > 0;
        });
        process.kill(victim.pid, "SIGSTOP");
      } finally {
        await holder.end();
      }
      const other = startProgramAt("/", WORKER, env);
      await Promise.all([other.said(TAKEN_OVER), delay(STOPPED_MS)]);
      process.kill(victim.pid, "SIGCONT");
      await until("all are settled", async () => !(await statuses(world, ids)).includes("pending"));
      takenOver += other.lines.filter(({ msg }) => msg === TAKEN_OVER).length;
      await other.kill();
    }
    const outcomes = await statuses(world, all);
    const failed = outcomes.filter((status) => status === "failed").length;
    printFigures("stopped worker", { stops: STOPS, stoppedMs: STOPPED_MS, deliveries: all.length, takenOver, failed });
    expect(new Set(outcomes)).toEqual(new Set(["applied"]));
    expect(await titles(world)).toEqual(Array.from({ length: DELIVERIES }, (_, at) => `${at + 1} edited ${STOPS}`));
    await until("no job is left", async () => {
      const { waiting, active, delayed } = (await queueCounts(ctx)).deliveries ?? {};
      return waiting === 0 && active === 0 && delayed === 0;
    });
    expect((await queueCounts(ctx)).deliveries).toMatchObject({ failed: 0 });
    expect(victim.hasExited).toBe(false);
  },
  LONG_TEST_MS + STOPS * 2 * STOPPED_MS,
);
