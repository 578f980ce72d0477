// Opens Postgres and Redis: the stores that the environment names, and otherwise embedded ones.
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "./failure.mjs";
import { writeSecret } from "./files.mjs";
import { openPostgres } from "./postgres.mjs";
import { openRedis } from "./redis.mjs";
import { Refusal, say } from "./voice.mjs";

/**
 * `failed` resolves to a sentence if an embedded store ends by itself. `close` stops the embedded stores, Redis before
 * Postgres. `pids` is only for people to read.
 * @typedef {{
 *   databaseUrl: string, redisUrl: string, failed: Promise<string>, close(): Promise<void>,
 *   pids: { launcher: number, postgres: number | undefined, redis: number | undefined }, }} Stores
 */

/**
 * Opens both at once. `postgres` and `redis` return the arguments of openPostgres and openRedis. They are not called if
 * `given` names the store.
 * @param {{
 *   given: { databaseUrl: string | undefined, redisUrl: string | undefined },
 *   postgres: () => Promise<Parameters<typeof openPostgres>[0]>,
 *   redis: () => Promise<Parameters<typeof openRedis>[0]>, }} wanted
 * @returns {Promise<Stores>}
 */
export async function openStores({ given, postgres, redis }) {
  const [postgresOpening, redisOpening] = await Promise.allSettled([
    given.databaseUrl ? undefined : postgres().then(openPostgres),
    given.redisUrl ? undefined : redis().then(openRedis),
  ]);
  const database = postgresOpening.status === "fulfilled" ? postgresOpening.value : undefined;
  const queue = redisOpening.status === "fulfilled" ? redisOpening.value : undefined;
  const close = async () => {
    await queue?.stop();
    await database?.stop();
  };
  const reasons = [postgresOpening, redisOpening].flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
  if (reasons.length > 0) {
    await close();
    throw reasons.find((reason) => !(reason instanceof Refusal)) ?? new Refusal(reasons.map(messageOf).join("\n"));
  }
  const ours = [database, queue].filter((server) => server !== undefined);
  for (const server of ours) say(server.says);
  return {
    databaseUrl: given.databaseUrl || urlOf(database),
    redisUrl: given.redisUrl || urlOf(queue),
    pids: { launcher: process.pid, postgres: database?.pid, redis: queue?.pid },
    failed: Promise.race(ours.map(({ exited }) => exited)),
    close,
  };
}

/** @param {import("./store-server.mjs").StoreServer | undefined} server */
function urlOf(server) {
  if (!server) throw new Error("A store is neither given nor opened");
  return server.url;
}

/**
 * Writes the addresses of the running instance's stores to a file for `tain` commands. The file holds passwords.
 * @param {string} home
 * @param {Stores} stores
 */
export async function publishStores(home, { databaseUrl, redisUrl, pids }) {
  const file = join(home, "stores.json");
  await writeSecret(file, `${JSON.stringify({ databaseUrl, redisUrl, pids }, null, 2)}\n`);
  return async () => await rm(file, { force: true });
}
