import { hostname } from "node:os";
import type { Config } from "../config.ts";
import { levelOf } from "../failure.ts";
import { waitUnlessAborted } from "../waits/repeated.ts";
import type { Logger } from "./log.ts";
import { type RedisClient, withPatience } from "./redis.ts";

/** What a process of Tain is for. */
const ROLES = ["worker", "scheduler", "web"] as const;
type ProcessRole = (typeof ROLES)[number];

const BEAT_MS = 5_000;
/** A process is silent after six missing beats. A busy machine delays one or two. */
const SILENT_MS = 6 * BEAT_MS;
/** A silent process is forgotten after this time, because others do its work or their absence is told. */
const FORGOTTEN_MS = 10 * 60_000;

interface Beating {
  config: Pick<Config, "redisPrefix">;
  redis: RedisClient;
  clock: { now(): Date };
}

/** The processes of one role. */
export interface RoleLife {
  role: ProcessRole;
  /** How many of them beat. */
  living: number;
  /** The names (`machine:pid`) of those that beat, and when each did last. */
  beats: { name: string; at: Date }[];
  /** The names (`machine:pid`) of those that have fallen silent without saying that they end, and since when. */
  silent: { name: string; since: Date }[];
  /** The last beat of any of them, also of one that has ended. Null: none has ever run. */
  lastBeatAt: Date | null;
}

interface Heartbeat extends AsyncDisposable {
  close(): Promise<void>;
}

/**
 * Notes in Redis every five seconds that this process lives. `close` says that it ends.
 *
 * Of two processes with one name, as two servers in one test, the first that ends takes the note away until the next
 * beat of the other.
 */
export function openHeartbeat(ctx: Beating & { log: Logger }, role: ProcessRole): Heartbeat {
  const { config, redis, clock } = ctx;
  const key = keyOf(config);
  const own = `${role} ${hostname()}:${process.pid}`;
  const stopping = new AbortController();
  const attempt = async (run: () => Promise<unknown>) => {
    try {
      await withPatience(redis, run);
    } catch (error) {
      // The connection reports its own outages.
      ctx.log[levelOf(error, "debug")]({ err: error }, "A heartbeat could not be noted");
    }
  };
  const beat = async () => {
    await attempt(() => forgetOld(ctx));
    while (!stopping.signal.aborted) {
      const now = clock.now().getTime();
      await attempt(() => redis.hset(key, { [role]: now, [own]: now }));
      await waitUnlessAborted(BEAT_MS, stopping.signal);
    }
    await attempt(() => redis.hdel(key, own));
  };
  const beating = beat();
  const close = async () => {
    stopping.abort();
    await beating;
  };
  return { close, [Symbol.asyncDispose]: close };
}

/** How the processes of each role live. @throws RedisSilentError */
export async function readLives(ctx: Beating): Promise<RoleLife[]> {
  const beats = await withPatience(ctx.redis, () => ctx.redis.hgetall(keyOf(ctx.config)));
  return livesIn(beats, ctx.clock.now().getTime());
}

/** Pure. @param beats epoch milliseconds by role, and by role and name @param now epoch milliseconds */
function livesIn(beats: Readonly<Record<string, string>>, now: number): RoleLife[] {
  return ROLES.map((role) => {
    const ofRole = Object.entries(beats).flatMap(([field, at]) =>
      field.startsWith(`${role} `) ? [{ name: field.slice(role.length + 1), at: Number(at) }] : [],
    );
    const silent = ofRole.filter(({ at }) => at <= now - SILENT_MS);
    return {
      role,
      living: ofRole.length - silent.length,
      beats: ofRole
        .filter(({ at }) => at > now - SILENT_MS)
        .map(({ name, at }) => ({ name, at: new Date(at) }))
        .sort((one, other) => (one.name < other.name ? -1 : 1)),
      silent: silent
        .filter(({ at }) => at > now - FORGOTTEN_MS)
        .map(({ name, at }) => ({ name, since: new Date(at) }))
        .sort((one, other) => one.since.getTime() - other.since.getTime()),
      lastBeatAt: beats[role] === undefined ? null : new Date(Number(beats[role])),
    };
  });
}

async function forgetOld({ config, redis, clock }: Beating): Promise<void> {
  const key = keyOf(config);
  const before = clock.now().getTime() - FORGOTTEN_MS;
  const old = Object.entries(await redis.hgetall(key)).flatMap(([field, at]) =>
    field.includes(" ") && Number(at) < before ? [field] : [],
  );
  if (old.length > 0) await redis.hdel(key, ...old);
}

function keyOf({ redisPrefix }: Beating["config"]): string {
  return `${redisPrefix}:processes`;
}
