import { expect, test } from "vitest";
import { draws } from "../../bench/corpus-web.ts";
import { medianInterval } from "../../bench/measure.ts";

const upTo = (count: number) => Array.from({ length: count }, (_, at) => at + 1);

test("the interval of a median is what tables of the sign test give", () => {
  expect(medianInterval(upTo(5))).toBeNull();
  expect(medianInterval(upTo(6))).toEqual([1, 6]);
  expect(medianInterval(upTo(10).toReversed())).toEqual([2, 9]);
  expect(medianInterval(upTo(20))).toEqual([6, 15]);
});

test("it holds the true median 19 times of 20, also of skewed figures", () => {
  const draw = draws(7);
  let held = 0;
  for (let time = 0; time < 2_000; time++) {
    const [low, high] = medianInterval(upTo(10).map(() => draw() ** 4)) ?? [1, 0];
    if (low <= 0.5 ** 4 && 0.5 ** 4 <= high) held += 1;
  }
  expect(held).toBeGreaterThan(1_900);
});
