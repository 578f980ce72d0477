import { expect, test } from "vitest";
import { TimeLimit } from "../../src/work/signals.ts";
import { LONG_TEST_MS } from "../support/bounds.ts";

test("work for a caller who had gone before it began is aborted at once", () => {
  const limit = new TimeLimit(LONG_TEST_MS, AbortSignal.abort());
  limit.lift();
  expect(limit).toMatchObject({ signal: { aborted: true }, isOver: false });
});

test("work goes on until its caller goes", () => {
  const caller = new AbortController();
  const limit = new TimeLimit(LONG_TEST_MS, caller.signal);
  expect(limit.signal.aborted).toBe(false);
  caller.abort();
  limit.lift();
  expect(limit).toMatchObject({ signal: { aborted: true }, isOver: false });
});

test("work goes on without its caller where it has to, until it takes too long", async () => {
  const limit = new TimeLimit(1, null);
  expect(limit.signal.aborted).toBe(false);
  await new Promise((resolve) => limit.signal.addEventListener("abort", resolve));
  expect(limit.isOver).toBe(true);
});
