import { expect, test, vi } from "vitest";
import { lookUntil } from "../../db/look-again.ts";

const LOOKS = { firstWaitMs: 1, longestWaitMs: 4, withinMs: 20 };

test("what holds at once is looked at once", async () => {
  const look = vi.fn(async () => true);
  expect(await lookUntil(look, LOOKS)).toBe(true);
  expect(look).toHaveBeenCalledTimes(1);
});

test("what comes to hold is seen by a later look", async () => {
  const look = vi.fn(async () => look.mock.calls.length === 3);
  expect(await lookUntil(look, { ...LOOKS, withinMs: 60_000 })).toBe(true);
  expect(look).toHaveBeenCalledTimes(3);
});

test("what never holds is given up", async () => {
  expect(await lookUntil(async () => false, LOOKS)).toBe(false);
});

test("an error ends the looks", async () => {
  const look = vi.fn().mockRejectedValue(new Error("connection lost"));
  await expect(lookUntil(look, LOOKS)).rejects.toThrow("connection lost");
  expect(look).toHaveBeenCalledTimes(1);
});
