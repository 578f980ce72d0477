import { expect, test } from "vitest";
import type { Backoff, Limits } from "../../src/waits/backoff.ts";
import { afterAskedMs, waitAfterMs, waitAtAgeMs } from "../../src/waits/backoff.ts";
import { repeated, type Waiting, Waits } from "../../src/waits/repeated.ts";

const BACKOFF: Backoff = { firstMs: 100, longestMs: 1_000 };

test("each wait is twice as long as the one before, up to the longest, and half of it is left to chance", () => {
  const waits = (random: number) => [1, 2, 3, 4, 5, 100].map((attempt) => waitAfterMs(attempt, BACKOFF, () => random));
  expect(waits(0.5)).toEqual([100, 200, 400, 800, 1_000, 1_000]);
  expect(waits(0)).toEqual([75, 150, 300, 600, 750, 750]);
  expect(waits(1)).toEqual([125, 250, 500, 1_000, 1_250, 1_250]);
});

test("what counts no attempts waits for as long as it is old", () => {
  expect([0, 150, 5_000].map((ageMs) => waitAtAgeMs(ageMs, BACKOFF))).toEqual([100, 150, 1_000]);
  expect(waitAtAgeMs(150, BACKOFF, 2)).toBe(300);
});

test("a server's wait is never shortened, and a second longer at most", () => {
  expect(afterAskedMs(5_000, () => 0)).toBe(5_000);
  expect(afterAskedMs(5_000, () => 1)).toBe(6_000);
  expect(afterAskedMs(-5_000, () => 0)).toBe(0);
});

/** The waits that begin under this policy, and whether it gave up in the end. */
async function waitsOf(policy: Backoff & Limits, askedMs: readonly (number | null)[]): Promise<number[]> {
  const begun: number[] = [];
  // The limits are what these tests vary, so the type cannot know that one of them is set.
  const waits = new Waits({ policy, random: () => 0.5 } as Waiting);
  for (const asked of askedMs) {
    const isAgain = await waits.next({ askedMs: asked, onWait: (waitMs) => begun.push(waitMs) });
    if (!isAgain) return [...begun, Number.NaN];
  }
  return begun;
}

test("there are as many attempts as the policy says", async () => {
  const policy = { firstMs: 1, longestMs: 2, attempts: 4 };
  expect(await waitsOf(policy, [null, null, null, null])).toEqual([1, 2, 2, Number.NaN]);
});

test("the last attempt comes when the time is over", async () => {
  const begun = await waitsOf({ firstMs: 20, longestMs: 600_000, withinMs: 40 }, Array(10).fill(null));
  expect(begun[0]).toBe(20);
  // The last wait is cut to the time that is left. A timer may end a little early.
  expect(begun.filter((waitMs) => waitMs > 22)).toEqual([]);
  expect(begun.at(-1)).toBeNaN();
});

test("a wait is never shorter than the server asked", async () => {
  const waits = new Waits({ policy: { firstMs: 1, longestMs: 1, patienceMs: 600_000 }, random: () => 0 });
  let told = 0;
  await waits.next({ askedMs: 30, onWait: (waitMs) => (told = waitMs) });
  expect(told).toBe(30);
});

test("if the server asks for more time than there is, there is no further attempt", async () => {
  expect(await waitsOf({ firstMs: 1, longestMs: 1, withinMs: 1_000 }, [5_000])).toEqual([Number.NaN]);
  expect(await waitsOf({ firstMs: 1, longestMs: 1, patienceMs: 1_000 }, [5_000])).toEqual([Number.NaN]);
});

test("a success lets the waits begin anew", async () => {
  const waits = new Waits({ policy: { firstMs: 1, longestMs: 8, attempts: 3 }, random: () => 0.5 });
  expect([await waits.next(), await waits.next(), waits.failures]).toEqual([true, true, 2]);
  waits.reset();
  expect([await waits.next(), await waits.next(), await waits.next()]).toEqual([true, true, false]);
});

test("a signal ends a wait: with an error, or as the end of the attempts", async () => {
  const leaving = new AbortController();
  const onWait = () => setImmediate(() => leaving.abort());
  const how = { policy: { firstMs: 600_000, longestMs: 600_000 }, random: () => 0.5, signal: leaving.signal };
  expect(await new Waits(how).nextUnlessAborted({ onWait })).toBe(false);
  await expect(new Waits(how).next()).rejects.toMatchObject({ name: "AbortError" });
});

test("the last failure is thrown", async () => {
  let tries = 0;
  const work = async () => {
    tries += 1;
    throw new Error(`failure ${tries}`);
  };
  const how = { policy: { firstMs: 1, longestMs: 1, attempts: 3 }, random: () => 0.5, isPassing: () => true };
  await expect(repeated(work, how)).rejects.toThrow("failure 3");
});
