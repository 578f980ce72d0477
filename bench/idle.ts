import { setTimeout as delay, setInterval } from "node:timers/promises";
import type { Context } from "../src/context.ts";
import { REPLICA_LAG_MS } from "../src/mirror/store/merge-rule.ts";
import { addSelections } from "../src/sync/following/selection.ts";
import { openBenchDatabase } from "./databases.ts";
import { openMirror, waitFor } from "./history.ts";
import { type Benchmark, comparison, ROUNDS } from "./measure.ts";
import { cpuSecondsOf, startProgram, startServer } from "./processes.ts";
import { repositoriesAt } from "./upstream.ts";

const LARGE = process.env.TAIN_LARGE === "1";
const REPOSITORIES = LARGE ? 1_000 : 30;
/** Long enough in a large run for a catch-up, a sweep and the tasks of each minute. */
const SECONDS = LARGE ? 60 : 4;
const PROCESSES = ["../src/web.ts", "../workers/main.ts", "../workers/scheduler.ts"];
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
    await using children = new AsyncDisposableStack();
    const pids = PROCESSES.map((file) => children.use(startProgram(file, env)).pid);
    {
      await using hurried = hurry(ctx);
      void hurried;
      await waitFor(ctx, UNCOPIED);
      await waitFor(ctx, UNSWEPT);
    }
    await delay(3_000);
    const pairs: [number, number][] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const before = await cpuSecondsOf(pids);
      await delay(SECONDS * 1_000);
      pairs.push([(await cpuSecondsOf(pids)) - before, SECONDS]);
    }
    const measured = comparison(pairs, { unit: "CPU s", goal: { atMost: 0.02 } });
    return { ...measured, notes: { repositories: REPOSITORIES, seconds: SECONDS } };
  },
};

const UNCOPIED = `select ${REPOSITORIES} - count(*)::int + (select count(*) from refresh_marks)::int as left
  from repository_syncs where state = 'live'`;
/**
 * The first look at a repository's lists finds all of them new. A catch-up follows, and another when that look came
 * soon.
 */
const UNSWEPT = `select count(*)::int as left from repository_syncs s left join sweeps w using (repository_id)
  where w.swept_at is null or w.changed_at + interval '${REPLICA_LAG_MS} milliseconds' >= s.confirmed_at or s.confirmed_at is null`;

/**
 * Upstream's pace would make it half an hour for a thousand repositories, so each second begins a new minute of quota.
 */
function hurry({ redis, config }: Context): AsyncDisposable {
  const stopping = new AbortController();
  const work = (async () => {
    for await (const _ of setInterval(1_000, undefined, { signal: stopping.signal })) {
      const keys = await redis.keys(`${config.redisPrefix}:quota:*:points:*`);
      if (keys.length > 0) await redis.del(keys);
    }
  })().catch((error: Error) => {
    if (error.name !== "AbortError") throw error;
  });
  return {
    [Symbol.asyncDispose]: async () => {
      stopping.abort();
      await work;
    },
  };
}
