import { openDatabase } from "../../db/database.ts";
import type { ApiLimits } from "../../src/api/routes.ts";
import { parseConfig } from "../../src/config.ts";
import { type Context, openContext, openLocal } from "../../src/context.ts";
import { JobReads } from "../../src/mirror/read/job-reads.ts";
import { openWorkerRedis } from "../../src/operations/redis.ts";
import { type ClientLimits, openUpstream } from "../../src/upstream/client/client.ts";
import { openWeb } from "../../src/web.ts";
import { openWorkers } from "../../workers/main.ts";
import type { WorkerContext } from "../../workers/worker.ts";
import { NOWHERE, testEnvironment } from "./config.ts";
import { asRole, openTestDatabase, testRedis } from "./database.ts";

/** One installation of Tain in this process, opened as Tain's own processes open it. */
export interface TestMirror extends AsyncDisposable {
  ctx: Context;
  /** The environment for processes of this installation. */
  env: NodeJS.ProcessEnv;
  /** The address of its web server; empty without one. */
  url: string;
  /** Opens workers. */
  work(): void;
  /** A context for a worker of this installation. */
  openWorkerContext(): WorkerContext;
  /** Tells the workers to stop, as SIGTERM does. */
  stop(): void;
  /** Moves the installation's clock. It does nothing where the test gave the clock. */
  advance(ms: number): void;
  /**
   * Starts another web process on the same stores, and answers its address. `env` adds to the settings or overrides
   * them.
   */
  openSibling(env?: NodeJS.ProcessEnv, limits?: ApiLimits, clientLimits?: Partial<ClientLimits>): Promise<string>;
  /** Ends the web process and starts it again at the same address. `env` adds to the settings or overrides them. */
  restart(env: NodeJS.ProcessEnv): Promise<void>;
  /** Calls `close` before the stores are closed. */
  defer(close: () => Promise<unknown>): void;
}

export interface TestMirrorOptions {
  /** Upstream's address. Default: nobody listens there. */
  upstream?: string;
  /** The database to clone. Default: the migrated one that is empty. */
  template?: string | undefined;
  /** Settings beside the usual ones of a test. With DATABASE_URL no database is made. */
  env?: NodeJS.ProcessEnv;
  clock?: Context["clock"] | undefined;
  /** Default true. */
  web?: boolean;
  /** Default false. */
  workers?: boolean;
}

export async function openMirror({
  upstream = NOWHERE.upstream,
  template,
  env: settings = {},
  clock: given,
  web = true,
  workers = false,
}: TestMirrorOptions = {}): Promise<TestMirror> {
  await using opening = new AsyncDisposableStack();
  const resources = opening.use(new AsyncDisposableStack());
  const database = settings.DATABASE_URL ?? resources.use(await openTestDatabase(template)).url;
  const env = testEnvironment({ database, redis: testRedis(), upstream }, settings);
  let offsetMs = 0;
  const clock = given ?? { now: () => new Date(Date.now() + offsetMs) };
  const ctx = await openContext(parseConfig(env), resources, { name: "test", clock });

  /** The same context with the database rights that the role's process has. */
  const as = (role: "tain_web" | "tain_worker"): Context => {
    const config = { ...ctx.config, databaseUrl: asRole(database, role) };
    const db = openDatabase(config.databaseUrl, {
      maxConnections: config.databaseConnections,
      applicationName: role,
      clock,
    });
    resources.defer(() => db.close());
    return { ...ctx, config, db, jobReads: new JobReads(db) };
  };

  const stopping = new AbortController();
  const openWorkerContext = () => {
    const jobs = openWorkerRedis(ctx, "test-worker");
    resources.defer(() => jobs.disconnect());
    return { ...as("tain_worker"), jobs, stopping: stopping.signal };
  };
  const work = () => {
    openWorkers(openWorkerContext(), resources);
    resources.defer(() => stopping.abort());
  };
  const listen = async (of: Context, limits: ApiLimits = {}) => {
    const server = openWeb(of, limits);
    const close = memoized(() => server.close());
    resources.defer(close);
    return { url: await server.listen({ host: of.config.host, port: of.config.port }), close };
  };
  const openSibling = async (more: NodeJS.ProcessEnv = {}, limits = {}, clientLimits = {}) => {
    const settings = { ...env, DATABASE_URL: asRole(database, "tain_web"), ...more };
    const local = await openLocal(parseConfig(settings), resources, { name: "sibling", clock });
    const client = openUpstream(local, clientLimits);
    resources.defer(() => client.close());
    return await listen({ ...local, upstream: client }, limits);
  };
  if (workers) work();
  const { url, close } = web ? await listen(as("tain_web")) : { url: "", close: async () => {} };
  const all = opening.move();
  return {
    ctx,
    env,
    url,
    work,
    openWorkerContext,
    stop: () => stopping.abort(),
    advance: (ms) => {
      offsetMs += ms;
    },
    openSibling: async (...more) => (await openSibling(...more)).url,
    async restart(more) {
      await close();
      await openSibling({ PORT: new URL(url).port, ...more });
    },
    defer: (end) => resources.defer(() => end().then(() => {})),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** All callers share one end. */
function memoized(end: () => Promise<void>): () => Promise<void> {
  let ended: Promise<void> | undefined;
  return () => {
    ended ??= end();
    return ended;
  };
}
