import fc from "fast-check";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { type BucketState, type Lease, Ledger } from "../../src/upstream/ledger.ts";
import { blockScript, leaseScript, rejectScript, settleScript } from "../../src/upstream/quota-scripts.ts";
import { testRedis } from "../support/database.ts";

const credentials = ["a", "b"];
const start = Date.parse("2026-11-01T12:00:00Z");

const credential = fc.constantFrom(...credentials);
const seen = fc.record({
  limit: fc.constantFrom(100, 5_000),
  remaining: fc.nat(100),
  // Few windows, some a second apart, so that they meet.
  reset: fc.constantFrom(0, 1, 60, 61, 3_600, 7_200).map((s) => start / 1_000 + s),
  skewMs: fc.constantFrom(0, 250, 700_000),
});
const step = fc.oneof(
  fc.record({
    kind: fc.constant("lease" as const),
    cost: fc.nat(30),
    floor: fc.constantFrom(0, 0.02, 0.1),
    preferred: fc.subarray(credentials),
  }),
  fc.record({
    kind: fc.constant("settle" as const),
    credential,
    refund: fc.integer({ min: -5, max: 5 }),
    seen: fc.option(seen),
  }),
  fc.record({
    kind: fc.constant("block" as const),
    credential,
    untilS: fc.option(fc.nat(1_200)),
    agoMs: fc.nat(90_000),
  }),
  fc.record({ kind: fc.constant("reject" as const), credential, forMs: fc.nat(300_000) }),
  fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(1, 999, 60_000, 900_000, 3_600_000) }),
);

test("Redis and a process by itself keep the same rules", async () => {
  const { url, prefix } = testRedis();
  const redis = new Redis(url);
  try {
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60 }), async (steps) => {
        const ledger = new Ledger();
        const space = `${prefix}:${run++}`;
        const keys = (name: string) => [`${space}:${name}`, `${space}:${name}:core`];
        let now = start;
        for (const each of steps) {
          switch (each.kind) {
            case "wait":
              now += each.ms;
              break;
            case "reject":
              ledger.reject(each.credential, now + each.forMs);
              await redis.eval(rejectScript, 1, `${space}:${each.credential}`, now, now + each.forMs);
              break;
            case "block": {
              const until = each.untilS === null ? null : now + each.untilS * 1_000;
              const startedAt = now - each.agoMs;
              const own = ledger.block(each.credential, { until, startedAt, now });
              expect(await redis.eval(blockScript, 1, `${space}:${each.credential}`, now, startedAt, until ?? "")).toBe(
                own,
              );
              break;
            }
            case "settle": {
              const state: BucketState | null = each.seen && {
                ...each.seen,
                resetAt: each.seen.reset * 1_000 + each.seen.skewMs,
              };
              ledger.settle({ credential: each.credential, bucket: "core", refund: each.refund, seen: state, now });
              const figures = state ? [state.limit, state.remaining, state.reset, state.resetAt] : [];
              await redis.eval(settleScript, 2, ...keys(each.credential), now, each.refund, ...figures);
              break;
            }
            case "lease": {
              const { cost, floor, preferred } = each;
              const own = ledger.lease({ bucket: "core", cost, floor, credentials, preferred, now });
              const flags = credentials.map((name) => (preferred.includes(name) ? 1 : 0));
              const [index, rest] = (await redis.eval(
                leaseScript,
                4,
                ...credentials.flatMap(keys),
                now,
                cost,
                floor,
                ...flags,
              )) as [number, number];
              const granted = credentials[index - 1];
              const shared: Lease = granted ? { credential: granted, counted: rest === 1 } : { retryAt: rest };
              expect(shared).toEqual(own);
              break;
            }
          }
        }
        for (const name of credentials) {
          const stored = await redis.hmget(`${space}:${name}:core`, "limit", "remaining", "reset", "resetAt");
          const own = ledger.bucket(name, "core");
          expect(stored.map(Number)).toEqual(own ? [own.limit, own.remaining, own.reset, own.resetAt] : [0, 0, 0, 0]);
          // Nothing stays in Redis for ever.
          for (const key of keys(name)) if (await redis.exists(key)) expect(await redis.pttl(key)).toBeGreaterThan(0);
        }
      }),
      { numRuns: 150 },
    );
  } finally {
    await redis.quit();
  }
});
