import { redisTooOld } from "../../../db/unfit.ts";
import { parseRedisAddress } from "../../config/redis-address.ts";
import type { Context } from "../../context.ts";
import { rootReasonOf } from "../../failure.ts";
import { findFullRedis } from "../../health/readiness.ts";
import { diskKnowledge, type RedisFacts, redisFacts } from "../../inbox/redis-disk.ts";
import { redisSetting, serverOf } from "../../operations/redis.ts";
import { refusalOf } from "../../operations/redis-refusal.ts";
import { clockFinding, type Finding, Findings, problem, unfit } from "./finding.ts";

/** Whether Redis is there and fit, and its clock. Never throws: a failure is a finding. */
export async function examineRedis(ctx: Pick<Context, "config" | "redis" | "clock">): Promise<Finding[]> {
  const { clock } = ctx;
  try {
    if (ctx.redis.status !== "ready")
      throw new Error((await refusalOf(parseRedisAddress(ctx.config.redisUrl))) ?? "no connection comes about");
    const redis = await serverOf(ctx.redis, ctx.config);
    const askedAt = clock.now().getTime();
    const [seconds = 0, microseconds = 0] = (await redis.time()).map(Number);
    const aheadMs = seconds * 1_000 + microseconds / 1_000 - (askedAt + clock.now().getTime()) / 2;
    const texts = [await redis.info("server"), await redis.info("memory"), await redis.info("persistence")];
    const settings = { save: await redisSetting(redis, "save"), fsync: await redisSetting(redis, "appendfsync") };
    const full = await findFullRedis(redis, ctx.config);
    return [
      ...redisFindings(redisFacts(texts.join("\n")), settings),
      ...(full === null ? [] : [problem("redis-full", `Redis answers, but ${full}`, "Give it more memory or disk")]),
      clockFinding("Redis", aheadMs),
    ];
  } catch (error) {
    return [
      problem(
        "redis-away",
        `Redis cannot be used: ${rootReasonOf(error)}`,
        "See that REDIS_URL is right and the server runs",
      ),
    ];
  }
}

/** Pure. @param settings the settings of snapshots and of the append-only file; null if Redis does not show them */
export function redisFindings(
  facts: RedisFacts,
  { save, fsync }: { save: string | null; fsync: string | null },
): Finding[] {
  const version = facts.get("redis_version") ?? "?";
  const refusal = redisTooOld(version);
  const name = facts.has("valkey_version") ? `Valkey ${facts.get("valkey_version")}` : `Redis ${version}`;
  const found = new Findings("redis");
  if (refusal) found.all.push(unfit("redis-version", refusal));
  else found.ok(name);

  const policy = facts.get("maxmemory_policy");
  if (policy === undefined)
    found.warning(
      "redis-policy",
      "It is not told what happens when memory is short",
      "See that maxmemory-policy is noeviction",
    );
  else if (policy === "noeviction") found.ok("maxmemory-policy is noeviction");
  else
    found.problem(
      "redis-policy",
      `maxmemory-policy is ${policy}, which throws jobs away when memory is short`,
      "Set maxmemory-policy to noeviction",
    );

  const [used, most] = [Number(facts.get("used_memory")), Number(facts.get("maxmemory"))];
  if (most > 0 && used > most * 0.9)
    found.warning(
      "redis-memory",
      `${Math.round((used / most) * 100)} % of its memory is in use`,
      "Give it more; when it is full it refuses jobs",
    );

  if (facts.get("aof_enabled") !== "1") {
    const keeps = save ? "snapshots only" : save === null ? "no append-only file" : "nothing on disk";
    found.warning(
      "redis-disk",
      `Redis keeps ${keeps}: while Postgres is away deliveries are refused`,
      "Set appendonly to yes",
    );
    return found.all;
  }
  const known = diskKnowledge(facts, fsync);
  if (facts.get("aof_last_write_status") === "err")
    found.problem("redis-disk", "Redis cannot write its append-only file", "See its log and its disk");
  else if (typeof known === "object")
    found.warning(
      "redis-disk",
      `${known.problem}: while Postgres is away deliveries are refused`,
      "Set appendfsync to always, or use Redis 7.2 or newer, or Valkey",
    );
  else found.ok("Redis keeps an append-only file");
  return found.all;
}
