/**
 * A mirror's eight processes are at four sites of a network, with Postgres and Redis at two more. Links between the
 * sites are cut and healed, while callers read at both web processes. In the end all links are healed, and the mirror
 * must be equal to upstream.
 */
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { migrate } from "../../db/migrate.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { type Context, openContext } from "../../src/context.ts";
import type { Simulator } from "../../src/simulator/control/running.ts";
import { wholeState } from "../../src/simulator/control/state.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { callerOf } from "../../src/simulator/quota/quota.ts";
import { openSimulator } from "../../src/simulator/simulator.ts";
import { openView } from "../../src/simulator/views/view.ts";
import { seededRandom } from "../../src/simulator/world/random.ts";
import type { Repository } from "../../src/simulator/world/records.ts";
import { World } from "../../src/simulator/world/world.ts";
import { fetchAndStoreViewer } from "../../src/sync/following/viewer.ts";
import { fingerprint } from "../../src/upstream/credentials/credentials.ts";
import { placeRepositoryHook } from "../../src/upstream/hooks/hooks.ts";
import { quotaReport } from "../../src/upstream/quota/report.ts";
import { openBalancer } from "../support/balancer.ts";
import { testConfig, testEnvironment } from "../support/config.ts";
import { type Network, openNetwork } from "../support/network.ts";
import { openNetworkStores } from "../support/network-stores.ts";
import { until } from "../support/patience.ts";
import type { SharedClock } from "./clock.ts";
import { type Cut, cutsAt, cutsOf, SITES } from "./cuts.ts";
import { Ending, type Found, HangError, PATIENCE_MS } from "./ending.ts";
import { History } from "./history.ts";
import { Mirror, SETTINGS, type Site } from "./mirror.ts";
import { type Reads, read } from "./readers.ts";
import type { Part } from "./schedule.ts";

export interface PartitionsOptions {
  seed: number;
  /** The real time in which links are cut and healed. */
  forMs: number;
  clock: SharedClock;
  /** The folder of the sources that run. */
  root: string;
  /** The folder for the plan and the logs of all processes. */
  directory: string;
  /** Holds what is opened. The caller closes it, also when the simulation is interrupted. */
  resources: AsyncDisposableStack;
}

/** The outcome of a simulation of partitions. */
export interface PartitionsOutcome extends Found, Reads {
  seed: number;
  processes: number;
  cuts: number;
  /** For how much of the time at least one link was cut, in percent. */
  cutPercent: number;
  deliveries: number;
  /** Webhooks that did not reach the mirror. */
  failedDeliveries: number;
  requests: number;
  /** How much of the quota was used while links were cut, in percent. */
  usedPercent: number;
  /** Requests that upstream refused because a limit was exceeded. */
  refused: number;
  /** By how many requests the mirror overstated the quota that was left, at most. */
  overstated: number;
  crashes: string[];
  errors: Record<string, number>;
  hang: string | null;
  seconds: number;
}

export function haveFailed({ drift, missed, crashes, hang, older, refused, overstated }: PartitionsOutcome): boolean {
  return drift + missed + older + refused + overstated > 0 || crashes.length > 0 || hang !== null;
}

/** The processes of each part, as `Procfile` names them. */
const PARTS: Readonly<Record<Part, number>> = { web: 2, scheduler: 2, worker: 4 };
const PLACES: Readonly<Record<Part, readonly string[]>> = {
  web: ["north", "east"],
  scheduler: ["south", "west"],
  worker: SITES,
};
const PORT = 8_080;
const REPOSITORIES = 4;
const LOGINS = ["mirror-owner", "mirror-helper"];
/** The hourly limit of each token. Ten minutes use most of it up. */
const LIMIT = 400;
const TICK_MS = 500;
/** How many callers read at each web process. */
const READERS = 2;
const AUDIT_PERIOD_MS = 24 * 3_600_000;

