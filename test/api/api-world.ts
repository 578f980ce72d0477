import { sql } from "../../db/drizzle.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import type { ApiLimits } from "../../src/api/routes.ts";
import type { Context } from "../../src/context.ts";
import { openLocal } from "../../src/context.ts";
import { mergeObserved } from "../../src/mirror/store/merge.ts";
import { joinObserved, type Observed, observe } from "../../src/mirror/store/observation.ts";
import type { Kind } from "../../src/mirror/store/resource.ts";
import type { Json } from "../../src/mirror/store/template.ts";
import { generateWorld } from "../../src/simulator/generate.ts";
import type { Simulator } from "../../src/simulator/running.ts";
import { openSimulator } from "../../src/simulator/simulator.ts";
import { openUpstream } from "../../src/upstream/client/client.ts";
import { openWeb } from "../../src/web.ts";
import { testConfig } from "../support/config.ts";
import { openTestDatabase, testRedis } from "../support/database.ts";

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
    const tokens = Array.from({ length: options.upstreamTokens ?? 1 }, (_, at) =>
      at === 0 ? UPSTREAM_TOKEN : `${UPSTREAM_TOKEN}-${at}`,
    );
    const upstream = resources.use(
      await openSimulator({
        seed: 7,
        worldOptions: options.mergeableDelayMs === undefined ? {} : { mergeableDelayMs: options.mergeableDelayMs },
        tokens: tokens.map((token, at) => ({
          token,
          login: at === 0 ? LOGIN : `${LOGIN}-${at}`,
          repositories: "all" as const,
        })),
      }),
    );
    if (options.fill) await options.fill(upstream.world);
    else
      generateWorld(upstream.world, { seed: 7, repositories: options.repositories ?? 2, issues: options.issues ?? 60 });
    const database = resources.use(await openTestDatabase());
    const redis = testRedis();
    const at = { database: database.url, redis, upstream: options.upstreamUrl ?? upstream.url };
    const env = { UPSTREAM_TOKEN: tokens.join(","), ...options.env };
    const opened = await openLocal(testConfig(at, env), resources, { name: "test" });
    const stores = { ...opened, ...(options.clock ? { clock: options.clock } : {}) };
    const client = openUpstream(stores);
    resources.defer(() => client.close());
    const ctx: Context = { ...stores, upstream: client };
    const repositories = await mirror(ctx, upstream);
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
      repositories,
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

interface State {
  repository: { id: number; full_name: string; html_url: string; private: boolean };
  [list: string]: unknown;
}

/** Copies upstream's whole truth into the mirror by the mirror's own merge. */
async function mirror(ctx: Context, upstream: Simulator): Promise<ApiWorld["repositories"]> {
  const answer = await fetch(`${upstream.url}/-/state`);
  const summary = (await answer.json()) as { repositories: { full_name: string; fork: boolean }[] };
  const mirrored: ApiWorld["repositories"] = [];
  for (const { full_name, fork } of summary.repositories) {
    if (fork) continue;
    const [state] = (
      (await (await fetch(`${upstream.url}/-/state?repository=${full_name}`)).json()) as { repositories: State[] }
    ).repositories;
    if (!state) throw new Error(`Upstream has no state of ${full_name}`);
    const single = await askAt(upstream.url, "GET", `/repos/${full_name}`, { token: UPSTREAM_TOKEN });
    await store(ctx, upstream, "repository", single.body);
    const { id, private: isPrivate } = state.repository;
    const at = { id, fullName: full_name, htmlUrl: state.repository.html_url };
    const lists: [string, Kind][] = [
      ["labels", "label"],
      ["milestones", "milestone"],
      ["issues", "issue"],
      ["pulls", "pull_request"],
      ["comments", "issue_comment"],
      ["reviews", "review"],
      ["review_comments", "review_comment"],
    ];
    for (const [list, kind] of lists) await store(ctx, upstream, kind, state[list] as Json[], at);
    await ctx.db.execute(
      sql`insert into repository_syncs (repository_id, state, added_at) values (${id}, 'live', now())`,
    );
    mirrored.push({ id, fullName: full_name, private: isPrivate });
  }
  return mirrored;
}

/** Merges what upstream showed into the mirror. */
export async function store(
  ctx: Context,
  upstream: { url: string },
  kind: Kind,
  shown: Json | Json[],
  repository?: { id: number; fullName: string; htmlUrl: string | null },
  options: { deleted?: boolean } = {},
): Promise<void> {
  const sighting = {
    api: upstream.url,
    seenAt: ctx.clock.now(),
    read: true,
    ...(repository ? { repository } : {}),
    ...options,
  };
  const observed: Observed = joinObserved([shown].flat().map((one) => observe(kind, one, sighting)));
  await ctx.db.transaction((tx) => mergeObserved(tx, observed));
}
