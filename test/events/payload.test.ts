import { expect, test } from "vitest";
import { PayloadRoom } from "../../src/events/payload.ts";

const LARGE = 300 * 1_024;
const room = () => new PayloadRoom({ mostBytes: 2 * LARGE, patienceMs: 20 });

test("large payloads share their room, in order, and what finds none in time goes without", async () => {
  const shared = room();
  const [one, two] = [await shared.take(LARGE), await shared.take(LARGE)];
  expect(shared.heldBytes).toBe(2 * LARGE);
  expect(await shared.take(LARGE)).toBeNull();
  const [third, fourth] = [shared.take(2 * LARGE), shared.take(LARGE)];
  one?.[Symbol.dispose]();
  // Given back twice, it counts once.
  one?.[Symbol.dispose]();
  expect(shared.heldBytes).toBe(LARGE);
  two?.[Symbol.dispose]();
  const held = await third;
  expect(held).not.toBeNull();
  expect(await fourth).toBeNull();
  held?.[Symbol.dispose]();
  expect(shared.heldBytes).toBe(0);
});

test("what waits behind one that gives up is let in if it fits", async () => {
  const shared = room();
  await shared.take(LARGE);
  const tooLarge = shared.take(2 * LARGE);
  const fits = shared.take(LARGE);
  expect(await tooLarge).toBeNull();
  expect(await fits).not.toBeNull();
});

test("one that is larger than all the room goes alone, and a small one never waits", async () => {
  const shared = room();
  const whole = await shared.take(9 * LARGE);
  expect(whole).not.toBeNull();
  expect(await shared.take(1_000)).not.toBeNull();
  expect(await shared.take(LARGE)).toBeNull();
  expect(shared.heldBytes).toBe(9 * LARGE);
});
