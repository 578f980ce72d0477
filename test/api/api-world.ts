import { createApiToken } from "../../src/api/callers/tokens.ts";
import type { Context } from "../../src/context.ts";
import type { Simulator } from "../../src/simulator/control/running.ts";
import { openSimulator } from "../../src/simulator/simulator.ts";
import { type Answered, type Asking, askAt } from "../support/asking.ts";
import { OWNER, UPSTREAM_TOKEN } from "../support/config.ts";
import { openMirror, type TestMirror } from "../support/mirror.ts";
import { findMirroredTemplate, mirrorWhole, repositoriesOf, store } from "../support/mirrored.ts";

/** A mirror that holds everything of upstream and has no workers. Its web server alone answers requests. */
export interface ApiWorld extends TestMirror {
  upstream: Simulator;
  /** Reads everything and writes. */
  token: string;
  /** Only reads. */
  readToken: string;
  userId: number;
  /** Of the simulated world, without forks; the generator's first is the busiest. */
  repositories: { id: number; fullName: string; private: boolean }[];
  /** As the owner of `token`, unless told otherwise. */
  get(path: string, options?: Asking): Promise<Answered>;
  send(method: string, path: string, options?: Asking & { body?: string }): Promise<Answered>;
  /** A GraphQL document, as the owner of `token`, unless told otherwise. */
  query(document: string, variables?: object, options?: Asking): Promise<Answered>;
  /** The same request to upstream, with the mirror's token. */
  getUpstream(path: string, options?: { headers?: Record<string, string> }): Promise<Answered>;
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
  /** How long upstream computes mergeability after the first request for it. Default 2 s. */
  mergeableDelayMs?: number;
  /** Upstream's GraphQL schema, where it is to be larger than what the simulator models. */
  wholeSchema?: string;
}

export async function openApiWorld(options: ApiWorldOptions = {}): Promise<ApiWorld> {
  await using opening = new AsyncDisposableStack();
  const { issues = 60, repositories = 2, mergeableDelayMs, clock, wholeSchema } = options;
  const template = options.fill ? undefined : await findMirroredTemplate({ repositories, issues });
  const worldOptions = mergeableDelayMs === undefined ? {} : { mergeableDelayMs };
  const upstream = opening.use(await openSimulator({ seed: 7, worldOptions, ...(wholeSchema && { wholeSchema }) }));
  template?.fill(upstream.world);
  await options.fill?.(upstream.world);
  const accounts = Array.from({ length: options.upstreamTokens ?? 1 }, (_, at) => (at === 0 ? "" : `-${at}`));
  for (const account of accounts)
    upstream.tokens.create({ token: UPSTREAM_TOKEN + account, login: OWNER + account, repositories: "all" });

  const tokens = accounts.map((account) => UPSTREAM_TOKEN + account).join(",");
  const mirror = opening.use(
    await openMirror({
      upstream: options.upstreamUrl ?? upstream.url,
      template: template?.name,
      clock,
      env: { UPSTREAM_TOKEN: tokens, ...options.env },
    }),
  );
  const { ctx, url } = mirror;
  if (!template) await mirrorWhole(ctx, upstream, UPSTREAM_TOKEN);
  const getUpstream: ApiWorld["getUpstream"] = (path, asking = {}) =>
    askAt(upstream.url, "GET", path, { token: UPSTREAM_TOKEN, ...asking });
  const { body: user } = await getUpstream("/user");
  await store(ctx, upstream, "user", user);
  const userId: number = user.id;
  const token = await createApiToken(ctx, { userId, canWrite: true });
  const readToken = await createApiToken(ctx, { userId, canWrite: false });
  const send: ApiWorld["send"] = (method, path, asking = {}) => askAt(url, method, path, { token, ...asking });
  const all = opening.move();
  return {
    ...mirror,
    upstream,
    token,
    readToken,
    userId,
    repositories: repositoriesOf(upstream),
    send,
    get: (path, asking) => send("GET", path, asking),
    query: (query, variables = {}, asking = {}) =>
      send("POST", "/graphql", { body: JSON.stringify({ query, variables }), ...asking }),
    getUpstream,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
