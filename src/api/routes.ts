import { LRUCache } from "lru-cache";
import { openDatabase } from "../../db/database.ts";
import type { Lane, ReplicaState } from "../../db/replica.ts";
import type { Context } from "../context.ts";
import { LogEnd } from "../events/log-end.ts";
import type { Exchange } from "../http/exchange.ts";
import type { Reply } from "../http/reply.ts";
import type { Handler, Route } from "../http/router.ts";
import { openMirrorReader } from "../mirror/reader.ts";
import { LeftOut } from "../mirror/render/left-out.ts";
import { RepositoryVersionsReader } from "../mirror/unchanged/unchanged.ts";
import { RETRIES } from "../waits/retries.ts";
import { mostEntries } from "../work/bounded.ts";
import { Again, openPages } from "./call/again.ts";
import type { ApiContext } from "./call/call.ts";
import { failureReply } from "./call/failure.ts";
import { ApiMeter } from "./call/metering.ts";
import { lanesOf, openReplicas } from "./call/replicas.ts";
import { Searches } from "./call/searches.ts";
import { Callers } from "./callers/caller.ts";
import type { Logins } from "./callers/logins.ts";
import { CallerQuota } from "./callers/quota.ts";
import { UpstreamForCallers } from "./callers/upstream-for-callers.ts";
import { knownOperations } from "./description/known-operations.ts";
import { readPublished } from "./description/published.ts";
import { description } from "./description/routes.ts";
import { type CorsRule, corsRule } from "./dialect/cors.ts";
import { RequestIds } from "./dialect/protocol.ts";
import { edgeDoors } from "./edge/doors.ts";
import { answersOfEdge, Edge } from "./edge/edge.ts";
import { POSITION_PATH, positionReply } from "./edge/position.ts";
import { Feed } from "./feed/feed.ts";
import { ForwardCache } from "./forward/cache/cache.ts";
import { Graphql } from "./graphql/handle.ts";
import { REST_OPERATIONS, restRoutes } from "./operations.ts";
import { Rest } from "./rest/handle.ts";
import { Announcements } from "./streams/announcements.ts";
import { ChangeStreams } from "./streams/change-streams.ts";
import { StreamPlaces } from "./streams/places.ts";

/** How long a query of GraphQL may take. GitHub gives up after as long. */
const GRAPHQL_TIMEOUT_MS = 10_000;

export interface Api {
  /** The dialect at `/` and at `/api/v3`, GraphQL at `/graphql` and `/api/graphql`, and the descriptions of both. */
  routes: Route[];
  /** Answers a path of the dialect that we do not serve. */
  otherwise: Handler;
  failure: (error: unknown, path: string | null) => Reply;
  /** Fits each reply to the page that asks, by `CORS_ORIGINS`. */
  adapt: CorsRule | null;
  /** Counts those who fail to log in, by their address. */
  logins: Pick<Logins, "operators">;
  /** How the replicas stand that reads go to. */
  replicas: () => ReplicaState[];
  /**
   * Ends the streams, and the waits of writes. An open stream would keep the server from closing until its caller leaves.
   */
  stop(): Promise<void>;
  /** Gives callers' leased quota back, and closes connections. No request may be under way. */
  close(): Promise<void>;
}

/** A stream ends after this, and its reader asks again: rights and quota are judged at the door as well. */
const STREAM_LIFETIME_MS = 3_600_000;
/** A reader on a slow line takes a full buffer in less. */
const STREAM_UNREAD_MS = 10_000;

export interface ApiLimits {
  graphqlTimeoutMs?: number;
  /** How long a stream stays open. */
  lifetimeMs?: number;
  /** How long the reader of a stream may leave unread what was written. */
  unreadMs?: number;
}

/** How long an account that upstream does not show is not asked for again. */
const UNSHOWN_MS = 10 * 60_000;

