import fc from "fast-check";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { parseConfig } from "../../src/config.ts";
import { openLog } from "../../src/operations/log.ts";
import type { BucketState } from "../../src/upstream/protocol/headers.ts";
import { BudgetKeys, SharedBudget } from "../../src/upstream/quota/shared-budget.ts";
import { testRedis } from "../support/database.ts";
import { BudgetModel } from "./budget-model.ts";

const credentials = ["a", "b"];
const start = Date.parse("2026-11-01T12:00:00Z");

const credential = fc.constantFrom(...credentials);
const seen = fc.record({
  limit: fc.constantFrom(100, 5_000),
  remaining: fc.nat(100),
  // There are only a few windows, and some end a second apart. So sequences often meet in one.
  reset: fc.constantFrom(0, 1, 60, 61, 3_600, 7_200).map((s) => start / 1_000 + s),
  skewMs: fc.constantFrom(0, 250, 700_000),
});
const step = fc.oneof(
  fc.record({
    kind: fc.constant("lease" as const),
    cost: fc.nat(30),
    share: fc.constantFrom(1, 0.5),
    preferred: fc.subarray(credentials),
  }),
  fc.record({
    kind: fc.constant("settle" as const),
    credential,
    seen,
  }),
  fc.record({ kind: fc.constant("block" as const), credential, forS: fc.nat(1_200) }),
  fc.record({ kind: fc.constant("reject" as const), credential, forMs: fc.nat(300_000) }),
  fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(1, 999, 2_000, 60_000, 900_000, 3_600_000) }),
);

function stateOf({ limit, remaining, reset, skewMs }: { skewMs: number } & Omit<BucketState, "resetAt">): BucketState {
  return { limit, remaining, reset, resetAt: reset * 1_000 + skewMs };
}

test("the scripts of the budget keep to its rules", async () => {
  const { url, prefix } = testRedis();
  const redis = new Redis(url);
  const config = parseConfig({
    ...{ DATABASE_URL: "postgres://unused", REDIS_URL: url, UPSTREAM_URL: "http://unused" },
    ...{ UPSTREAM_TOKEN: "unused", WEBHOOK_SECRET: "unused-here-and-long", LOG_LEVEL: "silent" },
  });
  const log = openLog(config, { name: "test" });
  try {
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60 }), async (steps) => {
        const model = new BudgetModel();
        const redisPrefix = `${prefix}:${run++}`;
        const keys = new BudgetKeys({ redisPrefix });
        const shared = new SharedBudget({ config: { ...config, redisPrefix }, redis, log }, (name) => name);
        let now = start;
        for (const [index, each] of steps.entries()) {
          switch (each.kind) {
            case "wait":
              now += each.ms;
              break;
            case "reject": {
              const until = now + each.forMs;
              model.reject(each.credential, until);
              await shared.reject(each.credential, { until, why: "", now });
              break;
            }
            case "block": {
              const until = now + each.forS * 1_000;
              const kept = await shared.block(each.credential, { until, startedAt: now, now });
              expect(model.block(each.credential, until)).toBe(kept);
              break;
            }
            case "settle": {
              const state = stateOf(each.seen);
              model.accept(each.credential);
              model.see(each.credential, "core", state, now);
              const lease = {
                credential: each.credential,
                bucket: "core",
                id: "",
                counted: "unmetered",
                window: 0,
              } as const;
              await shared.settle({ ...lease, refund: 0, answered: true, seen: state, now });
              const kept = await redis.hgetall(keys.bucket(each.credential, "core"));
              const { limit, remaining, reset, resetAt, spent } = model.bucket(each.credential, "core", now) ?? {};
              if (resetAt === undefined) expect(Number(kept.resetAt ?? 0)).toBeLessThanOrEqual(now);
              else
                expect(kept).toMatchObject({
                  ...{ limit: String(limit), remaining: String(remaining), reset: String(reset) },
                  ...{ resetAt: String(resetAt), spent: String(spent) },
                });
              break;
            }
            case "lease": {
              // Only all processes together bound the number of requests to an unknown bucket, so this model leaves
              // them out.
              const known = credentials.filter((name) => model.bucket(name, "core", now));
              if (known.length === 0) break;
              const { cost, share, preferred } = each;
              const request = { bucket: "core", cost, share, credentials: known, preferred, now };
              const pace = {
                id: `lease-${index}`,
                api: "rest",
                points: 1,
                isWrite: false,
                floor: 0,
                probes: 1,
              } as const;
              const leased = model.lease(request);
              const granted = "credential" in leased ? model.bucket(leased.credential, "core", now) : null;
              const wanted = granted
                ? { ...leased, counted: "window", window: granted.reset, sendAt: now }
                : { ...leased, by: "limit" };
              expect(await shared.lease({ ...request, ...pace })).toEqual(wanted);
              break;
            }
          }
        }
        // Every key in Redis expires.
        for (const key of await redis.keys(`${redisPrefix}:*`)) expect(await redis.pttl(key)).toBeGreaterThan(0);
      }),
      { numRuns: 150 },
    );
  } finally {
    await redis.quit();
  }
});
