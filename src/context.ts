import type { Redis } from "ioredis";
import type { Database } from "../db/connection.ts";
import type { Config } from "./config.ts";
import type { Logger } from "./operations/log.ts";
import type { Queues } from "./operations/queues.ts";
import type { Upstream } from "./upstream/client.ts";

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
