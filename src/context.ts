import type { Config } from "./config.ts";
import { JobReads } from "./mirror/read/job-reads.ts";
import { closeQueues, openQueues, type Queues } from "./queues/queues.ts";
import { openStores, type StoreOptions, type Stores } from "./stores.ts";
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
  // Loading holds the event loop, so it comes before answers of the stores are waited for.
  const open = await loadUpstream(config, options);
  const local = await openLocal(config, resources, options);
  const upstream = open(local);
  resources.defer(() => upstream.close());
  return { ...local, upstream };
}

/** Processes and commands that send upstream no requests do without the client's modules. */
async function loadUpstream(
  { edgeOf }: Pick<Config, "edgeOf">,
  { isCommand }: Pick<StoreOptions, "isCommand">,
): Promise<(local: Local) => Upstream> {
  if (edgeOf !== null) return (await import("./upstream/client/no-upstream.ts")).noUpstream;
  const { openUpstream } = await import("./upstream/client/client.ts");
  return (local) => openUpstream(local, { isCommand });
}
