import { execFile } from "node:child_process";
import { platform } from "node:os";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { openContext } from "../../src/context.ts";
import { resolveSelections } from "../../src/sync/following/selection.ts";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { testConfig, testEnvironment, UPSTREAM_TOKEN } from "../support/config.ts";
import { openTestDatabase, testRedis } from "../support/database.ts";
import { printFigures } from "../support/figures.ts";
import { until } from "../support/patience.ts";
import { startProgram } from "../support/program.ts";

/** The test reads the peak of memory from Linux's /proc. */
const canMeasure = platform() === "linux";

/**
 * Loading the program's modules leaves some 350 MB of garbage. By default V8 collects it late, and anything smaller
 * would go unseen. A small nursery shows what the copy itself needs.
 */
const smallNursery = ["--max-semi-space-size=1"];

/** The large size takes minutes, so it has to be asked for. */
const wantsLarge = process.env.TAIN_LARGE === "1";

test.skipIf(!canMeasure)(
  "a worker's memory does not grow with the repository it copies",
  async () => {
    // At such small sizes pools and caches still fill. A copy that kept every resource would need more than twice as
    // much.
    await compareMemory(1_500, 6_000, smallNursery, 1.5);
  },
  LONG_TEST_MS,
);

test.skipIf(!canMeasure || !wantsLarge).each<[string, readonly string[]]>([
  ["as it runs", []],
  ["with a small nursery", smallNursery],
])(
  "a worker that copies 100,000 issues needs no more memory than for 10,000, %s (TAIN_LARGE=1)",
  async (_how, nodeFlags) => {
    await compareMemory(10_000, 100_000, nodeFlags, 1.3);
  },
  3_600_000,
);

/**
 * This program makes objects at one place of its code. They outlive several collections of the nursery at first, and
 * later do not.
 */
const LONG_LIVED = `
  const kept = [];
  const made = (number) => ({ number });
  for (let number = 0; number < 2_000_000; number++) {
    kept.push(made(number));
    if (kept.length > 500_000) kept.length = 0;
  }`;

test("a process makes no object old from the start because others of its kind lived long", async () => {
  const entry = new URL("../../src/operations/entry.ts", import.meta.url);
  const asProcess = `const { runProcess } = await import(${JSON.stringify(entry.href)}); await runProcess(async () => {${LONG_LIVED}})`;
  expect(await madeOld(LONG_LIVED)).not.toEqual([]);
  expect(await madeOld(asProcess)).toEqual([]);
});

/** The places in a program's code whose objects V8 makes old from the start, as V8 reports them. */
async function madeOld(program: string): Promise<string[]> {
  const flags = ["--trace-pretenuring-statistics", ...smallNursery, "--input-type=module", "--eval", program];
  const { stdout } = await promisify(execFile)(process.execPath, flags, { maxBuffer: 2 ** 26 });
  return stdout.split("\n").filter((line) => line.includes("=> tenure"));
}

async function compareMemory(few: number, many: number, nodeFlags: readonly string[], most: number): Promise<void> {
  const small = await copied(few, nodeFlags);
  const large = await copied(many, nodeFlags);
  const ratio = large.peakBytes / small.peakBytes;
  printFigures("memory", {
    nursery: nodeFlags === smallNursery ? "small" : "as it runs",
    ratio,
    small: rounded(small),
    large: rounded(large),
  });
  expect(ratio).toBeLessThanOrEqual(most);
}

interface Copied {
  issues: number;
  resources: number;
  peakBytes: number;
  seconds: number;
}

/** Copies a generated repository of so many issues. The worker and upstream each run as a process of their own. */
async function copied(issues: number, nodeFlags: readonly string[]): Promise<Copied> {
  await using resources = new AsyncDisposableStack();
  const database = resources.use(await openTestDatabase());
  // This test does not measure how fast upstream lets the mirror go.
  const limits = JSON.stringify({ core: 1e9, graphql: 1e9, restPointsPerMinute: null, graphqlPointsPerMinute: null });
  const upstream = startProgram("src/simulator/main.ts", {}, [
    ...[
      "--repositories",
      "1",
      "--issues",
      String(issues),
      "--pulls",
      String(issues / 10),
      "--token",
      UPSTREAM_TOKEN,
      "--limits",
      limits,
    ],
  ]);
  await until("upstream listens", async () => upstream.lines.some((line) => line.ready === true));
  const { url, repositories } = upstream.lines.find((line) => line.ready === true) as unknown as {
    url: string;
    repositories: string[];
  };

  const stores = { database: database.url, redis: testRedis(), upstream: url };
  const settings = { REPOSITORIES: repositories[0] ?? "", LOG_LEVEL: "warn" };
  const ctx = await openContext(testConfig(stores, { ...settings, LOG_LEVEL: "silent" }), resources, { name: "test" });
  await resolveSelections(ctx);
  const startedAt = performance.now();
  const worker = startProgram("workers/main.ts", testEnvironment(stores, settings), [], { nodeFlags });
  await until(
    "the copy is complete",
    async () => {
      if (worker.hasExited) throw new Error(`The worker has ended: ${JSON.stringify(worker.lines)}`);
      const rows = await ctx.db.query(sql`select from repository_syncs where state = 'live'`);
      return rows.length > 0;
    },
    3_000_000,
  );
  const seconds = (performance.now() - startedAt) / 1_000;
  const peakBytes = await worker.peakResidentBytes();
  const rows = await ctx.db.query<{ resources: number; issues: number }>(sql`
    select sum(resources)::int as resources, (select count(*)::int from issues where id is not null) as issues
      from backfill_phases`);
  await worker.stop();
  await upstream.kill();
  expect(rows[0]?.issues).toBeGreaterThanOrEqual(issues);
  return { issues, peakBytes, seconds, resources: rows[0]?.resources ?? 0 };
}

function rounded({ issues, resources, peakBytes, seconds }: Copied) {
  const [peakMiB, perSecond] = [Math.round(peakBytes / 1_048_576), Math.round(resources / seconds)];
  return { issues, resources, seconds: Math.round(seconds), peakMiB, perSecond };
}
