import { expect, test } from "vitest";
import { Problems } from "../../bench/mixed/problems.ts";
import { course } from "../../bench/mixed/samples.ts";

test("what grows by two each second is seen to grow by 120 a minute", () => {
  const figures = Array.from({ length: 100 }, (_, second) => 50 + second * 2);
  expect(course(figures)).toEqual({ first: 59, last: 239, most: 248, aMinute: 120 });
  expect(course(figures, 2)).toEqual({ first: 29.5, last: 119.5, most: 124, aMinute: 60 });
});

test("what goes up and down again does not grow, and one figure alone has no slope", () => {
  const figures = Array.from({ length: 60 }, (_, second) => (second < 30 ? second : 59 - second));
  expect(course(figures)).toMatchObject({ first: 2.5, last: 2.5, most: 29, aMinute: 0 });
  expect(course([7])).toEqual({ first: 7, last: 7, most: 7, aMinute: 0 });
});

test("problems of one kind are counted, and the first of them is shown, cut short", () => {
  const problems = new Problems();
  expect(problems.sentences).toEqual([]);
  problems.add("read list: 500", `/first${"x".repeat(1_000)}`);
  problems.add("read list: 500", "/second");
  problems.add("lost deliveries", "3 of 10", 3);
  expect(problems.counts).toEqual({ "read list: 500": 2, "lost deliveries": 3 });
  expect(problems.sentences[0]).toMatch(/^2 × read list: 500, first: \/firstx+$/);
  expect(problems.sentences[0]?.length).toBeLessThan(400);
});
