import type { Config } from "./config.ts";
import { JobReads } from "./mirror/read/job-reads.ts";
import { closeQueues, openQueues, type Queues } from "./queues/queues.ts";
import { openStores, type StoreOptions, type Stores } from "./stores.ts";
import { openUpstream } from "./upstream/client/client.ts";
import type { Upstream } from "./upstream/client/upstream.ts";
import { upstreamOfEdge } from "./upstream/client/upstream-of-edge.ts";

/** The world outside, as functions are given it. Each names the part it uses. */
export interface Context extends Local {
  upstream: Upstream;
}

/** The context short of upstream. */
export interface Local extends Stores {
  queues: Queues;
  reads: JobReads;
}

/** Opens everything but upstream, for processes that ask it nothing. The rest is as for `openContext`. */
export async function openLocal(
  config: Config,
  resources: AsyncDisposableStack,
  options: StoreOptions,
): Promise<Local> {
  const stores = await openStores(config, resources, options);
  const queues = openQueues(stores);
  resources.defer(() => closeQueues(queues));
  return { ...stores, queues, reads: new JobReads(stores.db) };
}

/**
 * Opens what the world outside offers; `resources` closes it in reverse. It neither waits for Postgres or Redis nor
 * fails without them: a function that needs an absent store learns so when it uses it.
 */
export async function openContext(
  config: Config,
  resources: AsyncDisposableStack,
  options: StoreOptions,
): Promise<Context> {
  const local = await openLocal(config, resources, options);
  const upstream = config.edgeOf === null ? openUpstream(local) : upstreamOfEdge();
  resources.defer(() => upstream.close());
  return { ...local, upstream };
}
