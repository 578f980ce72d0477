import { schemaFit } from "../../db/schema-fit.ts";
import { sql } from "../../db/sql.ts";
import { UnfitStoreError } from "../../db/unfit.ts";
import type { Context } from "../context.ts";
import { isBug, reasonOf } from "../failure.ts";
import { redisSetting, serverOf } from "../operations/redis.ts";
import { within } from "../waits/within.ts";

/** Most probing programs wait no longer than this. */
const CHECK_TIMEOUT_MS = 2_000;

/** A store, or its schema, that keeps the process from doing its work. */
export interface Lacking {
  what: "postgres" | "schema" | "redis";
  /** The driver's message, which may name hosts, ports and roles. */
  reason: string;
}

/**
 * What keeps the process from being ready; empty if it is ready. An edge needs only its replica: it answers even
 * without Redis and without the centre.
 */
export async function findLacking(ctx: Pick<Context, "config" | "db" | "redis">): Promise<Lacking[]> {
  const found = await Promise.all([
    bounded("postgres", checkPostgres(ctx)),
    ctx.config.edgeOf === null ? bounded("redis", checkRedis(ctx)) : bounded("postgres", checkReplica(ctx)),
  ]);
  return found.filter((one) => one !== null);
}

async function checkPostgres({ db }: Pick<Context, "db">): Promise<Lacking | null> {
  const fit = await schemaFit(db, { timeoutMs: CHECK_TIMEOUT_MS });
  if (fit instanceof UnfitStoreError) return { what: "schema", reason: fit.message };
  switch (fit) {
    case "same":
    case "newer":
      return null;
    case "missing":
      return { what: "schema", reason: "migrations are missing; run `node db/migrate.ts`" };
    default:
      return fit satisfies never;
  }
}

async function checkReplica({ db }: Pick<Context, "db">): Promise<Lacking | null> {
  const [row] = await db.query<{ waits: boolean }>(sql`select pg_is_in_recovery() as waits`, {
    timeoutMs: CHECK_TIMEOUT_MS,
  });
  return row?.waits ? null : { what: "postgres", reason: "it takes writes itself, and so is no replica for an edge" };
}

async function checkRedis(ctx: Pick<Context, "config" | "redis">): Promise<Lacking | null> {
  if (ctx.redis.status !== "ready") return { what: "redis", reason: "cannot be reached" };
  const redis = await serverOf(ctx.redis, ctx.config);
  await redis.ping();
  const policy = await redisSetting(redis, "maxmemory-policy");
  // A policy that is not known is not checked.
  if (policy === null || policy === "noeviction") return null;
  const reason = `maxmemory-policy is ${policy}, which throws jobs away when memory is short; set it to noeviction`;
  return { what: "redis", reason };
}

async function bounded(what: Lacking["what"], check: Promise<Lacking | null>): Promise<Lacking | null> {
  const checked = check.catch((error: unknown) => lackingBy(error, what));
  return await within(CHECK_TIMEOUT_MS, checked, () => ({ what, reason: `no answer within ${CHECK_TIMEOUT_MS} ms` }));
}

/** A store that failed is lacking. A mistake of ours says nothing about the store. */
function lackingBy(error: unknown, what: Lacking["what"]): Lacking {
  if (isBug(error)) throw error;
  return { what, reason: reasonOf(error) };
}
