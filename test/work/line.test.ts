import { expect, test } from "vitest";
import { Line } from "../../src/work/line.ts";

/** A line for room of so many units, and the names of what has gone in so far, in order. */
function open({ most, ...how }: { most: number; rankOf?: (units: number) => number; mayOvertake?: boolean }) {
  let taken = 0;
  const line = new Line<number>(
    {
      fits: (units) => taken + units <= most,
      take: (units) => {
        taken += units;
      },
      free: (units) => {
        taken -= units;
      },
    },
    how,
  );
  const inside: string[] = [];
  const enter = (name: string, units: number, signal?: AbortSignal) =>
    line.enter(units, signal).then((place) => {
      inside.push(name);
      return place;
    });
  return { line, inside, enter, taken: () => taken };
}

test("what finds no room waits for its turn, also where it would fit and one before it does not", async () => {
  const { line, inside, enter, taken } = open({ most: 3 });
  const first = await enter("first", 2);
  const large = enter("large", 3);
  const small = enter("small", 1);
  await Promise.resolve();
  expect({ inside, waiting: line.length }).toEqual({ inside: ["first"], waiting: 2 });
  first[Symbol.dispose]();
  const second = await large;
  expect(inside).toEqual(["first", "large"]);
  // Disposing twice has the effect of disposing once.
  first[Symbol.dispose]();
  expect(taken()).toBe(3);
  second[Symbol.dispose]();
  (await small)[Symbol.dispose]();
  expect({ inside, taken: taken(), waiting: line.length }).toEqual({
    ...{ inside: ["first", "large", "small"], taken: 0, waiting: 0 },
  });
});

test("where it may overtake, what fits does not wait behind what does not", async () => {
  const { inside, enter } = open({ most: 3, mayOvertake: true });
  const first = await enter("first", 2);
  const large = enter("large", 3);
  const small = await enter("small", 1);
  const other = enter("other", 1);
  expect(inside).toEqual(["first", "small"]);
  small[Symbol.dispose]();
  (await other)[Symbol.dispose]();
  first[Symbol.dispose]();
  await large;
  expect(inside).toEqual(["first", "small", "other", "large"]);
});

test("the lowest rank goes in first, and within a rank who came first", async () => {
  const { inside, enter } = open({ most: 4, rankOf: (units) => units });
  const all = await enter("all", 4);
  const places = [enter("3, first", 3), enter("1, first", 1), enter("3, second", 3), enter("1, second", 1)];
  all[Symbol.dispose]();
  for (const place of [places[1], places[3], places[0]]) (await place)?.[Symbol.dispose]();
  await places[2];
  expect(inside).toEqual(["all", "1, first", "1, second", "3, first", "3, second"]);
});

test("who gives up leaves the line with the signal's reason, and lets in those behind who fit", async () => {
  const { line, inside, enter, taken } = open({ most: 3 });
  await enter("first", 2);
  const giving = new AbortController();
  const large = enter("large", 3, giving.signal);
  const small = enter("small", 1);
  const reason = new Error("no longer wanted");
  giving.abort(reason);
  await expect(large).rejects.toBe(reason);
  await small;
  expect({ inside, taken: taken(), waiting: line.length }).toEqual({
    ...{ inside: ["first", "small"], taken: 3, waiting: 0 },
  });
  await expect(enter("late", 1, giving.signal)).rejects.toBe(reason);
});

test("who goes in at once takes its room beyond the bound, and the others wait until that is free", async () => {
  const { line, inside, enter, taken } = open({ most: 1 });
  const first = await enter("first", 1);
  const beyond = line.goIn(1);
  const waiting = enter("waiting", 1);
  first[Symbol.dispose]();
  await Promise.resolve();
  expect({ inside, taken: taken() }).toEqual({ inside: ["first"], taken: 1 });
  beyond[Symbol.dispose]();
  await waiting;
  expect(inside).toEqual(["first", "waiting"]);
});
