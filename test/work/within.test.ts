import { expect, test } from "vitest";
import { within } from "../../src/waits/within.ts";

const LONG_MS = 600_000;
const never = () => new Promise<never>(() => {});
const tooLate = () => {
  throw new Error("too late");
};
const timers = () => process.getActiveResourcesInfo().filter((what) => what === "Timeout").length;

test("work that ends in time gives its value or its failure, and leaves no timer behind", async () => {
  const before = timers();
  expect(await within(LONG_MS, Promise.resolve("done"), tooLate)).toBe("done");
  await expect(within(LONG_MS, Promise.reject(new Error("refused")), tooLate)).rejects.toThrow("refused");
  // Timers of earlier files may end meanwhile.
  expect(timers()).toBeLessThanOrEqual(before);
});

test("what stands for work that does not end is a value or a failure", async () => {
  expect(await within(1, never(), () => "silent")).toBe("silent");
  await expect(within(1, never(), tooLate)).rejects.toThrow("too late");
});

test("work that ends or fails later changes nothing, and its failure is nobody's", async () => {
  const [slow, failing] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
  const answers = [slow, failing].map(({ promise }) => within(1, promise, () => "silent"));
  expect(await Promise.all(answers)).toEqual(["silent", "silent"]);
  slow.resolve("done");
  failing.reject(new Error("refused"));
  // An unhandled rejection would fail the test.
  await new Promise((resolve) => setImmediate(resolve));
  expect(await Promise.all(answers)).toEqual(["silent", "silent"]);
});
