import { stat } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { joinedBytes, Pace, sendable } from "../../src/work/pace.ts";

/** Resolves in the phase in which the event loop delivers what comes from outside: after timers, before immediates. */
const arrival = () => new Promise<void>((resolve) => stat(".", () => resolve()));

test("work that began with what came from outside goes on in a later turn of the event loop", async () => {
  for (let time = 0; time < 5; time++) {
    // A slice that began in an earlier turn may be over before the timer below is due.
    const pace = new Pace(2);
    await arrival();
    let hasTurned = false;
    setTimeout(() => {
      hasTurned = true;
    }, 0);
    while (!pace.isOver());
    await pace.turn();
    expect(hasTurned).toBe(true);
  }
});

test("however many wait for their turn, they share its slice, and come in the order of asking", async () => {
  const pace = new Pace(2);
  const came: number[] = [];
  let turns = 0;
  const counting = setInterval(() => {
    turns += 1;
  }, 0);
  await Promise.all(
    Array.from({ length: 10 }, async (_, one) => {
      await pace.turn();
      while (!pace.isOver());
      came.push(one);
    }),
  );
  clearInterval(counting);
  expect(came).toEqual(Array.from({ length: 10 }, (_, one) => one));
  expect(turns).toBeGreaterThanOrEqual(9);
});

const texts = fc.array(fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("\ud83d", "\udca9", "💩", "ä")));

test.each([new Pace(), new Pace(0)])("texts and bytes are joined as they would be at once", async (pace) => {
  await fc.assert(
    fc.asyncProperty(texts, async (parts) => {
      const some = parts.map((part, at) => (at % 2 === 0 ? part : Buffer.from(part)));
      expect(await joinedBytes(some, pace)).toEqual(Buffer.concat(parts.map((part) => Buffer.from(part))));
    }),
    { numRuns: 30 },
  );
});

test.each([0, 1, 2, 3])("a long text is sent as it is, wherever it is cut: %i", async (before) => {
  for (const unit of ["💩", "\ud83d", "\udca9", "\u0001", "ä"]) {
    const text = "a".repeat(before) + unit.repeat(400_000);
    expect(Buffer.from(text).equals(Buffer.from(await sendable(text, new Pace())))).toBe(true);
  }
});
