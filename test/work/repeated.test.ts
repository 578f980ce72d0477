import { expect, test } from "vitest";
import { repeated } from "../../src/waits/repeated.ts";

const away = new Error("away");

/** Work that fails so often before it succeeds, and a record of what it was told. */
function failing(times: number, firstMs: number, error: unknown = away) {
  const waits: number[] = [];
  const told = { tries: 0, waits };
  const work = async () => {
    told.tries += 1;
    if (told.tries <= times) throw error;
    return "done";
  };
  const how = {
    policy: { firstMs, longestMs: 2 * firstMs, patienceMs: 600_000 },
    random: () => 0.5,
    isPassing: (one: unknown) => one === away,
    onWait: (_error: unknown, waitMs: number) => void waits.push(waitMs),
  };
  return { work, how, told };
}

test("work is repeated after passing failures, and each wait is told before it begins", async () => {
  const { work, how, told } = failing(3, 1);
  expect(await repeated(work, how)).toBe("done");
  expect(told).toEqual({ tries: 4, waits: [1, 2, 2] });
});

test("another failure is thrown at once", async () => {
  const mistake = new TypeError("mistaken");
  const { work, how, told } = failing(1, 1, mistake);
  await expect(repeated(work, how)).rejects.toBe(mistake);
  expect(told).toEqual({ tries: 1, waits: [] });
});

test("a wait that would outlast the patience is not begun", async () => {
  const { work, how, told } = failing(1, 2_000);
  await expect(repeated(work, { ...how, policy: { ...how.policy, patienceMs: 1_000 } })).rejects.toBe(away);
  expect(told).toEqual({ tries: 1, waits: [] });
});

test("a signal ends the wait", async () => {
  const leaving = new AbortController();
  const { work, how, told } = failing(1, 600_000);
  const policy = { firstMs: 600_000, longestMs: 600_000 };
  const onWait = () => leaving.abort();
  const repeating = repeated(work, { ...how, policy, onWait, signal: leaving.signal });
  await expect(repeating).rejects.toMatchObject({ name: "AbortError" });
  expect(told.tries).toBe(1);
});
