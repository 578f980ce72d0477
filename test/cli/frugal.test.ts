import { expect, test } from "vitest";
import { frugalSettings, heapFlags } from "../../src/cli/up/frugal.ts";

const machine = (gib: number, cores = 2) => ({ memoryBytes: gib * 2 ** 30, cores });

test.each([
  [0.25, 2, 256],
  [1, 4, 256],
  [2, 8, 512],
  [64, 16, 1_024],
])(
  "on a machine with %d GiB the heap is bounded by %d MB of young objects, three times, and %d MB of old ones",
  (gib, young, old) => {
    expect(heapFlags({}, machine(gib))).toEqual([`--max-semi-space-size=${young}`, `--max-old-space-size=${old}`]);
  },
);

test("whoever sets a flag decides of it alone", () => {
  const young = { NODE_OPTIONS: "--max-semi-space-size=64 --enable-source-maps" };
  expect(heapFlags(young, machine(1))).toEqual(["--max-old-space-size=256"]);
  expect(heapFlags({ NODE_OPTIONS: "--max-old-space-size=300" }, machine(1))).toEqual(["--max-semi-space-size=4"]);
});

test("a process opens as many connections to Postgres as the cores can use, unless it is told how many", () => {
  const connections = (cores: number, env: NodeJS.ProcessEnv = {}) =>
    frugalSettings(env, machine(1, cores)).DATABASE_CONNECTIONS;
  expect([1, 2, 3, 16].map((cores) => connections(cores))).toEqual(["4", "6", "8", "10"]);
  expect(connections(1, { DATABASE_CONNECTIONS: "20" })).toBe("20");
});