export function openApi(
  given: Omit<
    ApiContext,
    "mirror" | "readDb" | "searches" | "unshownAccounts" | "upstream" | "forwarded" | "stopping"
  > &
    Pick<Context, "upstream">,
  {
    graphqlTimeoutMs: timeoutMs = GRAPHQL_TIMEOUT_MS,
    lifetimeMs = STREAM_LIFETIME_MS,
    unreadMs = STREAM_UNREAD_MS,
  }: ApiLimits = {},
): Api {
  const { repositoryVersions, replicas, primaryReads, primarySearches, readDb, searches, mirror } = openReads(given);
  const unshownAccounts = new LRUCache<string, true>({ ...mostEntries(10_000), ttl: UNSHOWN_MS });
  const quota = new CallerQuota(given, given.db.isReadOnly ? { redisAway: RETRIES.redisFarAway } : {});
  const upstream = new UpstreamForCallers(given, quota);
  const { edgeOf } = given.config;
  const forwarded = given.config.forwardCacheBytes > 0 && edgeOf === null ? new ForwardCache(given) : null;
  const stop = new AbortController();
  const stopping = stop.signal;
  const ctx: ApiContext = { ...given, upstream, mirror, readDb, searches, unshownAccounts, forwarded, stopping };
  const requestIds = new RequestIds();
  const callers = new Callers(ctx, quota);
  const announcements = new Announcements(ctx);
  // Locks and a sequence say where the log ends. Replicas have neither.
  const end = new LogEnd(primaryReads, ctx.random);
  const changes = new ChangeStreams({ readDb: primaryReads, end }, announcements);
  const places = new StreamPlaces(ctx.config);
  const pages = openPages(ctx.config.pageCacheBytes);
  const meter = new ApiMeter(ctx);
  ctx.metrics.watchPool("reads", primaryReads);
  ctx.metrics.watchPool("searches", primarySearches);
  const pipeline = { ctx, meter, callers, quota, requestIds };
  const again = new Again(pipeline, pages);
  const known = knownOperations(REST_OPERATIONS, readPublished());
  const rest = new Rest({ ...pipeline, known, pages, again });
  const answerRest = again.before(rest);
  const streaming = { places, lifetimeMs, unreadMs };
  const graphql = new Graphql({ ...pipeline, ...streaming, changes, timeoutMs });
  const ofPrimary = { ...ctx, readDb: primaryReads };
  const feed = new Feed({ ...pipeline, ...streaming, ctx: ofPrimary, announcements, end });
  const count = answersOfEdge(given);
  const edge = edgeOf === null ? null : new Edge({ ...ctx, requestIds, count }, edgeOf);
  const doors = edge
    ? edgeDoors(edge, { rest: answerRest, graphql })
    : {
        query: (exchange: Exchange) => graphql.handle(exchange),
        feed: (exchange: Exchange) => feed.handle(exchange),
        rest: answerRest,
        position: async ({ headers }: Exchange) => positionReply(await repositoryVersions.position(), headers),
      };
  return {
    routes: [
      ...["POST", "GET"].flatMap((method) => [
        { method, path: "/graphql", handle: doors.query },
        { method, path: "/api/graphql", handle: doors.query },
      ]),
      { method: "GET", path: "/-/events", handle: doors.feed },
      { method: "GET", path: POSITION_PATH, handle: doors.position },
      ...description({ ...ctx, requestIds }, REST_OPERATIONS),
      ...restRoutes(doors.rest),
    ],
    otherwise: (exchange) => doors.rest(exchange, null),
    failure: (error, path) => failureReply({ ...ctx, requestIds }, error, path),
    adapt: corsRule(ctx.config.corsOrigins),
    logins: callers.logins,
    replicas: () => replicas?.states() ?? [],
    async stop() {
      stop.abort();
      await announcements[Symbol.asyncDispose]();
    },
    async close() {
      await edge?.close();
      await rest.close();
      await forwarded?.close();
      await graphql.close();
      await quota.close();
      await meter.close();
      await callers.close();
      await replicas?.close();
      await mirror[Symbol.asyncDispose]();
      await Promise.all([primaryReads.close(), primarySearches.close()]);
    },
  };
}

/** Opens the connections for callers' reads, and the reader that asks how repositories stand. */
function openReads(given: Pick<Context, "config" | "db" | "log" | "metrics" | "random" | "tracing">) {
  const { databaseUrl, databaseDirectUrl } = given.config;
  const repositoryVersions = new RepositoryVersionsReader({ ...given.config, isReadOnly: given.db.isReadOnly });
  const replicas = openReplicas(given, repositoryVersions);
  const lanes = lanesOf(given.config);
  const open = (lane: Lane) =>
    openDatabase(databaseUrl, {
      ...lanes[lane],
      isPooled: databaseDirectUrl !== null,
      applicationName: `tain ${lane}`,
      cancelBy: given.db,
      isReadOnly: given.db.isReadOnly,
      tracing: given.tracing,
    });
  const [primaryReads, primarySearches] = [open("reads"), open("searches")];
  const readDb = primaryReads.readingFrom(replicas);
  const searches = new Searches(primarySearches.readingFrom(replicas, "searches"), lanes.searches.maxConnections);
  const mirror = openMirrorReader({
    db: given.db,
    reads: primaryReads,
    repositoryVersions,
    replicas,
    leftOut: new LeftOut(given),
  });
  return { repositoryVersions, replicas, primaryReads, primarySearches, readDb, searches, mirror };
}
