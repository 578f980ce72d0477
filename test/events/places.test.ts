import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { type Place, Places } from "../../src/events/places.ts";

const NEVER_MS = 3_600_000;

/** Asks for a place, and says whether it is there. */
function asking(places: Places): { place: Place | null; come: Promise<Place> } {
  const one: ReturnType<typeof asking> = { place: null, come: places.take() };
  void one.come.then((place) => {
    one.place = place;
  });
  return one;
}

test("so many requests have places at once, and the next ones wait in order", async () => {
  const places = new Places({ places: 2, quickMs: NEVER_MS });
  const [first, second] = [await places.take(), await places.take()];
  const [third, fourth] = [asking(places), asking(places)];
  await turn();
  expect([third.place, fourth.place]).toEqual([null, null]);
  first[Symbol.dispose]();
  // Given back twice, it counts once.
  first[Symbol.dispose]();
  const come = await third.come;
  await turn();
  expect(fourth.place).toBeNull();
  second[Symbol.dispose]();
  come[Symbol.dispose]();
  (await fourth.come)[Symbol.dispose]();
});

test("a target that takes long to answer holds nobody up, and its answer counts until it is noted", async () => {
  const places = new Places({ places: 1, quickMs: 1 });
  const slow = await places.take();
  const next = await places.take();
  for (const one of [slow, next]) one.answered();
  const waiting = asking(places);
  next[Symbol.dispose]();
  await turn();
  expect(waiting.place).toBeNull();
  slow[Symbol.dispose]();
  (await waiting.come)[Symbol.dispose]();
});
