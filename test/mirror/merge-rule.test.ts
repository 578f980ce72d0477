import fc from "fast-check";
import { expect, test } from "vitest";
import type { Fields } from "../../src/json.ts";
import { fold, type Observation, REPLICA_LAG_MS, type Stored } from "../../src/mirror/store/merge-rule.ts";
import { next, run, START } from "./folding.ts";

/** `SEEDS=100 npm test -- test/mirror/merge-rule` tries more interleavings, a thousand for each. */
const numRuns = Number(process.env.SEEDS ?? 3) * 1_000;

/**
 * The versions of upstream's resource, one after each change. A change moves `updated_at` to its own second, or not at
 * all.
 */
interface Version {
  second: number;
  fields: Fields;
}

const history = fc
  .array(
    fc.record({
      step: fc.nat({ max: 2 }),
      title: fc.nat({ max: 3 }),
      state: fc.constantFrom("open", "closed"),
      closed_by: fc.nat({ max: 2 }),
    }),
    { minLength: 1, maxLength: 6 },
  )
  .map((changes) => {
    let second = 0;
    return changes.map(({ step, ...fields }): Version => {
      second += step;
      return { second, fields: { ...fields, updated_at: new Date(START + second * 1_000).toISOString() } };
    });
  });

/**
 * Observations of a history, each somewhat late: webhooks without `closed_by`, whole reads, and partial reads. A
 * webhook about the other side of a pull request also tells its `updated_at`.
 */
const sightings = (versions: Version[]) =>
  fc.array(
    fc
      .record({
        version: fc.nat({ max: versions.length - 1 }),
        kind: fc.constantFrom("webhook", "read", "partial", "other side"),
        lateMs: fc.nat({ max: 60_000 }),
      })
      .map(({ version, kind, lateMs }): Observation => {
        const { second, fields } = versions[version] as Version;
        const { closed_by, updated_at, ...shown } = fields;
        return {
          fields:
            kind === "read" ? fields : kind === "partial" ? shown : { ...shown, updated_at: updated_at as string },
          stamp: {
            updatedAt: START + second * 1_000,
            seenAt: START + second * 1_000 + lateMs,
            read: kind === "read" || kind === "partial",
          },
          deleted: false,
          extent: kind === "partial" || kind === "other side" ? "partial" : "whole",
        };
      }),
    { maxLength: 12 },
  );

const worlds = history.chain((versions) => fc.record({ versions: fc.constant(versions), seen: sightings(versions) }));

test("whatever was seen, in any order and however often, an authoritative read makes it upstream's truth", () => {
  fc.assert(
    fc.property(worlds, ({ versions, seen }) => {
      const last = versions.at(-1) as Version;
      const latest = Math.max(START, ...seen.map((one) => one.stamp.seenAt));
      const read: Observation = {
        fields: last.fields,
        stamp: { updatedAt: START + last.second * 1_000, seenAt: latest + REPLICA_LAG_MS + 1, read: true },
        deleted: false,
        extent: "whole",
      };
      expect(run([...seen, ...seen, read])?.fields).toEqual(last.fields);
    }),
    { numRuns },
  );
});

test("a stored resource never goes back to an older second", () => {
  fc.assert(
    fc.property(worlds, ({ seen }) => {
      let stored: Stored | undefined;
      for (const one of seen) {
        const after = next(stored, one);
        expect(after?.stamp.updatedAt ?? 0).toBeGreaterThanOrEqual(stored?.stamp.updatedAt ?? 0);
        stored = after;
      }
    }),
  );
});

test("an observation has its effect once", () => {
  fc.assert(
    fc.property(worlds, ({ seen }) => {
      const stored = run(seen);
      for (const one of seen) {
        const once = next(stored, one);
        expect(next(once, one)).toEqual(once);
      }
    }),
  );
});

test("where no two changes share a second, the order of arrival does not matter", () => {
  const distinct = history.map((versions) =>
    versions.map((version, index) => ({
      second: index * 100,
      fields: { ...version.fields, updated_at: new Date(START + index * 100_000).toISOString() },
    })),
  );
  const shuffled = distinct.chain((versions) =>
    sightings(versions).chain((seen) =>
      fc.record({
        seen: fc.constant(seen),
        other: fc.shuffledSubarray(seen, { minLength: seen.length, maxLength: seen.length }),
      }),
    ),
  );
  fc.assert(
    fc.property(shuffled, ({ seen, other }) => {
      expect(run(other)?.fields).toEqual(run(seen)?.fields);
    }),
    { numRuns },
  );
});

/** What happens to one resource, in ms: upstream changes it, a webhook of a change arrives, or a replica is read. */
const life = fc
  .array(
    fc.record({
      afterMs: fc.nat({ max: 2_500 }),
      title: fc.nat({ max: 2 }),
      late: fc.array(delays(), { minLength: 1, maxLength: 3 }),
    }),
    {
      minLength: 1,
      maxLength: 5,
    },
  )
  .chain((changes) =>
    fc.record({
      changes: fc.constant(changes),
      reads: fc.array(fc.record({ at: fc.nat({ max: 60_000 }), lagMs: fc.nat({ max: REPLICA_LAG_MS }) }), {
        maxLength: 4,
      }),
      lags: fc.infiniteStream(fc.nat({ max: REPLICA_LAG_MS })),
    }),
  );

/** Most webhooks arrive at once, and some after minutes. */
function delays() {
  return fc.oneof(fc.nat({ max: 3_000 }), fc.nat({ max: 100_000 }));
}

test("once every webhook has arrived, in whatever order, and each conflict was asked about, what is stored is upstream's", () => {
  fc.assert(
    fc.property(life, ({ changes, reads, lags }) => {
      let at = START;
      const versions = changes.map(({ afterMs, title }) => {
        at += afterMs;
        return { at, fields: { title, updated_at: new Date(Math.floor(at / 1_000) * 1_000).toISOString() } };
      });
      const first = versions[0] as (typeof versions)[number];
      const seen = (version: typeof first, seenAt: number, read: boolean): Observation => ({
        fields: version.fields,
        stamp: { updatedAt: Date.parse(version.fields.updated_at), seenAt, read },
        deleted: false,
        extent: "whole",
      });
      const read = (readAt: number, lagMs: number) =>
        seen(versions.findLast((version) => version.at <= readAt - lagMs) ?? first, readAt, true);
      const waiting = [
        ...versions.flatMap((version, index) =>
          (changes[index]?.late ?? []).map((lateMs) => seen(version, version.at + lateMs, false)),
        ),
        ...reads.map((one) => read(first.at + one.lagMs + one.at, one.lagMs)),
      ];
      let stored: Stored | undefined;
      for (let asked = 0; waiting.length > 0; ) {
        waiting.sort((a, b) => a.stamp.seenAt - b.stamp.seenAt);
        const next = waiting.shift() as Observation;
        const folded = fold(stored, next);
        if (folded.outcome !== "known") stored = folded.next ?? stored;
        if (folded.outcome !== "conflict") continue;
        asked += 1;
        expect(asked).toBeLessThan(100);
        waiting.push(read(next.stamp.seenAt + REPLICA_LAG_MS + 1, lags.next().value as number));
      }
      expect(stored?.fields).toEqual(versions.at(-1)?.fields);
    }),
    { numRuns },
  );
});
