import { createHmac, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { openDatabase } from "../db/database.ts";
import { createApiToken } from "../src/api/callers/tokens.ts";
import { parseConfig } from "../src/config.ts";
import { createTarget, type Scope } from "../src/events/target.ts";
import { postgresCpuSeconds } from "./applying.ts";
import { openCorpus } from "./corpus.ts";
import { benchRedis, openBenchDatabase } from "./databases.ts";
import { alternate, type Benchmark, comparison, type Measured, median, ROUNDS } from "./measure.ts";
import { cpuSecondsOf, startProgram, startServer } from "./processes.ts";
import { openStages } from "./reference/fresh.ts";

const SECRET = "bench-webhook-secret";
/** An address where nothing listens: the benchmark asks upstream nothing. */
const UPSTREAM = "http://127.0.0.1:9";
const TARGETS = 50;
const TIMES = 40;
/** A process compiles more than it applies until it has applied some hundreds of deliveries. */
const WARM_UPS = 8;
const PER_SECOND = 100;
const SECONDS = Number(process.env.SECONDS ?? 5);
/** Webhooks that arrive at once. Every target hears of each. */
const BURST = 20;
const GIVEN_UP_MS = 120_000;

export const benchmark: Benchmark = {
  about:
    "from the POST of an upstream's webhook to that of a target, which is one of 50: at rest against two HTTP round trips, one commit and two jobs of BullMQ, each alone; and p99 at 100 webhooks a second against the median at rest",
  run,
};

async function run(): Promise<Measured[]> {
  const corpus = await openCorpus({ issues: 2_000, repositories: TARGETS });
  await using database = await openBenchDatabase(corpus.database);
  const redis = benchRedis();
  const env = {
    DATABASE_URL: database.url,
    REDIS_URL: redis.url,
    REDIS_PREFIX: redis.prefix,
    UPSTREAM_URL: UPSTREAM,
    UPSTREAM_TOKEN: "bench-token",
    WEBHOOK_SECRET: SECRET,
    PUBLIC_URL: UPSTREAM,
    TARGETS_ALLOWED: "127.0.0.1",
    LOG_LEVEL: "error",
    HOST: "127.0.0.1",
    PORT: "0",
  };
  await using resources = new AsyncDisposableStack();
  const target = resources.use(await openTarget());
  const db = openDatabase(database.url, { maxConnections: 1, applicationName: "bench targets" });
  const ctx = { db, config: parseConfig(env), clock: { now: () => new Date() } };
  const addTarget = (scope: Scope) =>
    createTarget(ctx, {
      ...{ scope, madeBy: "operator", url: `${target.url}/${scope.kind}`, contentType: "json", insecureSsl: false },
      ...{ secret: "a target's", events: ["*"], active: true, rewriteTo: null },
    });
  for (const { id } of corpus.repositories) await addTarget({ kind: "repository", id });
  const token = await createApiToken(ctx, { userId: corpus.userId, canWrite: true, hourlyLimit: 1_000_000_000 });
  const web = resources.use(await startServer("web-server.ts", env));
  const worker = resources.use(startProgram("../workers/main.ts", env));
  const cpuSeconds = async () => ({
    web: await cpuSecondsOf([web.pid]),
    worker: await cpuSecondsOf([worker.pid]),
    postgres: await postgresCpuSeconds(ctx),
  });
  const webhooks = await openWebhooks(web.url, corpus.repositories, token);
  const bare = resources.use(await startServer("reference/receive.ts", { WEBHOOK_SECRET: SECRET }));
  const stages = resources.use(await openStages({ bare, databaseUrl: database.url, redis, body: webhooks.first }));

  const told: Record<string, number> = {};
  const atRest: number[] = [];
  const idle = await alternate(
    {
      subject: async () => {
        const took: number[] = [];
        for (let time = 0; time < TIMES; time++) took.push(await target.after(webhooks.next()));
        atRest.push(...took);
        return median(took);
      },
      reference: async () => {
        for (const [name, once] of Object.entries(stages.each)) told[name] = await medianOf(once);
        const { roundTripMs = 0, commitMs = 0, jobMs = 0 } = told;
        return 2 * roundTripMs + commitMs + 2 * jobMs;
      },
      warmUps: WARM_UPS,
    },
    { part: "idle", unit: "ms", goal: { atMost: 10 } },
  );
  const rest = atRest.slice(-ROUNDS * TIMES);
  const [restMs, restP99] = [median(rest), percentile(rest, 0.99)];

  const rounds: [number, number][] = [];
  const loaded: number[] = [];
  await underLoad(() => target.after(webhooks.next()));
  const unloaded = await cpuSeconds();
  for (let round = 0; round < ROUNDS; round++) {
    const took = await underLoad(() => target.after(webhooks.next()));
    rounds.push([percentile(took, 0.99), restMs]);
    loaded.push(...took);
  }
  const busyCpu = microsOf(unloaded, await cpuSeconds(), loaded.length);
  const busy = comparison(rounds, { part: "busy", unit: "ms", goal: { atMost: 16.7 } });

  // Every target hears of everything: what the worker can send at most.
  for (let more = 0; more < TARGETS; more++) await addTarget({ kind: "everything", id: 0 });
  const [begunAt, cpuBefore, before] = [performance.now(), await cpuSeconds(), target.heard()];
  await Promise.all(Array.from({ length: BURST }, () => target.after(webhooks.next())));
  while (target.heard() < before + BURST * (TARGETS + 1)) {
    if (performance.now() - begunAt > GIVEN_UP_MS) throw new Error("A target has not heard all");
    await sleep(5);
  }
  const sentPerSecond = (BURST * (TARGETS + 1)) / ((performance.now() - begunAt) / 1_000);
  const sentCpu = microsOf(cpuBefore, await cpuSeconds(), BURST * (TARGETS + 1));
  await db.close();
  return [
    { ...idle, notes: { p50: restMs, p99: restP99, goalMs: 60, ...told } },
    {
      ...busy,
      notes: {
        ...{ p50: median(loaded), p99: percentile(loaded, 0.99), goalMs: 1_000 },
        ...{ perSecond: PER_SECOND, targets: TARGETS, mostSentPerSecond: Math.round(sentPerSecond) },
        ...{ workerMicros: sentCpu.worker, postgresMicros: sentCpu.postgres, busyMicros: busyCpu },
      },
    },
  ];
}

type Cpu = Record<"web" | "worker" | "postgres", number>;

/** CPU time per webhook, in microseconds. */
function microsOf(before: Cpu, after: Cpu, count: number): Cpu {
  const of = (process: keyof Cpu) => Math.round(((after[process] - before[process]) * 1e6) / count);
  return { web: of("web"), worker: of("worker"), postgres: of("postgres") };
}

/** Runs `once` at a steady pace, without waiting for earlier runs. Answers how long each took. */
async function underLoad(once: () => Promise<number>): Promise<number[]> {
  const begunAt = performance.now();
  const all: Promise<number>[] = [];
  for (let sent = 0; sent < PER_SECOND * SECONDS; sent++) {
    const waitMs = begunAt + (sent * 1_000) / PER_SECOND - performance.now();
    if (waitMs > 0) await sleep(waitMs);
    all.push(once());
  }
  return await Promise.all(all);
}

async function medianOf(once: () => Promise<void>): Promise<number> {
  const figures: number[] = [];
  for (let time = 0; time < TIMES; time++) {
    const startedAt = performance.now();
    await once();
    figures.push(performance.now() - startedAt);
  }
  return median(figures);
}

function percentile(figures: readonly number[], share: number): number {
  return [...figures].sort((a, b) => a - b)[Math.ceil(figures.length * share) - 1] ?? Number.NaN;
}

/** A webhook to send: the answer resolves once it is acknowledged. */
interface Webhook {
  guid: string;
  post: () => Promise<void>;
}

/** Webhooks that give an issue another title, each of another repository than the one before. */
async function openWebhooks(
  url: string,
  repositories: readonly { fullName: string }[],
  token: string,
): Promise<{ first: Buffer; next: () => Webhook }> {
  const read = async (path: string): Promise<Record<string, unknown>> => {
    const answer = await fetch(url + path, { headers: { authorization: `Bearer ${token}`, "user-agent": "bench" } });
    if (!answer.ok) throw new Error(`GET ${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as Record<string, unknown>;
  };
  const shown: { repository: Record<string, unknown>; issue: Record<string, unknown> }[] = [];
  for (const { fullName } of repositories)
    shown.push({ repository: await read(`/repos/${fullName}`), issue: await read(`/repos/${fullName}/issues/1`) });
  let moment = Date.now();
  let turn = 0;
  const bodyOf = (title: string) => {
    const { repository, issue } = shown[turn++ % shown.length] ?? {};
    // Each is a second later than the one before, so that none ties with another.
    moment += 1_000;
    const updated_at = new Date(moment).toISOString().replace(/\.\d+Z$/, "Z");
    return Buffer.from(
      JSON.stringify({ action: "edited", issue: { ...issue, title, updated_at }, repository, sender: issue?.user }),
    );
  };
  return {
    first: bodyOf("first"),
    next: () => {
      const guid = randomUUID();
      const body = bodyOf(guid);
      const signature = `sha256=${createHmac("sha256", SECRET).update(body).digest("hex")}`;
      return {
        guid,
        post: async () => {
          const answer = await fetch(`${url}/webhooks`, {
            method: "POST",
            body,
            headers: {
              "content-type": "application/json",
              "x-github-event": "issues",
              "x-github-delivery": guid,
              "x-github-hook-id": "1",
              "x-hub-signature-256": signature,
            },
          });
          if (answer.status !== 202) throw new Error(`POST /webhooks: ${answer.status} ${await answer.text()}`);
          await answer.arrayBuffer();
        },
      };
    },
  };
}

/** All targets: one server that says when an event arrives. */
async function openTarget(): Promise<
  { url: string; heard: () => number; after: (webhook: Webhook) => Promise<number> } & AsyncDisposable
> {
  const waiting = new Map<string, () => void>();
  let heard = 0;
  const server = createServer((request, reply) => {
    request.resume();
    request.once("end", () => {
      heard += 1;
      if (request.url === "/repository") waiting.get(String(request.headers["x-github-delivery"]))?.();
      reply.writeHead(202).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    heard: () => heard,
    /** Milliseconds from the webhook's POST until the repository's own target has it. */
    after: async ({ guid, post }) => {
      const arrived = Promise.withResolvers<void>();
      waiting.set(guid, arrived.resolve);
      const startedAt = performance.now();
      await post();
      const late = new AbortController();
      const isLate = sleep(GIVEN_UP_MS, true, { signal: late.signal }).catch(() => false);
      if (await Promise.race([arrived.promise.then(() => false), isLate])) throw new Error("A target was told nothing");
      const took = performance.now() - startedAt;
      late.abort();
      waiting.delete(guid);
      return took;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
