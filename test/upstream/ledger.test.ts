import fc from "fast-check";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { type BucketState, type Counted, type Lease, Ledger } from "../../src/upstream/quota/ledger.ts";
import { pointsPerMinute } from "../../src/upstream/quota/pace.ts";
import { blockScript, leaseScript, rejectScript, settleScript } from "../../src/upstream/quota/scripts.ts";
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
    share: fc.constantFrom(1, 0.5),
    probes: fc.constantFrom(1, 2),
    api: fc.constantFrom("rest" as const, "graphql" as const),
    // Few requests reach the limits, so some weigh as much as hundreds.
    points: fc.constantFrom(1, 5, 300),
    isWrite: fc.boolean(),
    preferred: fc.subarray(credentials),
  }),
  fc.record({
    kind: fc.constant("settle" as const),
    credential,
    /** Which of the leases that are open, if any; one of a window that may be over or was never there otherwise. */
    lease: fc.option(fc.nat(20)),
    refund: fc.integer({ min: -5, max: 5 }),
    answered: fc.boolean(),
    seen: fc.option(seen),
  }),
  fc.record({
    kind: fc.constant("block" as const),
    credential,
    untilS: fc.option(fc.nat(1_200)),
    agoMs: fc.nat(90_000),
  }),
  fc.record({ kind: fc.constant("reject" as const), credential, forMs: fc.nat(300_000) }),
  fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(1, 999, 2_000, 60_000, 900_000, 3_600_000) }),
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
        const keys = (name: string) => [`${space}:${name}`, `${space}:${name}:core`, `${space}:${name}:under-way`];
        const pointKeys = (name: string) => [`${space}:${name}:points:rest`, `${space}:${name}:points:graphql`];
        const open: { id: string; credential: string; counted: Counted; window: number }[] = [];
        let ids = 0;
        let now = start;
        for (const each of steps) {
          switch (each.kind) {
            case "wait":
              now += each.ms;
              break;
            case "reject":
              ledger.reject(each.credential, now + each.forMs);
              await redis.eval(rejectScript.text, 1, `${space}:${each.credential}`, now, now + each.forMs, "");
              break;
            case "block": {
              const until = each.untilS === null ? null : now + each.untilS * 1_000;
              const startedAt = now - each.agoMs;
              const own = ledger.block(each.credential, { until, startedAt, now });
              expect(
                await redis.eval(blockScript.text, 1, `${space}:${each.credential}`, now, startedAt, until ?? ""),
              ).toBe(own);
              break;
            }
            case "settle": {
              const state: BucketState | null = each.seen && {
                ...each.seen,
                resetAt: each.seen.reset * 1_000 + each.seen.skewMs,
              };
              const [lease = { id: "none", credential: each.credential, counted: "window", window: 0 } as const] =
                each.lease === null ? [] : open.splice(each.lease, 1);
              const { id, counted, window } = lease;
              const { refund, answered } = each;
              const settled = { bucket: "core", id, counted, window, refund, answered, seen: state, now };
              ledger.settle({ ...settled, credential: lease.credential });
              const figures = state ? [state.limit, state.remaining, state.reset, state.resetAt] : [];
              const values = [now, id, counted, window, refund, answered ? 1 : 0, ...figures];
              await redis.eval(settleScript.text, 3, ...keys(lease.credential), ...values);
              break;
            }
            case "lease": {
              const { cost, floor, share, probes, api, points, isWrite, preferred } = each;
              const toll = { id: `lease-${ids++}`, api, points, isWrite };
              const own = ledger.lease({
                ...{ bucket: "core", cost, toll, floor, share, probes, credentials, preferred, now },
              });
              const flags = credentials.map((name) => (preferred.includes(name) ? 1 : 0));
              const reply = (await redis.eval(
                leaseScript.text,
                10,
                ...credentials.flatMap((name) => [...keys(name), `${space}:${name}:points:${api}`, `${space}:${name}`]),
                ...[now, cost, floor, share, probes, toll.id, points, pointsPerMinute[api], isWrite ? 1 : 0],
                ...flags,
              )) as [number, ...unknown[]];
              const granted = credentials[reply[0] - 1];
              const [counted, window, sendAt] = reply.slice(1) as [Counted, number, number];
              const shared: Lease = granted
                ? { credential: granted, counted, window, sendAt }
                : { retryAt: Number(reply[1]), by: reply[2] === 1 ? "pace" : "limit" };
              if (granted) open.push({ id: toll.id, credential: granted, counted, window });
              expect(shared).toEqual(own);
              break;
            }
          }
        }
        for (const name of credentials) {
          const stored = await redis.hmget(`${space}:${name}:core`, "limit", "remaining", "reset", "resetAt", "spent");
          const own = ledger.bucket(name, "core");
          expect(stored.map(Number)).toEqual(
            own ? [own.limit, own.remaining, own.reset, own.resetAt, own.spent] : [0, 0, 0, 0, 0],
          );
          // Nothing stays in Redis for ever.
          for (const key of [...keys(name), ...pointKeys(name)])
            if (await redis.exists(key)) expect(await redis.pttl(key)).toBeGreaterThan(0);
        }
      }),
      { numRuns: 150 },
    );
  } finally {
    await redis.quit();
  }
});
