import { createApiToken } from "../../src/api/callers/tokens.ts";
import type { ApiLimits } from "../../src/api/routes.ts";
import type { Context } from "../../src/context.ts";
import { openLocal } from "../../src/context.ts";
import type { Simulator } from "../../src/simulator/running.ts";
import { openSimulator } from "../../src/simulator/simulator.ts";
import { openUpstream } from "../../src/upstream/client/client.ts";
import { openWeb } from "../../src/web.ts";
import { testConfig } from "../support/config.ts";
import { openTestDatabase, testRedis } from "../support/database.ts";
import { findMirroredTemplate, mirrorWhole, repositoriesOf, store } from "../support/mirrored.ts";

export const UPSTREAM_TOKEN = "upstream-token-of-the-mirror";
const LOGIN = "mirror-owner";

export interface ApiWorld extends AsyncDisposable {
  /** The mirror's API, without a slash at the end. */
  url: string;
  upstream: Simulator;
  ctx: Context;
  /** Reads everything and writes. */
  token: string;
  /** Only reads. */
  readToken: string;
  userId: number;
  /** Of the simulated world, forks included; the first is the busiest. */
  repositories: { id: number; fullName: string; private: boolean }[];
  /** As the owner of `token`, unless told otherwise; `null` is anonymous. */
  get(path: string, options?: Asking): Promise<Answered>;
  send(method: string, path: string, options?: Asking & { body?: string }): Promise<Answered>;
  /** The same request to upstream, with the mirror's token. */
  getUpstream(path: string, options?: { headers?: Record<string, string> }): Promise<Answered>;
  /** Another process' worth of API over the same stores. */
  openSibling(
    env?: NodeJS.ProcessEnv,
    limits?: ApiLimits,
    clientLimits?: Parameters<typeof openUpstream>[1],
  ): Promise<string>;
}

export interface Asking {
  token?: string | null;
  headers?: Record<string, string | undefined>;
}

export interface Answered {
  status: number;
  headers: Headers;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: bodies are compared and picked from, not trusted
  body: any;
}

export interface ApiWorldOptions {
  env?: NodeJS.ProcessEnv;
  issues?: number;
  repositories?: number;
  /** Makes upstream's world instead of the generator. */
  fill?: (world: Simulator["world"]) => Promise<void>;
  upstreamUrl?: string;
  clock?: Context["clock"];
  /** How many tokens the mirror has at upstream, each of its own account, which writes once a second. Default 1. */
  upstreamTokens?: number;
  /** How long upstream works on whether a pull request can be merged, once somebody has asked. Default 2 s. */
  mergeableDelayMs?: number;
}

/** A mirror that already holds everything of a generated world, and the API in front of it. */
export async function openApiWorld(options: ApiWorldOptions = {}): Promise<ApiWorld> {
  const resources = new AsyncDisposableStack();
  try {
    const { issues = 60, repositories: count = 2, mergeableDelayMs } = options;
    const template = options.fill ? undefined : await findMirroredTemplate({ repositories: count, issues });
    const worldOptions = mergeableDelayMs === undefined ? {} : { mergeableDelayMs };
    const upstream = resources.use(await openSimulator({ seed: 7, worldOptions }));
    template?.fill(upstream.world);
    await options.fill?.(upstream.world);
    const tokens = Array.from({ length: options.upstreamTokens ?? 1 }, (_, at) =>
      at === 0 ? UPSTREAM_TOKEN : `${UPSTREAM_TOKEN}-${at}`,
    );
    for (const [at, token] of tokens.entries())
      upstream.tokens.create({ token, login: at === 0 ? LOGIN : `${LOGIN}-${at}`, repositories: "all" });
    const database = resources.use(await openTestDatabase(template?.name));
    const redis = testRedis();
    const at = { database: database.url, redis, upstream: options.upstreamUrl ?? upstream.url };
    const env = { UPSTREAM_TOKEN: tokens.join(","), ...options.env };
    const opened = await openLocal(testConfig(at, env), resources, { name: "test" });
    const stores = { ...opened, ...(options.clock ? { clock: options.clock } : {}) };
    const client = openUpstream(stores);
    resources.defer(() => client.close());
    const ctx: Context = { ...stores, upstream: client };
    if (!template) await mirrorWhole(ctx, upstream, UPSTREAM_TOKEN);
    const user = await askAt(upstream.url, "GET", "/user", { token: UPSTREAM_TOKEN });
    await store(ctx, upstream, "user", user.body);
    const userId = user.body.id as number;
    const listen = async (of: Context, limits: ApiLimits = {}) => {
      const web = openWeb(of, limits);
      resources.defer(() => web.close());
      return web.listen({ host: "127.0.0.1", port: 0 });
    };
    const url = await listen(ctx);
    const token = await createApiToken(ctx, { userId, canWrite: true });
    const send: ApiWorld["send"] = (method, path, asking = {}) => askAt(url, method, path, { token, ...asking });
    return {
      url,
      upstream,
      ctx,
      token,
      userId,
      repositories: repositoriesOf(upstream),
      send,
      readToken: await createApiToken(ctx, { userId, canWrite: false }),
      get: (path, asking) => send("GET", path, asking),
      getUpstream: (path, asking = {}) => askAt(upstream.url, "GET", path, { token: UPSTREAM_TOKEN, ...asking }),
      openSibling: async (more = {}, limits = {}, clientLimits = {}) => {
        const config = testConfig(at, { ...env, ...more });
        const own = await openLocal(config, resources, { name: "sibling" });
        const upstreamClient = openUpstream(own, clientLimits);
        resources.defer(() => upstreamClient.close());
        return listen({ ...own, upstream: upstreamClient }, limits);
      },
      [Symbol.asyncDispose]: () => resources.disposeAsync(),
    };
  } catch (error) {
    await resources.disposeAsync();
    throw error;
  }
}

/** Asks; without `token` (null) anonymously. Redirects are answers. */
export async function askAt(
  base: string,
  method: string,
  path: string,
  options: Asking & { body?: string } = {},
): Promise<Answered> {
  const headers = new Headers({ "user-agent": "test", accept: "application/vnd.github+json" });
  if (options.token) headers.set("authorization", `Bearer ${options.token}`);
  if (options.body !== undefined) headers.set("content-type", "application/json");
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    if (value === undefined) headers.delete(name);
    else headers.set(name, value);
  }
  const answer = await fetch(base + path, { method, headers, body: options.body ?? null, redirect: "manual" });
  const text = await answer.text();
  const isJson = /json/.test(answer.headers.get("content-type") ?? "") && text !== "";
  return { status: answer.status, headers: answer.headers, text, body: isJson ? JSON.parse(text) : null };
}

/** Upstream's answer as the mirror would write it. */
export function rebased(text: string, from: string, to: string): unknown {
  return JSON.parse(text.replaceAll(`${from}/`, `${to}/`));
}
