import type { Config } from "./config.ts";
import { JobReads } from "./mirror/read/job-reads.ts";
import { closeQueues, openQueues, type Queues } from "./queues/queues.ts";
import { openStores, type StoreOptions, type Stores } from "./stores.ts";
import { openUpstream } from "./upstream/client/client.ts";
import { upstreamOfEdge } from "./upstream/client/upstream-of-edge.ts";
import type { Upstream } from "./upstream/protocol/upstream.ts";

/** The open resources that functions are passed. Each function names in its type the part that it uses. */
export interface Context extends Local {
  upstream: Upstream;
}

/** The context without upstream. */
export interface Local extends Stores {
  queues: Queues;
  jobReads: JobReads;
}

/** As `openContext`, but for processes that send upstream no requests. */
export async function openLocal(
  config: Config,
  resources: AsyncDisposableStack,
  options: StoreOptions,
): Promise<Local> {
  const stores = await openStores(config, resources, options);
  const queues = openQueues(stores);
  resources.defer(() => closeQueues(queues));
  return { ...stores, queues, jobReads: new JobReads(stores.db) };
}

/**
 * Opens all resources; `resources` closes them in the reverse order. Opening neither waits for Postgres or Redis nor
 * fails without them. A function that needs a store which is away fails when it uses that store.
 */
export async function openContext(
  config: Config,
  resources: AsyncDisposableStack,
  options: StoreOptions,
): Promise<Context> {
  const local = await openLocal(config, resources, options);
  const upstream = config.edgeOf === null ? openUpstream(local, { isCommand: options.isCommand }) : upstreamOfEdge();
  resources.defer(() => upstream.close());
  return { ...local, upstream };
}
