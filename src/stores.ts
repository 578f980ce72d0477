import { type Clock, type Database, openDatabase } from "../db/database.ts";
import { redisTooOld } from "../db/unfit.ts";
import { type Config, ConfigError } from "./config.ts";
import { type LineSink, type Logger, openLog } from "./operations/log.ts";
import { Metrics } from "./operations/metrics.ts";
import { openTracing } from "./operations/open-tracing.ts";
import { openRedis, type RedisClient, redisReady } from "./operations/redis.ts";
import { type Tracing, UNTRACED } from "./operations/tracing.ts";
import { within } from "./waits/within.ts";

/** What a process needs to use Postgres and Redis. `Context` adds the queues and upstream, which are built on it. */
export interface Stores {
  config: Config;
  db: Database;
  redis: RedisClient;
  clock: Clock;
  random: () => number;
  log: Logger;
  /** What the process counts of its work. */
  metrics: Metrics;
  /** Records traces of the process's work. */
  tracing: Tracing;
}

export interface StoreOptions {
  /** The process's name, as it shows in the log and in the stores' lists of connections. */
  name: string;
  clock?: Clock;
  /** Whether the process may record traces. True for processes that answer requests or run jobs. */
  isTraced?: boolean;
  /** Where the log goes, instead of standard output. */
  logTo?: LineSink;
  /** The metrics of the process, where another part of it has opened them: this part's pool is named after it. */
  metrics?: Metrics;
  /** Whether only a centre runs such a process, as a worker or a scheduler. It is refused if EDGE_OF is set. */
  isCentral?: boolean;
  /** Whether an operator waits for the process, and so for what it asks upstream, also while Redis does not answer. */
  isCommand?: boolean;
}

// Long enough for a connection on a busy machine, short enough for a receiver that starts while Redis is away.
const READY_WAIT_MS = 1_500;
const QUIT_MS = 1_000;

/**
 * Opens the log, the database and Redis. `resources` closes them in the reverse order.
 *
 * Postgres and Redis may both be away: connections are made when they are needed, and again after they break.
 * @throws StoreTooOldError if Redis answers and is too old; ConfigError for a process of the centre if EDGE_OF
 * is set
 */
export async function openStores(
  config: Config,
  resources: AsyncDisposableStack,
  { name, clock = { now: () => new Date() }, isTraced = false, isCentral = false, logTo, metrics: given }: StoreOptions,
): Promise<Stores> {
  if (config.edgeOf !== null && isCentral)
    throw new ConfigError(`Cannot start:\n  EDGE_OF is set: the ${name} belongs to the centre, where it is not`);
  const log = openLog(config, { name }, logTo);
  const tracing = isTraced ? await openTracing({ config, log }, resources, { name }) : UNTRACED;
  const db = openDatabase(config.databaseUrl, {
    isPooled: config.databaseDirectUrl !== null,
    maxConnections: config.databaseConnections,
    applicationName: `tain ${name}`,
    tracing,
    clock,
    isReadOnly: config.edgeOf !== null,
  });
  resources.defer(() => db.close());
  const metrics = given ?? new Metrics();
  metrics.watchPool(given ? name : "main", db);
  const redis = openRedis({ config, log }, name);
  resources.defer(async () => {
    if (redis.status === "ready") await quit(redis);
    redis.disconnect();
  });
  if (await redisReady(redis, READY_WAIT_MS)) await refuseOldRedis(redis);
  return { config, db, redis, clock, random: Math.random, log, metrics, tracing };
}

async function refuseOldRedis(redis: RedisClient): Promise<void> {
  // A hosted Redis may forbid INFO, and the connection may just break. Then the version is unknown and is not checked.
  const [, version] = /^redis_version:(.*?)\r?$/m.exec(await redis.info("server").catch(() => "")) ?? [];
  const refusal = version === undefined ? null : redisTooOld(version);
  if (refusal) throw refusal;
}

/** Waits for running commands. Without Redis, its `quit` would wait for ever. */
async function quit(redis: Stores["redis"]): Promise<void> {
  const ended = new Promise<void>((resolve) => redis.once("end", () => resolve()));
  // An error says that the connection is broken, and it is closed next anyway.
  await within(QUIT_MS, Promise.race([redis.quit(), ended]), () => {}).catch(() => {});
}
