import { setTimeout as delay } from "node:timers/promises";
import { inspect } from "node:util";
import { sql } from "../db/sql.ts";
import { createApiToken } from "../src/api/callers/tokens.ts";
import type { Context } from "../src/context.ts";
import { QUEUE_NAMES, type Queues } from "../src/queues/queues.ts";
import { fetchAndStoreViewer } from "../src/sync/following/viewer.ts";
import { driftOf } from "./applying.ts";
import { openBenchDatabase } from "./databases.ts";
import { freePort } from "./free-port.ts";
import { openMirror } from "./history.ts";
import type { Trial } from "./measure.ts";
import { copyOn, mirrorOne, untilCopied } from "./mixed/copies.ts";
import { type Sent, sendOn } from "./mixed/deliveries.ts";
import { probeFreshness } from "./mixed/freshness.ts";
import { Problems } from "./mixed/problems.ts";
import { type ReadRepository, type Reads, readOn } from "./mixed/readers.ts";
import { course, sampleOn } from "./mixed/samples.ts";
import { startProgram, startServer } from "./processes.ts";
import { addTokens, control, repositoriesAt, UPSTREAM_HEADERS } from "./upstream.ts";

const { env } = process;
const SECONDS = Number(env.SECONDS ?? 60);
const DELIVERIES = Number(env.DELIVERIES ?? 200);
const CHANGES = Number(env.CHANGES ?? 100);
const READERS = Number(env.READERS ?? 32);
const READS = Number(env.READS ?? 8);
const PROBES = Number(env.PROBES ?? 4);
/** Before what is measured: code is compiled, caches and pools fill. */
const WARM_UP_SECONDS = Number(env.WARM_UP_SECONDS ?? Math.min(30, SECONDS / 4));
/** Upstream's pace holds for each account: one alone would be asked about more doubts in a minute than it answers. */
const TOKENS = Number(env.TOKENS ?? 8);
/** Mirrored before the load begins; as many again are copied meanwhile. */
const REPOSITORIES = 12;
const ISSUES = Number(env.ISSUES ?? 4_800);
const SIZE = {
  REPOSITORIES: String(REPOSITORIES * 2),
  ISSUES: String(ISSUES),
  PULLS: String(Math.ceil(ISSUES / 3)),
};
const LONGEST_REST_MS = 60_000;
const PROGRAMS = { web: "../src/web.ts", worker: "../workers/main.ts", scheduler: "../workers/scheduler.ts" };