export async function playPartitions(options: PartitionsOptions): Promise<PartitionsOutcome> {
  const { seed, clock, directory, forMs, resources } = options;
  const began = performance.now();
  mkdirSync(directory, { recursive: true });
  const cuts = cutsOf({ seed, forMs });
  writeFileSync(join(directory, "cuts.jsonl"), cuts.map((cut) => `${JSON.stringify(cut)}\n`).join(""));
  const network = resources.use(await openNetwork([...SITES, "postgres", "redis"], ["upstream", "callers"]));
  const stores = resources.use(await openNetworkStores(network, { postgres: "postgres", redis: "redis" }));
  await migrate(stores.postgresUrl);
  const world = new World({ seed });
  const simulator = resources.use(await openSimulator({ world, seed, host: network.addressOf("upstream") }));
  const { repositories } = generateWorld(world, {
    seed,
    repositories: REPOSITORIES,
    issues: 60,
    pulls: 20,
    people: 12,
  });
  const tokens = LOGINS.map((login, index) => {
    const token = `ghp_${seededRandom(seed * 31 + index).hex(36)}`;
    simulator.tokens.create({ token, login, repositories: "all", write: true, limit: LIMIT });
    return token;
  });
  const balancer = resources.use(await openBalancer({ from: network.addressOf("upstream") }));
  const webs = PLACES.web.map((site) => `http://${network.addressOf(site)}:${PORT}`);
  balancer.send(...webs);
  const redis = { url: stores.redisUrl, prefix: "{partitions}" };
  const places = { database: stores.postgresUrl, redis, upstream: simulator.url };
  const env = {
    UPSTREAM_TOKEN: tokens.join(),
    WEBHOOK_SECRET: "simulation-secret",
    REPOSITORIES: repositories.map((one) => world.fullName(one)).join(),
    HOST: "0.0.0.0",
    PORT: String(PORT),
    PUBLIC_URL: balancer.url,
    ...SETTINGS,
    AUDIT_PERIOD: `${AUDIT_PERIOD_MS / 1_000}s`,
    RATE_LIMIT_USER: "0",
    RATE_LIMIT_GRAPHQL: "0",
  };
  const mirror = resources.use(
    new Mirror({
      root: options.root,
      env: testEnvironment(places, env),
      clock: clock.path,
      parts: PARTS,
      siteOf: (part, index) => siteOf(network, PLACES[part][index]),
      skewOf: () => 0,
      logDirectory: directory,
    }),
  );
  const ctx = await openContext(testConfig(places, { ...env, LOG_LEVEL: "silent" }), resources, { name: "partitions" });
  const ending = new Ending({
    ctx,
    simulator: compared(simulator),
    clock,
    repositories,
    auditPeriodMs: AUDIT_PERIOD_MS,
    ended: () => {},
  });
  const found: Found = { drift: 0, missed: 0, untold: 0, unfollowed: 0, differences: [] };
  const reads: Reads = { reads: 0, answered: 0, older: 0, unknown: 0, complaints: [] };
  let overstated = 0;
  let usedPercent = 0;
  let hang: string | null = null;
  try {
    await mirror.start();
    for (const repository of repositories) await hook(ctx, simulator, repository);
    await ending.until("copy", () => ending.notCopied(), 1_000);
    const token = await createApiToken(ctx, { userId: await fetchAndStoreViewer(ctx), canWrite: false });
    // A process that starts asks who owns its tokens before it knows which of them share a quota. The headers of the
    // next answer tell the mirror what these requests cost.
    await until(
      "the budget knows what the start has cost",
      async () => (await overstatement(ctx, simulator, tokens)) === 0,
    );
    const history = new History(repositories);
    const done = new AbortController();
    const readers = webs.flatMap((url, web) =>
      Array.from({ length: READERS }, (_, index) => {
        const random = seededRandom(seed * 101 + web * READERS + index);
        return read({ url, token, random, simulator, repositories, history, seen: reads, done: done.signal });
      }),
    );
    try {
      overstated = await storm({ network, cuts, forMs, simulator, history, ctx, tokens, seed });
      const used = tokens.map((token) => stateOf(simulator, token).used);
      usedPercent = Math.round((100 * used.reduce((sum, one) => sum + one, 0)) / (tokens.length * LIMIT));
    } finally {
      await network.cut([]);
      done.abort();
      await Promise.all(readers);
    }
    await mirror.start();
    await simulator.quiet();
    if (ctx.redis.status !== "ready") await once(ctx.redis, "ready", { signal: AbortSignal.timeout(PATIENCE_MS) });
    await ending.judge(found, () => {});
  } catch (error) {
    if (!(error instanceof HangError)) throw error;
    hang = error.message;
  }
  const { requests, primaryLimited, secondaryLimited } = simulator.meter.read();
  return {
    seed,
    processes: Object.values(PARTS).reduce((sum, count) => sum + count, 0),
    cuts: cuts.length,
    cutPercent: cutPercent(cuts, forMs),
    deliveries: simulator.webhooks.tally.sent,
    failedDeliveries: simulator.webhooks.tally.failed,
    requests,
    usedPercent,
    refused: primaryLimited + secondaryLimited,
    overstated,
    ...reads,
    ...found,
    crashes: mirror.crashes,
    errors: mirror.errors,
    hang,
    seconds: Math.round((performance.now() - began) / 1_000),
  };
}

