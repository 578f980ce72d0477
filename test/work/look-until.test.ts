import { expect, test, vi } from "vitest";
import { lookUntil } from "../../src/waits/repeated.ts";

const looks = (withinMs: number) => ({ policy: { firstMs: 1, longestMs: 4, withinMs }, random: Math.random });

test("what holds at once is looked at once", async () => {
  const look = vi.fn(async () => true);
  expect(await lookUntil(look, looks(20))).toBe(true);
  expect(look).toHaveBeenCalledTimes(1);
});

test("what comes to hold is seen by a later look", async () => {
  const look = vi.fn(async () => look.mock.calls.length === 3);
  expect(await lookUntil(look, looks(60_000))).toBe(true);
  expect(look).toHaveBeenCalledTimes(3);
});

test("what never holds is given up", async () => {
  expect(await lookUntil(async () => false, looks(20))).toBe(false);
});

test("an error ends the looks", async () => {
  const look = vi.fn().mockRejectedValue(new Error("connection lost"));
  await expect(lookUntil(look, looks(20))).rejects.toThrow("connection lost");
  expect(look).toHaveBeenCalledTimes(1);
});
