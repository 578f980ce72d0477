import { createHmac, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { listen } from "../db/announcement.ts";
import { openDatabase } from "../db/database.ts";
import { createApiToken } from "../src/api/callers/tokens.ts";
import { EVENTS_TOLD } from "../src/events/log.ts";
import { openCorpus } from "./corpus.ts";
import { benchRedis, openBenchDatabase } from "./databases.ts";
import { alternate, type Benchmark, median, ROUNDS } from "./measure.ts";
import { type ServerProcess, startServer } from "./processes.ts";
import { openStages } from "./reference/fresh.ts";

const SECRET = "bench-webhook-secret";
/** An address where nothing listens: the benchmark asks upstream nothing. */
const UPSTREAM = "http://127.0.0.1:9";
const TIMES = 40;
/** A process compiles more than it applies until it has applied some hundreds of deliveries. */
const WARM_UPS = 8;

export const benchmark: Benchmark = {
  about:
    "from the POST of a delivery to the answer of the API that shows it, against one HTTP round trip, one commit, one job of BullMQ and one read, each alone",
  async run() {
    const corpus = await openCorpus({ issues: 2_000, repositories: 1 });
    await using database = await openBenchDatabase(corpus.database);
    const redis = benchRedis();
    const db = openDatabase(database.url, { maxConnections: 1, applicationName: "bench token" });
    const token = await createApiToken(
      { db, clock: { now: () => new Date() } },
      { userId: corpus.userId, canWrite: true, hourlyLimit: 1_000_000_000 },
    ).finally(() => db.close());
    const env = {
      DATABASE_URL: database.url,
      REDIS_URL: redis.url,
      REDIS_PREFIX: redis.prefix,
      UPSTREAM_URL: UPSTREAM,
      UPSTREAM_TOKEN: "bench-token",
      WEBHOOK_SECRET: SECRET,
      PUBLIC_URL: UPSTREAM,
      LOG_LEVEL: "error",
      HOST: "127.0.0.1",
      PORT: "0",
    };
    await using web = await startServer("web-server.ts", env);
    await using worker = await startServer("apply-worker.ts", env);
    void worker;
    const bare = await startServer("reference/receive.ts", { WEBHOOK_SECRET: SECRET });
    await using references = new AsyncDisposableStack();
    references.use(bare);
    const fullName = corpus.repositories[0]?.fullName as string;
    // Polling would take the cores from the processes that are waited for.
    let tell = () => {};
    references.use(
      await listen(database.url, {
        onText: (text) => {
          if (text === EVENTS_TOLD) tell();
        },
        onLost: (error) => {
          throw error;
        },
      }),
    );
    const nextChange = () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      tell = resolve;
      return promise;
    };
    const headers = { authorization: `Bearer ${token}`, "user-agent": "bench" };
    const show = await openFreshness(web, fullName, headers, nextChange);
    const stages = references.use(await openStages({ bare, databaseUrl: database.url, redis, body: show.body }));
    const told: Record<string, number> = {};
    const measured = await alternate(
      {
        subject: () => medianOf(show.delivery),
        reference: async () => {
          let sum = 0;
          for (const [name, once] of Object.entries(stages.each)) {
            told[name] = await medianOf(once);
            sum += told[name];
          }
          return sum;
        },
        warmUps: WARM_UPS,
      },
      { unit: "ms", goal: { atMost: 2 } },
    );
    return { ...measured, notes: { ...told, ...show.took() } };
  },
};

async function medianOf(once: () => Promise<void>): Promise<number> {
  const figures: number[] = [];
  for (let time = 0; time < TIMES; time++) {
    const startedAt = performance.now();
    await once();
    figures.push(performance.now() - startedAt);
  }
  return median(figures);
}

/** Sends deliveries that give an issue another title, and asks for the issue once a change of it was announced. */
async function openFreshness(
  { url }: ServerProcess,
  fullName: string,
  headers: Record<string, string>,
  nextChange: () => Promise<void>,
): Promise<{ body: Buffer; delivery: () => Promise<void>; took: () => Record<string, number> }> {
  const read = async (path: string): Promise<Record<string, unknown>> => {
    const answer = await fetch(url + path, { headers });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`GET ${path}: ${answer.status} ${text}`);
    return JSON.parse(text) as Record<string, unknown>;
  };
  /** Milliseconds of each delivery, step by step. */
  const steps = { acknowledged: [] as number[], announced: [] as number[], read: [] as number[] };
  const path = `/repos/${fullName}/issues/1`;
  const issue = await read(path);
  const repository = await read(`/repos/${fullName}`);
  let moment = Date.now();
  const bodyOf = (title: string) => {
    // Each is a second later than the one before, so that none ties with another.
    moment += 1_000;
    const updated_at = new Date(moment).toISOString().replace(/\.\d+Z$/, "Z");
    return Buffer.from(
      JSON.stringify({ action: "edited", issue: { ...issue, title, updated_at }, repository, sender: issue.user }),
    );
  };
  return {
    body: bodyOf("first"),
    delivery: async () => {
      const title = randomUUID();
      const body = bodyOf(title);
      const changed = nextChange();
      const sentAt = performance.now();
      const answer = await fetch(`${url}/webhooks`, {
        method: "POST",
        body,
        headers: {
          "content-type": "application/json",
          "x-github-event": "issues",
          "x-github-delivery": title,
          "x-github-hook-id": "1",
          "x-hub-signature-256": `sha256=${createHmac("sha256", SECRET).update(body).digest("hex")}`,
        },
      });
      if (answer.status !== 202) throw new Error(`POST /webhooks: ${answer.status} ${await answer.text()}`);
      await answer.arrayBuffer();
      const acknowledgedAt = performance.now();
      await Promise.race([changed, sleep(30_000, undefined, { ref: false })]);
      const announcedAt = performance.now();
      if ((await read(path)).title !== title) throw new Error("What was announced is not shown");
      steps.acknowledged.push(acknowledgedAt - sentAt);
      steps.announced.push(announcedAt - acknowledgedAt);
      steps.read.push(performance.now() - announcedAt);
    },
    took: () => ({
      acknowledgedMs: median(steps.acknowledged.slice(-ROUNDS * TIMES)),
      thenAnnouncedMs: median(steps.announced.slice(-ROUNDS * TIMES)),
      thenReadMs: median(steps.read.slice(-ROUNDS * TIMES)),
    }),
  };
}