export const trial: Trial = {
  about: `${SECONDS} s of deliveries (${DELIVERIES}/s), reads from ${READERS} connections (${READS}/s each), first copies and a living upstream at once, by the whole tree of processes`,
  async run() {
    const problems = new Problems();
    await using upstream = await startServer("simulator-server.ts", SIZE);
    await using database = await openBenchDatabase();
    const tokens = await addTokens(upstream.url, TOKENS - 1);
    await using mirror = await openMirror(database, upstream, "mixed");
    const { ctx } = mirror;
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const webhooks = `${url}/webhooks`;
    const settings = {
      ...mirror.env,
      PORT: String(port),
      UPSTREAM_TOKEN: tokens,
      LOG_LEVEL: "warn",
    };
    await using programs = new AsyncDisposableStack();
    const pids: Record<string, number> = {};
    const isStopping = new AbortController();
    for (const [name, file] of Object.entries(PROGRAMS)) {
      const program = programs.use(startProgram(file, settings, (line) => noteLine(problems, name, line)));
      pids[name] = program.pid;
      void program.ended.then((how) => {
        if (!isStopping.signal.aborted) problems.add(`${name} ended`, how);
      });
    }
    await untilReady(url);
    const all = await readRepositories(upstream.url);
    const nameOf = async (id: number) => {
      const answer = await fetch(`${upstream.url}/repositories/${id}`, { headers: UPSTREAM_HEADERS });
      return ((await answer.json()) as { full_name: string }).full_name;
    };
    const mirrored = all.slice(0, REPOSITORIES);
    for (const { fullName } of mirrored) await mirrorOne(ctx, webhooks, fullName);
    await untilCopied(ctx);
    const token = await createApiToken(ctx, {
      userId: await fetchAndStoreViewer(ctx),
      canWrite: false,
      hourlyLimit: 1e9,
    });
    const parties = {
      mirror: { url, headers: { authorization: `Bearer ${token}`, "user-agent": "bench" } },
      upstream: { url: upstream.url, headers: UPSTREAM_HEADERS },
      repositories: mirrored,
      problems,
    };

    // What upstream sends to new webhooks arrives before the load, and is no part of it.
    await control(upstream.url, "POST", "quiet");
    const over = new AbortController();
    const { signal } = over;
    const startedAt = new Date();
    // A failure of this program is reported with the others, and does not hide them.
    const kept = <T>(name: string, work: Promise<T>, otherwise: T) =>
      work.catch((error: Error) => {
        problems.add(`${name} ended early`, inspect(error));
        return otherwise;
      });
    const sending = kept(
      "sending",
      sendOn({
        ctx,
        upstream: upstream.url,
        webhooks,
        secret: ctx.config.webhookSecrets[0] as string,
        perSecond: DELIVERIES,
        changesPerSecond: CHANGES,
        problems,
        signal,
      }),
      { live: 0, repeated: 0 },
    );
    const ids = all.slice(REPOSITORIES).map(({ id }) => id);
    const copying = kept("copying", copyOn({ ctx, webhooks, ids, nameOf, signal }), { first: 0, again: 0 });
    // Reads before everything is warm count for errors alone.
    const warmUp = AbortSignal.timeout(WARM_UP_SECONDS * 1_000);
    const readers = { ...parties, connections: READERS, perSecond: READS };
    await Promise.all([
      readOn({ ...readers, signal: warmUp }),
      kept("probing", probeFreshness({ ...parties, perSecond: PROBES, signal: warmUp }), []),
    ]);
    const warmAt = new Date();
    const probing = kept("probing", probeFreshness({ ...parties, perSecond: PROBES, signal }), []);
    const noSamples = { waiting: new Map(), residentBytes: new Map() };
    const sampling = kept("sampling", sampleOn(ctx, { ...pids, upstream: upstream.pid }, signal), noSamples);
    const reading = readOn({ ...readers, signal });
    await delay(startedAt.getTime() + SECONDS * 1_000 - Date.now());
    over.abort();
    const [reads, probes, samples] = await Promise.all([reading, probing, sampling]);
    const [sent, copies] = await Promise.all([sending, copying]);
    const measuredSeconds = SECONDS - WARM_UP_SECONDS;

    await untilSettled(ctx, problems);
    const deliveries = await accountFor(ctx, sent, startedAt, problems);
    await noteFailedJobs(ctx, problems);
    isStopping.abort();
    await programs.disposeAsync();
    const drift = await driftOf(database, { simulator: upstream });
    for (const difference of drift) console.error(difference);
    if (drift.length > 0) problems.add("differs from upstream in the end", drift[0] as string, drift.length);
    return {
      figures: {
        seconds: SECONDS,
        settings: {
          deliveriesPerSecond: DELIVERIES,
          changesPerSecond: CHANGES,
          readers: READERS,
          readsPerSecond: READS,
          tokens: TOKENS,
        },
        errors: problems.counts,
        deliveries,
        copies,
        reads: readFigures(reads, measuredSeconds),
        freshnessMs: { shown: spread(probes), settled: await settledMs(ctx, warmAt) },
        waiting: Object.fromEntries([...samples.waiting].map(([name, figures]) => [name, course(figures)])),
        residentMiB: Object.fromEntries(
          [...samples.residentBytes].map(([name, figures]) => [name, course(figures, 2 ** 20)]),
        ),
      },
      problems: problems.sentences,
    };
  },
};

async function untilReady(url: string): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    const answer = await fetch(`${url}/-/ready`).catch(() => null);
    if (answer?.ok) return;
    if (attempt > 300) throw new Error(`${url} was not ready within a minute`);
    await delay(200);
  }
}

