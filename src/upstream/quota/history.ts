import { runMulti, whileSilent, withPatience } from "../../operations/redis.ts";
import type { Stores } from "../../stores.ts";
import { quotaReport } from "./report.ts";

/** How often the quota is noted. */
export const SAMPLE_MS = 15_000;
/** An hour of it: the windows of REST are as long. */
const SAMPLES_KEPT = 3_600_000 / SAMPLE_MS + 1;

/** How much of a credential's bucket was left at a moment. */
export interface QuotaSample {
  /** Epoch milliseconds, by our clock. */
  at: number;
  figures: { credential: string; bucket: string; limit: number; remaining: number; resetAt: number }[];
}

/**
 * Notes the present quota, and forgets samples older than an hour. Two processes at once note the same moment twice.
 * After a loss of Redis the hour begins empty.
 */
export async function noteQuota(ctx: Pick<Stores, "config" | "db" | "redis" | "clock">): Promise<void> {
  const reports = await quotaReport(ctx);
  const figures = reports.flatMap(({ credential, bucket, limit, remaining, resetAt }) =>
    limit === null || remaining === null || resetAt === null
      ? []
      : [{ credential, bucket, limit, remaining, resetAt: resetAt.getTime() }],
  );
  const sample: QuotaSample = { at: ctx.clock.now().getTime(), figures };
  const key = historyKey(ctx.config);
  const noting = ctx.redis
    .multi()
    .rpush(key, JSON.stringify(sample))
    .ltrim(key, -SAMPLES_KEPT, -1)
    .pexpire(key, 2 * SAMPLES_KEPT * SAMPLE_MS);
  await runMulti(ctx.redis, noting);
}

/** The samples of the last hour, the oldest first; null: Redis does not answer, so they are not known. */
export async function quotaHistory({
  redis,
  config,
  clock,
}: Pick<Stores, "config" | "redis" | "clock">): Promise<QuotaSample[] | null> {
  const since = clock.now().getTime() - SAMPLES_KEPT * SAMPLE_MS;
  const lines = await withPatience(redis, () => redis.lrange(historyKey(config), 0, -1)).catch(whileSilent(null));
  // Only `noteQuota` writes this list.
  return lines?.map((line) => JSON.parse(line) as QuotaSample).filter(({ at }) => at >= since) ?? null;
}

function historyKey({ redisPrefix }: Pick<Stores["config"], "redisPrefix">): string {
  return `${redisPrefix}:quota-history`;
}
