import type { Context } from "../../src/context.ts";
import { openLocal } from "../../src/context.ts";
import { openWorkerRedis } from "../../src/operations/redis.ts";
import type { WorkerContext } from "../../workers/worker.ts";
import { testConfig } from "../receiver/receiver-world.ts";
import { openTestDatabase, testRedis } from "../support/database.ts";

export interface WorkerWorld extends AsyncDisposable {
  ctx: WorkerContext;
  /** What the processes of this world are started with. */
  env: Record<string, string>;
  /** Tells the workers to stop, as SIGTERM does. */
  stop(): void;
  /** Closed before the stores are. */
  defer(close: () => Promise<unknown>): void;
}

/** Stores and what workers are opened with. Upstream is nowhere: who needs it is not tested here. */
export async function openWorkerWorld(options: { databaseUrl?: string } = {}): Promise<WorkerWorld> {
  const resources = new AsyncDisposableStack();
  const databaseUrl = options.databaseUrl ?? resources.use(await openTestDatabase()).url;
  const { url: redisUrl, prefix } = testRedis();
  const env = { DATABASE_URL: databaseUrl, REDIS_URL: redisUrl, REDIS_PREFIX: prefix };
  const stores = await openLocal(testConfig(env), resources, { name: "test" });
  resources.defer(async () => {
    await Promise.all(Object.values(stores.queues).map((queue) => queue.obliterate({ force: true })));
  });
  const jobs = openWorkerRedis(stores, "test");
  resources.defer(() => jobs.disconnect());
  const stopping = new AbortController();
  const ctx = { ...stores, upstream: {} as Context["upstream"], jobs, stopping: stopping.signal };
  return {
    ctx,
    env,
    stop: () => stopping.abort(),
    defer: (close) => resources.defer(() => close().then(() => {})),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}
