import { setTimeout as delay } from "node:timers/promises";
import { schemaFit } from "../../db/schema-fit.ts";
import { sql } from "../../db/sql.ts";
import { UnfitStoreError } from "../../db/unfit.ts";
import type { Context } from "../context.ts";
import { reasonOf } from "../failure.ts";
import { serverOf } from "../operations/redis.ts";

/** A probe that waits longer is given up by most of those who probe. */
const CHECK_TIMEOUT_MS = 2_000;

/** A store, or its schema, that keeps the process from doing its work. */
export interface Lacking {
  what: "postgres" | "schema" | "redis";
  /** Names hosts, ports and roles as the drivers do. */
  reason: string;
}

/**
 * Empty when the process is ready. An edge needs its replica alone: it answers without Redis, and without the centre.
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
  // Hosted servers may forbid CONFIG; then nothing can be said.
  const shown: unknown = await redis.config("GET", "maxmemory-policy").catch(() => []);
  const policy: unknown = Array.isArray(shown) ? shown[1] : undefined;
  if (policy === undefined || policy === "noeviction") return null;
  const reason = `maxmemory-policy is ${policy}, which throws jobs away when memory is short; set it to noeviction`;
  return { what: "redis", reason };
}

async function bounded(what: Lacking["what"], check: Promise<Lacking | null>): Promise<Lacking | null> {
  const timer = new AbortController();
  const silent: Lacking = { what, reason: `no answer within ${CHECK_TIMEOUT_MS} ms` };
  const late = delay(CHECK_TIMEOUT_MS, silent, { signal: timer.signal });
  late.catch(() => {}); // Cancelled because the check was quicker.
  try {
    return await Promise.race([check.catch((error: Error) => ({ what, reason: reasonOf(error) })), late]);
  } finally {
    timer.abort();
  }
}
