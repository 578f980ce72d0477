import { expect, test } from "vitest";
import { eitherOf } from "../../src/work/signals.ts";

test("either of two signals aborts, for the reason of the first, and once", () => {
  const [one, other] = [new AbortController(), new AbortController()];
  const either = eitherOf(one.signal, other.signal);
  let heard = 0;
  either.addEventListener("abort", () => {
    heard += 1;
  });
  expect(either.aborted).toBe(false);
  other.abort(new Error("gone"));
  one.abort(new Error("late"));
  expect(either.reason).toEqual(new Error("gone"));
  expect(heard).toBe(1);
});

test("a signal that has aborted before counts, with its reason", () => {
  const open = new AbortController();
  const either = eitherOf(open.signal, AbortSignal.abort(new Error("left early")));
  expect(either.aborted).toBe(true);
  expect(either.reason).toEqual(new Error("left early"));
});