/** All that are no forks, with the number of the newest issue of each. */
async function readRepositories(url: string): Promise<ReadRepository[]> {
  const listed = await repositoriesAt(url);
  return await Promise.all(
    listed.map(async ({ id, fullName }) => {
      const path = `/repos/${fullName}/issues?state=all&per_page=1`;
      const answer = await fetch(url + path, { headers: UPSTREAM_HEADERS });
      if (!answer.ok) throw new Error(`GET ${path}: ${answer.status} ${await answer.text()}`);
      const [newest] = (await answer.json()) as { number: number }[];
      return { id, fullName, issues: newest?.number ?? 1 };
    }),
  );
}

/** A process that warns has something to say; only an error is a problem. */
function noteLine(problems: Problems, name: string, line: string): void {
  console.error(`${name}: ${line}`);
  try {
    const { level, msg } = JSON.parse(line) as { level: number; msg: string };
    if (level >= 50) problems.add(`${name} logs: ${msg}`, line);
  } catch {
    problems.add(`${name} says`, line);
  }
}

async function untilSettled(ctx: Context, problems: Problems): Promise<void> {
  const deadline = Date.now() + LONGEST_REST_MS;
  for (;;) {
    const rows = await ctx.db.query<{ left: number }>(sql`
      select count(*)::int as left from deliveries where status = 'pending'`);
    const left = rows[0]?.left ?? 0;
    if (left === 0) return;
    if (Date.now() > deadline)
      return problems.add("deliveries that stay pending", `${left} after a minute of rest`, left);
    await delay(200);
  }
}

/** Counts the deliveries since then by what became of them, and notes what is missing as a problem. */
async function accountFor(ctx: Context, sent: Sent, since: Date, problems: Problems) {
  const rows = await ctx.db.query<{ status: string; deliveries: number; reason: string }>(sql`
    select status, count(*)::int as deliveries, min(reason) as reason from deliveries
      where received_at >= ${since} and not is_made group by status`);
  const counts = Object.fromEntries(rows.map(({ status, deliveries }) => [status, deliveries]));
  const { pending = 0, applied = 0, ignored = 0, failed = 0 } = counts;
  const lost = sent.live + sent.repeated - pending - applied - ignored - failed;
  if (lost !== 0)
    problems.add("lost deliveries", `${JSON.stringify(sent)} and in the inbox ${JSON.stringify(counts)}`, lost);
  if (failed > 0)
    problems.add("failed deliveries", rows.find(({ status }) => status === "failed")?.reason ?? "", failed);
  return { ...sent, applied, ignored, failed, pending, lost };
}

async function noteFailedJobs(ctx: Context, problems: Problems): Promise<void> {
  for (const [key, name] of Object.entries(QUEUE_NAMES)) {
    const failed = await ctx.queues[key as keyof Queues].getFailed();
    for (const job of failed) problems.add(`failed job of ${name}`, job.failedReason);
  }
}

/** The time from receipt to settling, for all deliveries since then. */
async function settledMs(ctx: Context, since: Date) {
  const rows = await ctx.db.query<{ median: number; p99: number; most: number }>(sql`
    select percentile_cont(0.5) within group (order by ms) as median, percentile_cont(0.99) within group (order by ms) as p99,
      max(ms) as most
      from (select extract(epoch from settled_at - received_at)::float8 * 1000 as ms from deliveries
        where received_at >= ${since} and settled_at is not null) settled`);
  const { median = 0, p99 = 0, most = 0 } = rows[0] ?? {};
  return { median: rounded(median), p99: rounded(p99), most: rounded(most) };
}

function readFigures({ latencies, statuses }: Reads, seconds: number) {
  const all = Object.values(latencies).flat();
  return {
    perSecond: rounded(all.length / seconds),
    statuses,
    latencyMs: {
      all: spread(all),
      ...Object.fromEntries(Object.entries(latencies).map(([kind, some]) => [kind, spread(some)])),
    },
  };
}

function spread(figures: readonly number[]) {
  const sorted = Float64Array.from(figures).sort();
  const at = (part: number) =>
    rounded(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN);
  return { count: sorted.length, median: at(0.5), p99: at(0.99), most: at(1) };
}

function rounded(figure: number): number {
  return Number(figure.toFixed(1));
}
