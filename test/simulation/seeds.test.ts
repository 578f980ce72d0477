import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { faultKinds } from "./fault-kinds.ts";
import { planOf } from "./schedule.ts";
import type { Outcome } from "./simulation.ts";
import { readWish } from "./wish.ts";

/** Runs `npm run simulate` without the launcher. */
async function simulate(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const main = fileURLToPath(new URL("./main.ts", import.meta.url));
  return await new Promise((resolve) => {
    const child = execFile(process.execPath, [main, ...args], { maxBuffer: 2 ** 26 }, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode ?? 1, stdout, stderr }),
    );
    onTestFinished(() => void child.kill());
  });
}

/**
 * `SEEDS=20 STEPS=20 npm test -- test/simulation` plays more and longer seeds, and `npm run simulate` the longest. CI
 * sets FIRST_SEED, so that each commit has another seed.
 */
const first = Number(process.env.FIRST_SEED ?? 1);
const seeds = Number(process.env.SEEDS ?? 1);
const steps = process.env.STEPS ?? "8";

test(
  "whatever goes wrong on the way, the mirror becomes equal to a quiet upstream",
  async () => {
    const logs = await mkdtemp(join(tmpdir(), "tain-simulation-"));
    const range = `${first}..${first + seeds - 1}`;
    const args = ["--seeds", range, "--steps", steps, "--workers", "2", "--json", "--logs", logs];
    const { code, stdout, stderr } = await simulate(...args);
    const outcomes = stdout
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Outcome);
    const problems = outcomes.map(({ seed, drift, missed, unfollowed, differences, crashes, hang }) => ({
      ...{ seed, drift, missed, unfollowed, crashes, hang },
      differences: drift + missed + unfollowed > 0 ? differences : [],
    }));
    const equal = { drift: 0, missed: 0, unfollowed: 0, crashes: [], hang: null, differences: [] };
    expect(problems, stderr).toEqual(outcomes.map(({ seed }) => ({ seed, ...equal })));
    expect(outcomes.map(({ seed }) => seed)).toEqual(Array.from({ length: seeds }, (_, index) => first + index));
    expect(outcomes.every(({ deliveries, faults }) => deliveries > 0 && Object.keys(faults).length > 0)).toBe(true);
    expect(code).toBe(0);
    await rm(logs, { recursive: true }); // A failed test keeps them, with the logs of the seed.
  },
  seeds * LONG_TEST_MS,
);

test("a seed is the same each time it is played, and the faults that are not wished for do not happen", () => {
  const faults = new Set(Object.keys(faultKinds)) as Parameters<typeof planOf>[0]["faults"];
  const options = { seed: 5, steps: 300, workers: 4, faults };
  expect(planOf(options)).toEqual(planOf(options));
  expect(planOf({ ...options, seed: 6 })).not.toEqual(planOf(options));
  const deeds = planOf({ ...options, faults: new Set(["kill"]) }).steps.flatMap((step) => step.deeds);
  expect(new Set(deeds.map(({ kind }) => kind))).toEqual(new Set(["weather", "kill"]));
  for (const deed of deeds) if (deed.kind === "weather") expect(deed.settings).toMatchObject({ http: [], lagMs: 0 });
});

test("arguments that make no sense are refused in words, before anything is started", async () => {
  for (const [args, words] of [
    [["--seeds", "9..3"], "--seeds should be like 1..200"],
    [["--steps", "0"], "--steps should be a whole number from 1 on"],
    [["--faults", "drop,earthquake"], '"earthquake" is no fault'],
    [["--plant", "nothing"], 'There is no bug "nothing"'],
    [["--until-found"], "--until-found needs a bug to find: --plant"],
    [["--partitions", "0"], "--partitions should be a whole number from 1 on"],
  ] as const) {
    expect(() => readWish([...args])).toThrow(words);
  }
  // Starting a process that loads the whole simulation is slow, so only one mistake is tried.
  const { code, stderr } = await simulate("--earthquakes");
  expect(stderr).toContain("Unknown option '--earthquakes'");
  expect(stderr).toContain("Usage: npm run simulate");
  expect(code).toBe(2);
});
