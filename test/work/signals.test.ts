import { expect, test } from "vitest";
import { eitherOf, unlessAborted } from "../../src/work/signals.ts";

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

test("one who waits for shared work may leave, and the others get its outcome", async () => {
  const leaving = new AbortController();
  const { promise: work, resolve } = Promise.withResolvers<string>();
  const left = unlessAborted(work, leaving.signal);
  const stayed = unlessAborted(work, new AbortController().signal);
  leaving.abort(new Error("told to stop"));
  await expect(left).rejects.toThrow("told to stop");
  resolve("done");
  expect(await stayed).toBe("done");
  expect(await unlessAborted(work, undefined)).toBe("done");
  await expect(unlessAborted(work, AbortSignal.abort(new Error("too late")))).rejects.toThrow("too late");
});

test("the failure of shared work whose last waiter has left is heard by nobody", async () => {
  const { promise: work, reject } = Promise.withResolvers<string>();
  await expect(unlessAborted(work, AbortSignal.abort(new Error("left")))).rejects.toThrow("left");
  reject(new Error("nobody waits"));
  // An unhandled rejection would end the test run.
  await new Promise((resolve) => setImmediate(resolve));
});
