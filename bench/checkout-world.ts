import { createHash } from "node:crypto";
import { resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import type { Simulator } from "../src/simulator/control/running.ts";
import { generateWorld } from "../src/simulator/generate/generate.ts";
import { openSimulator } from "../src/simulator/simulator.ts";
import { benchRedis, type openBenchDatabase } from "./databases.ts";
import type { Place } from "./exchange-requests.ts";
import { startProgram } from "./processes.ts";

/** A small world, mirrored by the programs of one checkout, and that checkout's web process in front of it. */
export interface CheckoutWorld {
  /** Of the web process, without a trailing slash. */
  url: string;
  upstream: Simulator;
  database: pg.Client;
  /** Settings for further programs of the checkout. */
  env: NodeJS.ProcessEnv;
  place: Place;
}

/** How long after it was made the world is asked. */
export const ASKED_AFTER_MS = 3_000_000;

/** How long a checkout's workers may take to copy the world. */
const PATIENCE_MS = 300_000;

const TOKENS = { own: `tain_${"1".repeat(40)}`, reading: `tain_${"2".repeat(40)}`, upstreams: "upstreams-token" };
const MIRRORS_TOKEN = "bench-token";
const WEBHOOK_SECRET = "bench-webhook-secret";
const OPERATOR_TOKEN = "the-operators-token";

/**
 * @param of.startsAt when the world was made, in milliseconds
 * @param of.upstreamPort where upstream listens; 0: anywhere
 * @param of.webFlags Node's, for the web process
 */
export async function openCheckoutWorld(
  checkout: string,
  resources: AsyncDisposableStack,
  { startsAt, upstreamPort, webFlags = "" }: { startsAt: number; upstreamPort: number; webFlags?: string },
): Promise<CheckoutWorld> {
  const generatedAt = Date.now();
  let isRunning = false;
  const upstream = resources.use(
    await openSimulator({
      seed: 7,
      port: upstreamPort,
      clock: { now: () => startsAt + (isRunning ? Date.now() - generatedAt + ASKED_AFTER_MS : 0) },
      worldOptions: { mergeableDelayMs: 0 },
      tokens: [
        { token: MIRRORS_TOKEN, login: "mirror-owner", repositories: "all", write: true },
        { token: TOKENS.upstreams, login: "mirror-owner", repositories: "all", write: true },
      ],
    }),
  );
  generateWorld(upstream.world, { seed: 7, repositories: 3, issues: 40, pulls: 10 });
  isRunning = true;
  const theirs = (await import(resolve(checkout, "bench", "databases.ts"))) as {
    openBenchDatabase: typeof openBenchDatabase;
  };
  const filled = resources.use(await theirs.openBenchDatabase());
  const redis = benchRedis();
  const env = {
    DATABASE_URL: filled.url,
    REDIS_URL: redis.url,
    REDIS_PREFIX: redis.prefix,
    UPSTREAM_URL: upstream.url,
    UPSTREAM_TOKEN: MIRRORS_TOKEN,
    WEBHOOK_SECRET,
    OPERATOR_TOKEN,
    TRUSTED_PROXIES: "loopback",
    PASS_THROUGH: "on",
    RATE_LIMIT_ANONYMOUS: "100000",
    // What says how old an answer may be, in this version and in those before it.
    CATCH_UP_INTERVAL: "8h",
    STALE_AFTER: "1d",
    HOST: "127.0.0.1",
    PORT: "0",
  };
  const database = new pg.Client({ connectionString: filled.url });
  await database.connect();
  resources.defer(() => database.end());
  const place = await mirror(checkout, { env, upstream, database });

  const { promise: listening, resolve: listens } = Promise.withResolvers<string>();
  resources.use(
    startProgram(resolve(checkout, "src", "web.ts"), { ...env, NODE_OPTIONS: webFlags }, (line) => {
      const { msg, address, level } = JSON.parse(line) as { msg: string; address?: string; level: number };
      if (msg === "Listening" && address) listens(address);
      else if (level >= 50) console.error(line);
    }),
  );
  return { url: await listening, upstream, database, env, place };
}

/** Copies the world by the checkout's own workers. */
async function mirror(
  checkout: string,
  { env, upstream, database }: Pick<CheckoutWorld, "env" | "upstream" | "database">,
): Promise<Place> {
  await using workers = startProgram(resolve(checkout, "workers", "main.ts"), { ...env, LOG_LEVEL: "error" });
  void workers;
  const repositories = [...upstream.world.repositories.values()].filter(({ fork }) => !fork);
  const names = repositories.map((one) => upstream.world.fullName(one));
  const adding = startProgram(resolve(checkout, "src", "cli", "main.ts"), { ...env, LOG_LEVEL: "error" }, () => {}, [
    "add",
    ...names,
  ]);
  await adding.ended;
  const count = async (text: string) => Number((await database.query<{ n: string }>(text)).rows[0]?.n);
  const began = Date.now();
  while ((await count("select count(*) as n from repository_syncs where state = 'live'")) < names.length) {
    if (Date.now() - began > PATIENCE_MS) throw new Error(`${checkout} has not copied the world`);
    await delay(100);
  }

  const [userId, login] = await owner(upstream.url);
  for (const [token, canWrite] of [
    [TOKENS.own, true],
    [TOKENS.reading, false],
  ] as const)
    await database.query("insert into api_tokens (hash, user_id, can_write, created_at) values ($1, $2, $3, now())", [
      createHash("sha256").update(token).digest("hex"),
      userId,
      canWrite,
    ]);
  const open = repositories.filter((one) => one.visibility === "public");
  const first = open[0];
  const hidden = repositories.find((one) => one.visibility !== "public") ?? repositories.at(-1);
  if (!first || !hidden) throw new Error("The simulator made no repositories");
  const number = (text: string) => count(`select min(number) as n from ${text} where repository_id = ${first.id}`);
  const { rows } = await database.query<{ name: string }>(
    "select document->>'name' as name from labels where repository_id = $1 order by id limit 1",
    [first.id],
  );
  return {
    repository: { id: first.id, fullName: upstream.world.fullName(first) },
    hidden: upstream.world.fullName(hidden),
    issue: await number("issues"),
    pull: await number("pull_requests"),
    label: rows[0]?.name ?? "bug",
    login,
    userId,
    tokens: TOKENS,
    webhookSecret: WEBHOOK_SECRET,
    operatorToken: OPERATOR_TOKEN,
  };
}

async function owner(upstream: string): Promise<[id: number, login: string]> {
  const answer = await fetch(`${upstream}/user`, { headers: { authorization: `Bearer ${MIRRORS_TOKEN}` } });
  const { id, login } = (await answer.json()) as { id: number; login: string };
  return [id, login];
}
