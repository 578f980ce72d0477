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
/** Upstream's pace for one account makes the first copy of a thousand take a quarter of an hour. At rest there is one. */
const COPYING_TOKENS = 8;
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
    const untilDone = async () => {
      await waitFor(ctx, `select ${REPOSITORIES} - count(*)::int as left from repository_syncs where state = 'live'`);
      await waitFor(ctx, "select count(*)::int as left from refresh_marks");
    };
    {
      await using copying = new AsyncDisposableStack();
      start({ ...env, UPSTREAM_TOKEN: await addTokens(upstream.url, COPYING_TOKENS - 1) }, copying);
      await untilDone();
    }
    await using children = new AsyncDisposableStack();
    const pids = start(env, children);
    await untilDone();
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
