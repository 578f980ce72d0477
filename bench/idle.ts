import { readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { addSelections } from "../src/sync/selection.ts";
import { openBenchDatabase } from "./databases.ts";
import { openMirror, waitFor } from "./history.ts";
import { type Benchmark, comparison, ROUNDS } from "./measure.ts";
import { startProgram, startServer } from "./processes.ts";
import { addTokens, repositoriesAt } from "./upstream.ts";

const LARGE = process.env.TAIN_LARGE === "1";
const REPOSITORIES = LARGE ? 1_000 : 30;
/** Until it is at rest: upstream's pace for one account makes that of a thousand take half an hour. */
const TOKENS = 8;
/** Of sweeps until then, lest a few repositories wait for their first longer than their copy takes. */
const SWEEP_INTERVAL = LARGE ? "4m" : "20s";
/** Long enough in a large run for a catch-up, a sweep and whatever else comes by the minute. */
const SECONDS = LARGE ? 60 : 4;
const PROCESSES = ["../src/web.ts", "../workers/main.ts", "../workers/scheduler.ts"];
const TICKS_PER_SECOND = 100;

export const benchmark: Benchmark = {
  about: "CPU time of web, worker and scheduler while nothing happens, against one core",
  async run() {
    const size = { REPOSITORIES: String(REPOSITORIES), ISSUES: String(REPOSITORIES * 5), PULLS: String(REPOSITORIES) };
    await using upstream = await startServer("simulator-server.ts", size);
    await using database = await openBenchDatabase();
    await using mirror = await openMirror(database, upstream, "idle");
    const { ctx, env } = mirror;
    await addSelections(
      ctx,
      (await repositoriesAt(upstream.url)).map(({ fullName }) => fullName),
    );
    const start = (settings: NodeJS.ProcessEnv, children: AsyncDisposableStack) =>
      PROCESSES.map((file) => children.use(startProgram(file, settings)).pid);
    {
      await using copying = new AsyncDisposableStack();
      start({ ...env, SWEEP_INTERVAL, UPSTREAM_TOKEN: await addTokens(upstream.url, TOKENS - 1) }, copying);
      await waitFor(ctx, UNCOPIED);
      await waitFor(ctx, UNSWEPT);
    }
    await using children = new AsyncDisposableStack();
    const pids = start(env, children);
    await delay(3_000);
    const pairs: [number, number][] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const before = await cpuSeconds(pids);
      await delay(SECONDS * 1_000);
      pairs.push([(await cpuSeconds(pids)) - before, SECONDS]);
    }
    const measured = comparison(pairs, { unit: "CPU s", goal: { atMost: 0.02 } });
    return { ...measured, notes: { repositories: REPOSITORIES, seconds: SECONDS } };
  },
};

const UNCOPIED = `select ${REPOSITORIES} - count(*)::int + (select count(*) from refresh_marks)::int as left
  from repository_syncs where state = 'live'`;
/** The first look at a repository's lists finds all of them new, and then it is caught up with. */
const UNSWEPT = `select count(*)::int as left from repository_syncs s left join sweeps w using (repository_id)
  where w.swept_at is null or w.changed_at >= s.confirmed_at or s.confirmed_at is null`;

/** Of these processes since each began, as the kernel counts it. */
async function cpuSeconds(pids: readonly number[]): Promise<number> {
  let ticks = 0;
  for (const pid of pids) {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")")).split(" ");
    ticks += Number(fields[12]) + Number(fields[13]);
  }
  return ticks / TICKS_PER_SECOND;
}
