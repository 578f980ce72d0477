// Postgres and Redis together: the given ones where the environment names them, embedded ones otherwise.
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { writeSecret } from "./files.mjs";
import { openPostgres } from "./postgres.mjs";
import { openRedis } from "./redis.mjs";
import { Refusal, say } from "./voice.mjs";

/**
 * Opens both at once. `postgres` and `redis` are what openPostgres and openRedis take, or undefined where
 * `given.databaseUrl` or `given.redisUrl` names one. Returns `{ databaseUrl, redisUrl, pids, failed, close }`:
 * `failed` resolves to a sentence when one of ours ends by itself, `close` stops ours, Redis before Postgres.
 */
export async function openStores({ given, postgres, redis }) {
  const opening = await Promise.allSettled([
    given.databaseUrl ? undefined : postgres().then(openPostgres),
    given.redisUrl ? undefined : redis().then(openRedis),
  ]);
  const [database, queue] = opening.map(({ value }) => value);
  const close = async () => {
    await queue?.stop();
    await database?.stop();
  };
  const reasons = opening.filter(({ status }) => status === "rejected").map(({ reason }) => reason);
  if (reasons.length > 0) {
    await close();
    throw (
      reasons.find((reason) => !(reason instanceof Refusal)) ??
      new Refusal(reasons.map(({ message }) => message).join("\n"))
    );
  }
  for (const server of [database, queue]) if (server) say(server.says);
  return {
    databaseUrl: given.databaseUrl || database.url,
    redisUrl: given.redisUrl || queue.url,
    pids: { launcher: process.pid, postgres: database?.pid, redis: queue?.pid },
    failed: Promise.race([database, queue].flatMap((server) => (server ? [server.exited] : []))),
    close,
  };
}

/** Tells `tain` commands where the stores of the running instance are. The file holds passwords. */
export async function publishStores(home, { databaseUrl, redisUrl, pids }) {
  const file = join(home, "stores.json");
  await writeSecret(file, `${JSON.stringify({ databaseUrl, redisUrl, pids }, null, 2)}\n`);
  return async () => await rm(file, { force: true });
}
