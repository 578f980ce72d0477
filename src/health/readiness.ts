import { setTimeout as delay } from "node:timers/promises";
import { SchemaTooNewError, schemaFit } from "../../db/schema-fit.ts";
import type { Context } from "../context.ts";

/** A probe that waits longer is given up by most of those who probe. */
const CHECK_TIMEOUT_MS = 2_000;

/** What keeps the process from doing its work, one line each, such as `redis: …`; empty when it is ready. */
export async function missingParts(ctx: Pick<Context, "db" | "redis">): Promise<string[]> {
  const found = await Promise.all([bounded("postgres", checkPostgres(ctx)), bounded("redis", checkRedis(ctx))]);
  return found.filter((line) => line !== null);
}

async function checkPostgres({ db }: Pick<Context, "db">): Promise<string | null> {
  const fit = await schemaFit(db, { timeoutMs: CHECK_TIMEOUT_MS });
  if (fit instanceof SchemaTooNewError) return `schema: ${fit.message}`;
  switch (fit) {
    case "same":
    case "newer":
      return null;
    case "missing":
      return "schema: migrations are missing; run `node db/migrate.ts`";
    default:
      return fit satisfies never;
  }
}

async function checkRedis({ redis }: Pick<Context, "redis">): Promise<string | null> {
  if (redis.status !== "ready") return "redis: cannot be reached";
  await redis.ping();
  // Hosted servers may forbid CONFIG; then nothing can be said.
  const shown: unknown = await redis.config("GET", "maxmemory-policy").catch(() => []);
  const policy: unknown = Array.isArray(shown) ? shown[1] : undefined;
  if (policy === undefined || policy === "noeviction") return null;
  return `redis: maxmemory-policy is ${policy}, which throws jobs away when memory is short; set it to noeviction`;
}

async function bounded(part: string, check: Promise<string | null>): Promise<string | null> {
  const timer = new AbortController();
  const late = delay(CHECK_TIMEOUT_MS, `${part}: no answer within ${CHECK_TIMEOUT_MS} ms`, { signal: timer.signal });
  late.catch(() => {}); // Cancelled because the check was quicker.
  try {
    return await Promise.race([check.catch((error: Error) => `${part}: ${reasonOf(error)}`), late]);
  } finally {
    timer.abort();
  }
}

/** Several addresses that all refuse make an AggregateError, whose own message is empty. */
function reasonOf(error: Error & { code?: string }): string {
  return error.message || error.code || error.name;
}