/** Upstream tells its state to loopback addresses alone, so this process reads the state. */
function compared(simulator: Simulator) {
  const { world, url, htmlUrl } = simulator;
  const stateOf = (id: string) => {
    const view = openView({ world, apiUrl: url, htmlUrl, roleOf: () => "admin" });
    const repository = world.repositories.get(Number(id));
    return [...wholeState(view, repository ? [repository] : [])].join("");
  };
  return { world, url, stateOf, quiet: () => simulator.quiet() };
}

function siteOf(network: Network, site = ""): Site {
  return { within: (command, ...args) => network.within(site, command, ...args), env: {} };
}

async function hook(ctx: Context, simulator: Simulator, repository: Repository): Promise<void> {
  await placeRepositoryHook(ctx.upstream, {
    repository: { id: repository.id, fullName: simulator.world.fullName(repository) },
    url: `${ctx.config.publicUrl}/webhooks`,
    secret: ctx.config.webhookSecrets[0] ?? "",
    events: ["*"],
  });
}

interface Storm {
  network: Network;
  cuts: readonly Cut[];
  forMs: number;
  simulator: Simulator;
  history: History;
  ctx: Context;
  tokens: readonly string[];
  seed: number;
}

/** Cuts and heals links while upstream changes. Answers by how much the mirror overstated its quota. */
async function storm({ network, cuts, forMs, simulator, history, ctx, tokens, seed }: Storm): Promise<number> {
  const live = simulator.startLive({ ratePerSecond: 0, seed });
  const startedAt = performance.now();
  let held = "";
  let overstated = 0;
  for (let atMs = 0; atMs < forMs; atMs = performance.now() - startedAt) {
    const holding = cutsAt(cuts, atMs);
    const names = holding.map(({ name }) => name).join();
    if (names !== held) await network.cut(holding.flatMap(({ ways }) => ways));
    held = names;
    const deed = live.step();
    const [owner = "", name = ""] = deed?.repository?.split("/") ?? [];
    const changed = simulator.world.repositoryByName(owner, name)?.repository;
    // The deed may have changed other issues of its repository as well.
    for (const issue of changed?.rows.byNumber ?? []) if (issue) history.note(issue, Date.now());
    overstated = Math.max(overstated, await overstatement(ctx, simulator, tokens));
    await delay(TICK_MS);
  }
  live.stop();
  return overstated;
}

/**
 * By how much the mirror's budget is above what upstream says. A lease has left the budget before its request reaches
 * upstream, so the budget should only ever be below.
 */
async function overstatement(ctx: Context, simulator: Simulator, tokens: readonly string[]): Promise<number> {
  const buckets = ["core", "graphql"] as const;
  const truth = tokens.flatMap((token) =>
    buckets.map((bucket) => ({ credential: fingerprint(token), bucket, ...stateOf(simulator, token, bucket) })),
  );
  const reported = await quotaReport(ctx);
  return Math.max(
    0,
    ...truth.map(({ credential, bucket, remaining, reset }) => {
      const believed = reported.find((one) => one.credential === credential && one.bucket === bucket);
      const isSameWindow = believed?.resetAt && Math.abs(believed.resetAt.getTime() - reset * 1_000) < 10_000;
      return isSameWindow && believed.remaining !== null ? believed.remaining - remaining : 0;
    }),
  );
}

function stateOf(simulator: Simulator, token = "", bucket: "core" | "graphql" = "core") {
  const known = simulator.tokens.find(token);
  if (!known) throw new Error("Upstream does not know the mirror's token");
  return simulator.quota.state(callerOf(known, ""), bucket);
}

function cutPercent(cuts: readonly Cut[], forMs: number): number {
  let cutMs = 0;
  for (let atMs = 0; atMs < forMs; atMs += 100) if (cutsAt(cuts, atMs).length > 0) cutMs += 100;
  return Math.round((100 * cutMs) / forMs);
}
