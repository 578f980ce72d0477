import type { Redis } from "ioredis";
import { schemaFit } from "../../db/schema-fit.ts";
import { sql } from "../../db/sql.ts";
import { UnfitStoreError } from "../../db/unfit.ts";
import type { Context } from "../context.ts";
import { isBug, reasonOf } from "../failure.ts";
import { probeWrite, type WriteRefusal } from "../inbox/write-probe.ts";
import { redisSetting, serverOf } from "../operations/redis.ts";
import { within } from "../waits/within.ts";

/** Most probing programs wait no longer than this. */
const CHECK_TIMEOUT_MS = 2_000;

type LackingCheck =
  | "postgres-away"
  | "postgres-standby"
  | WriteRefusal["check"]
  | "schema"
  | "redis-away"
  | "redis-full"
  | "redis-policy";

/** A store, or its schema, that keeps the process from doing its work. */
export interface Lacking {
  what: "postgres" | "schema" | "redis";
  check: LackingCheck;
  /** The driver's message, which may name hosts, ports and roles. */
  reason: string;
}

/**
 * What keeps the process from being ready; empty if it is ready. A process that reads from a replica alone needs only
 * that: it answers even without Redis.
 * @param refusal whether Postgres takes writes
 */
export async function findLacking(
  ctx: Pick<Context, "config" | "db" | "redis">,
  refusal: () => Promise<WriteRefusal | null> = () => probeWrite(ctx),
): Promise<Lacking[]> {
  const found = await Promise.all([
    bounded("postgres", checkPostgres(ctx, refusal)),
    ctx.db.isReadOnly ? bounded("postgres", checkReplica(ctx)) : bounded("redis", checkRedis(ctx)),
  ]);
  return found.filter((one) => one !== null);
}

async function checkPostgres(
  { db }: Pick<Context, "db">,
  refusal: () => Promise<WriteRefusal | null>,
): Promise<Lacking | null> {
  const fit = await schemaFit(db, { timeoutMs: CHECK_TIMEOUT_MS });
  if (fit instanceof UnfitStoreError) return { what: "schema", check: "schema", reason: fit.message };
  switch (fit) {
    case "same":
    case "newer":
      return db.isReadOnly ? null : lackingWrites(await refusal());
    case "missing":
      return { what: "schema", check: "schema", reason: "migrations are missing; run `node db/migrate.ts`" };
    default:
      return fit satisfies never;
  }
}

function lackingWrites(refused: WriteRefusal | null): Lacking | null {
  if (refused === null) return null;
  const { check, reason } = refused;
  return { what: "postgres", check, reason: `${WRITE_REFUSALS[check]}: ${reason}` };
}

/** What it means that Postgres takes no writes. */
export const WRITE_REFUSALS: Readonly<Record<WriteRefusal["check"], string>> = {
  "postgres-full": "it cannot write, because its disk or memory is full",
  "postgres-read-only": "it takes no writes, because it is a standby or set to read only",
};

async function checkReplica({ db }: Pick<Context, "db">): Promise<Lacking | null> {
  const [row] = await db.query<{ waits: boolean }>(sql`select pg_is_in_recovery() as waits`, {
    timeoutMs: CHECK_TIMEOUT_MS,
  });
  const reason = "it takes writes itself, and so is no replica";
  return row?.waits ? null : { what: "postgres", check: "postgres-standby", reason };
}

async function checkRedis(ctx: Pick<Context, "config" | "redis">): Promise<Lacking | null> {
  if (ctx.redis.status !== "ready") return { what: "redis", check: "redis-away", reason: "cannot be reached" };
  const redis = await serverOf(ctx.redis, ctx.config);
  const full = await findFullRedis(redis, ctx.config);
  if (full !== null) return { what: "redis", check: "redis-full", reason: full };
  const policy = await redisSetting(redis, "maxmemory-policy");
  // A policy that is not known is not checked.
  if (policy === null || policy === "noeviction") return null;
  const reason = `maxmemory-policy is ${policy}, which throws jobs away when memory is short; set it to noeviction`;
  return { what: "redis", check: "redis-policy", reason };
}

/** Long enough to be written, and gone before anybody looks. */
const PROBE_MS = 1_000;

/** Why Redis answers and takes no writes, in its own words. Null: it takes them. @throws any other failure */
export async function findFullRedis(redis: Redis, { redisPrefix }: { redisPrefix: string }): Promise<string | null> {
  try {
    await redis.set(`${redisPrefix}:probe`, "1", "PX", PROBE_MS);
    return null;
  } catch (error) {
    const reason = reasonOf(error);
    // Its memory is full, its disk is, or it has become a replica.
    if (/^(OOM|MISCONF|READONLY|NOREPLICAS)\b/.test(reason)) return `it takes no writes: ${reason}`;
    throw error;
  }
}

async function bounded(what: "postgres" | "redis", check: Promise<Lacking | null>): Promise<Lacking | null> {
  const checked = check.catch((error: unknown) => lackingBy(error, what));
  const reason = `no answer within ${CHECK_TIMEOUT_MS} ms`;
  return await within(CHECK_TIMEOUT_MS, checked, () => ({ what, check: awayOf(what), reason }));
}

/** A store that failed is lacking. A mistake of ours says nothing about the store. */
function lackingBy(error: unknown, what: "postgres" | "redis"): Lacking {
  if (isBug(error)) throw error;
  return { what, check: awayOf(what), reason: reasonOf(error) };
}

function awayOf(what: "postgres" | "redis"): LackingCheck {
  return what === "postgres" ? "postgres-away" : "redis-away";
}
