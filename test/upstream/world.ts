import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Redis } from "ioredis";
import { type Database, openDatabase } from "../../db/database.ts";
import { type Config, parseConfig } from "../../src/config.ts";
import { openLog } from "../../src/operations/log.ts";
import { Metrics } from "../../src/operations/metrics.ts";
import { UNTRACED } from "../../src/operations/tracing.ts";
import { type ClientLimits, openUpstream } from "../../src/upstream/client/client.ts";
import { saveValidator } from "../../src/upstream/conditional/validators.ts";
import type { Upstream, Validator } from "../../src/upstream/protocol/upstream.ts";
import { openTestDatabase, testRedis } from "../support/database.ts";

/** A request as the stand-in for upstream received it. */
interface Asked {
  method: string;
  url: string;
  headers: IncomingMessage["headers"];
  token: string;
  body: string;
}

/** Answers a request, in any way that is possible with HTTP or on a broken network. */
export type Play = (asked: Asked, response: ServerResponse, count: number) => unknown;

/** Stores the validator in a transaction, as the jobs do. */
export const keepValidator = (db: Database, validator: Validator) =>
  db.transaction((tx) => saveValidator(tx, validator));

export interface UpstreamWorld extends AsyncDisposable {
  /** Each request that came, in order. */
  asked: Asked[];
  /** The tokens of the requests that came. */
  tokens(): string[];
  play: Play;
  upstream: Upstream;
  base: string;
  ctx: Parameters<typeof openUpstream>[0];
  /** Moves our clock. Upstream's clock is in the headers that a test gives. */
  wait(ms: number): void;
  /** A client as another process has it, on the same Redis and database. `changes` override its settings. */
  another(changes?: Partial<Config>): Promise<Upstream>;
}

export interface WorldOptions {
  tokens?: string[];
  limits?: Partial<ClientLimits>;
  redis?: "here" | "down";
  /** Whether the client is a command's. */
  isCommand?: boolean;
  path?: string;
  /** The address of an upstream other than the one that answers here. */
  url?: string;
  env?: NodeJS.ProcessEnv;
}

const begin = Date.parse("2026-11-01T12:00:00Z");

/** Headers of the `core` bucket. The window ends `inS` seconds after the beginning of the world. */
export function quotaHeaders(
  remaining: number,
  { inS = 3_600, limit = 5_000, resource = "core" } = {},
): Record<string, string> {
  return {
    "x-ratelimit-limit": String(limit),
    "x-ratelimit-remaining": String(remaining),
    "x-ratelimit-used": String(limit - remaining),
    "x-ratelimit-reset": String(begin / 1_000 + inS),
    "x-ratelimit-resource": resource,
  };
}

export function at(seconds: number): Date {
  return new Date(begin + seconds * 1_000);
}

export function json(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { "content-type": "application/json; charset=utf-8", ...headers });
  response.end(body === undefined ? undefined : JSON.stringify(body));
}

export async function openUpstreamWorld(play: Play, options: WorldOptions = {}): Promise<UpstreamWorld> {
  const resources = new AsyncDisposableStack();
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece);
    const token = (request.headers.authorization ?? "").replace("Bearer ", "");
    const each = {
      method: request.method ?? "",
      url: request.url ?? "",
      headers: request.headers,
      token,
      body: Buffer.concat(pieces).toString(),
    };
    asked.push(each);
    response.sendDate = false;
    await world.play(each, response, asked.length);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  resources.defer(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });

  const { url: redisUrl, prefix } = testRedis();
  const database = resources.use(await openTestDatabase());
  const config = parseConfig({
    DATABASE_URL: database.url,
    REDIS_URL: redisUrl,
    REDIS_PREFIX: prefix,
    UPSTREAM_URL: options.url ?? `http://127.0.0.1:${(server.address() as AddressInfo).port}${options.path ?? ""}`,
    UPSTREAM_TOKEN: (options.tokens ?? ["token-one"]).join(","),
    WEBHOOK_SECRET: "unused-here-and-long",
    LOG_LEVEL: "silent",
    ...options.env,
  });
  let now = begin;
  const openContext = async (changes: Partial<Config> = {}) => {
    const db = openDatabase(config.databaseUrl, { maxConnections: 2 });
    resources.defer(() => db.close());
    const away = { port: 1, lazyConnect: true, enableOfflineQueue: false, retryStrategy: () => null };
    const redis = options.redis === "down" ? new Redis(away) : new Redis(config.redisUrl);
    redis.on("error", () => {});
    resources.defer(() => redis.disconnect());
    if (options.redis !== "down") await once(redis, "ready");
    const log = openLog(config, { name: "test" });
    return {
      config: { ...config, ...changes },
      db,
      redis,
      log,
      clock: { now: () => new Date(now) },
      random: () => 0.5,
      metrics: new Metrics(),
      tracing: UNTRACED,
    };
  };
  const open = (ctx: UpstreamWorld["ctx"]) => {
    const upstream = openUpstream(ctx, { repeatAfterMs: 5, isCommand: options.isCommand, ...options.limits });
    resources.defer(() => upstream.close());
    return upstream;
  };
  const ctx = await openContext();
  const world: UpstreamWorld = {
    asked,
    tokens: () => asked.map(({ token }) => token),
    play,
    ctx,
    base: config.upstreamUrl,
    upstream: open(ctx),
    wait: (ms) => {
      now += ms;
    },
    another: async (changes) => open(await openContext(changes)),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
  return world;
}
