import type { Redis } from "ioredis";
import type { Database } from "../db/connection.ts";
import type { Config } from "./config.ts";
import type { Logger } from "./operations/log.ts";
import type { Queues } from "./operations/queues.ts";
import { openStores } from "./operations/stores.ts";
import { openUpstream, type Upstream } from "./upstream/client.ts";

/** What functions are given of the world outside. Each names the part it uses. */
export interface Context {
  config: Config;
  db: Database;
  redis: Redis;
  queues: Queues;
  upstream: Upstream;
  clock: Clock;
  random: () => number;
  log: Logger;
}

export interface Clock {
  now(): Date;
}

/**
 * Opens what the world outside offers; `resources` closes it in reverse. It neither waits for Postgres or Redis nor fails
 * without them: whoever needs one that is away learns so when using it.
 */
export async function openContext(
  config: Config,
  resources: AsyncDisposableStack,
  options: { name: string; clock?: Clock },
): Promise<Context> {
  const stores = await openStores(config, resources, options);
  const upstream = openUpstream(stores);
  resources.defer(() => upstream.close());
  return { ...stores, upstream };
}
