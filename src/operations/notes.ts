import type { Config } from "../config.ts";
import { type RedisClient, runMulti, withPatience } from "./redis.ts";

/** What one process has seen go wrong, for all that tell how the mirror stands. */
type NoteName = "upstream" | "webhooks";

export interface Note {
  /** When it was first seen, since it was last forgotten. */
  since: Date;
  /** When it was last seen. */
  at: Date;
  /** In words, the last time. */
  reason: string;
}

interface Noting {
  config: Pick<Config, "redisPrefix">;
  redis: RedisClient;
  clock: { now(): Date };
}

/**
 * Notes in Redis that something went wrong.
 * @param keptMs how long the note stays when nothing more goes wrong
 * @throws RedisSilentError
 */
export async function putNote(
  { config, redis, clock }: Noting,
  name: NoteName,
  { reason, keptMs }: { reason: string; keptMs: number },
): Promise<void> {
  const key = keyOf(config, name);
  const now = clock.now().getTime();
  const noting = redis.multi().hsetnx(key, "since", now).hset(key, { at: now, reason }).pexpire(key, keptMs);
  await runMulti(redis, noting);
}

/** What was noted is over. @throws RedisSilentError */
export async function forgetNote({ config, redis }: Omit<Noting, "clock">, name: NoteName): Promise<void> {
  await withPatience(redis, () => redis.del(keyOf(config, name)));
}

/** Null: nothing goes wrong. @throws RedisSilentError */
export async function readNote({ config, redis }: Omit<Noting, "clock">, name: NoteName): Promise<Note | null> {
  const { since, at, reason = "" } = await withPatience(redis, () => redis.hgetall(keyOf(config, name)));
  if (since === undefined) return null;
  return { since: new Date(Number(since)), at: new Date(Number(at)), reason };
}

function keyOf({ redisPrefix }: Noting["config"], name: NoteName): string {
  return `${redisPrefix}:noted:${name}`;
}
