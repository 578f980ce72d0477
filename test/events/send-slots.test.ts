import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { type SendSlot, SendSlots } from "../../src/events/send-slots.ts";

const NEVER_MS = 3_600_000;

/** Asks for a slot, and says whether it is there. */
function asking(slots: SendSlots): { slot: SendSlot | null; come: Promise<SendSlot> } {
  const one: ReturnType<typeof asking> = { slot: null, come: slots.take() };
  void one.come.then((slot) => {
    one.slot = slot;
  });
  return one;
}

test("so many requests have slots at once, and the next ones wait in order", async () => {
  const slots = new SendSlots({ slots: 2, quickMs: NEVER_MS });
  const [first, second] = [await slots.take(), await slots.take()];
  const [third, fourth] = [asking(slots), asking(slots)];
  await turn();
  expect([third.slot, fourth.slot]).toEqual([null, null]);
  first[Symbol.dispose]();
  // Given back twice, it counts once.
  first[Symbol.dispose]();
  const come = await third.come;
  await turn();
  expect(fourth.slot).toBeNull();
  second[Symbol.dispose]();
  come[Symbol.dispose]();
  (await fourth.come)[Symbol.dispose]();
});

test("a target that takes long to answer holds nobody up, and its answer counts until it is noted", async () => {
  const slots = new SendSlots({ slots: 1, quickMs: 1 });
  const slow = await slots.take();
  const next = await slots.take();
  for (const one of [slow, next]) one.answered();
  const waiting = asking(slots);
  next[Symbol.dispose]();
  await turn();
  expect(waiting.slot).toBeNull();
  slow[Symbol.dispose]();
  (await waiting.come)[Symbol.dispose]();
});
