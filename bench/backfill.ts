import { availableParallelism } from "node:os";
import { sql } from "../db/sql.ts";
import { addSelections, resolveSelections } from "../src/sync/following/selection.ts";
import { type Exchange, openTap } from "../test/support/upstream-tap.ts";
import { postgresCpuSeconds } from "./applying.ts";
import { openBenchDatabase } from "./databases.ts";
import { openMirror, waitFor } from "./history.ts";
import { alternate, type Benchmark, median } from "./measure.ts";
import { type ServerProcess, startServer } from "./processes.ts";
import { fetchPages } from "./reference/backfill.ts";
import { repositoriesAt } from "./upstream.ts";

/** `TAIN_LARGE=1`: 40,000 issues and pull requests. */
const SIZE =
  process.env.TAIN_LARGE === "1"
    ? { REPOSITORIES: "4", ISSUES: "30000", PULLS: "10000" }
    : { REPOSITORIES: "4", ISSUES: "1500", PULLS: "500" };
/** A worker process copies this many repositories at once. */
const AT_ONCE = 2;

export const benchmark: Benchmark = {
  about:
    "resources copied per second from a simulator on the same machine, against fetching the same pages with undici and throwing them away",
  async run() {
    await using upstream = await startServer("simulator-server.ts", SIZE);
    const { pages, resources } = await recordPages(upstream);
    const copies: Copied[] = [];
    const fetches: number[] = [];
    const measured = await alternate(
      {
        subject: async () => {
          const copied = await copy(upstream, upstream.url);
          copies.push(copied);
          return resources / copied.seconds;
        },
        reference: async () => {
          const before = await upstream.cpuSeconds();
          const seconds = await fetchPages(upstream.url, pages, AT_ONCE);
          fetches.push((await upstream.cpuSeconds()) - before);
          return resources / seconds;
        },
      },
      { unit: "resources/s", goal: { atLeast: 0.6 } },
    );
    const microsPerPage = (seconds: number[]) => Math.round((median(seconds) / pages.length) * 1e6);
    const [worker, postgres, simulator] = [
      microsPerPage(copies.map((one) => one.workerSeconds)),
      microsPerPage(copies.map((one) => one.postgresSeconds)),
      microsPerPage(copies.map((one) => one.simulatorSeconds)),
    ];
    const cores = availableParallelism();
    return {
      ...measured,
      notes: {
        resources,
        pages: pages.length,
        workerMicrosPerPage: worker,
        postgresMicrosPerPage: postgres,
        simulatorMicrosPerPage: simulator,
        referenceSimulatorMicrosPerPage: microsPerPage(fetches),
        // The rate if all cores did nothing else.
        mostPerSecond: Math.round((cores * 1e6 * resources) / pages.length / (worker + postgres + simulator)),
      },
    };
  },
};

interface Copied {
  seconds: number;
  resources: number;
  /** CPU time of the process that copies, of the server processes of Postgres, and of upstream. */
  workerSeconds: number;
  postgresSeconds: number;
  simulatorSeconds: number;
}

/** The pages of resources that a first copy reads, and how many resources they hold. */
async function recordPages(upstream: ServerProcess): Promise<{ pages: Exchange[]; resources: number }> {
  await using tap = await openTap(upstream.url);
  const { resources } = await copy(upstream, tap.url);
  const pages = tap.exchanges.filter(
    ({ status, path, body }) => status === 200 && (/[?&]per_page=/.test(path) || body.includes("pullRequests")),
  );
  return { pages, resources };
}

/** The time from knowing the repositories to the end of their copies. */
async function copy(upstream: ServerProcess, url: string): Promise<Copied> {
  await using database = await openBenchDatabase();
  await using mirror = await openMirror(database, { url }, "backfill");
  const { ctx } = mirror;
  await addSelections(
    ctx,
    (await repositoriesAt(url)).map(({ fullName }) => fullName),
  );
  await resolveSelections(ctx);
  const upstreamBefore = await upstream.cpuSeconds();
  const postgresBefore = await postgresCpuSeconds(ctx);
  const before = process.cpuUsage();
  const startedAt = performance.now();
  await using workers = await mirror.work();
  void workers;
  await waitFor(ctx, "select count(*)::int as left from repository_syncs where state <> 'live'", 20);
  const seconds = (performance.now() - startedAt) / 1_000;
  const { user, system } = process.cpuUsage(before);
  const postgresSeconds = (await postgresCpuSeconds(ctx)) - postgresBefore;
  const simulatorSeconds = (await upstream.cpuSeconds()) - upstreamBefore;
  const rows = await ctx.db.query<{ resources: number }>(sql`
    select ((select count(*) from labels) + (select count(*) from milestones) + (select count(*) from issues)
      + (select count(*) from pull_requests) + (select count(*) from issue_comments) + (select count(*)
      from pull_request_reviews)
      + (select count(*) from pull_request_review_comments))::int as resources`);
  return {
    seconds,
    resources: rows[0]?.resources ?? 0,
    workerSeconds: (user + system) / 1e6,
    postgresSeconds,
    simulatorSeconds,
  };
}
