import { defineConfig } from "vitest/config";
import { PATIENCE_MS, TEST_MS } from "./test/support/bounds.ts";
import { LongestFirst } from "./test/support/longest-first.ts";
import { RunReport } from "./test/support/run-report.ts";
import { LONG, longFilesOutside, QUICK } from "./test/tiers.ts";

const everything = "test/**/*.test.ts";

export default defineConfig({
  test: {
    globalSetup: ["test/support/global-setup.ts"],
    // Processes, not threads: a test file may signal processes and change flags without touching those that run beside it.
    pool: "forks",
    // What a dependency is about to take away fails here first.
    execArgv: ["--throw-deprecation", "--import", new URL("test/support/end-with-vitest.ts", import.meta.url).href],
    // Node.js reads the sources as it does in production. To transform them took a sixth of the processor time of a test process.
    experimental: { viteModuleRunner: false },
    // Files of one process share its modules. To load these anew for each file took a sixth of the suite's processor time.
    isolate: false,
    // More than cores: most of the time the dearest files wait for processes, stores and upstream's pace.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    // What hangs ends by this; a machine that is ten times slower than usual passes.
    testTimeout: TEST_MS,
    hookTimeout: TEST_MS,
    expect: { poll: { timeout: PATIENCE_MS } },
    // Where nobody watches, a test that failed is run once more to learn whether it always fails. RunReport fails the run all the same.
    retry: process.env.CI ? 1 : 0,
    // TAIN_TEST_REPORT names a file for the counts; .ci/run sets it.
    reporters: ["default", new RunReport(process.env.TAIN_TEST_REPORT)],
    projects: [
      { extends: true, test: { name: "quick", include: QUICK } },
      { extends: true, test: { name: "long", include: LONG } },
      {
        extends: true,
        test: {
          name: "others",
          include: [everything],
          // `.ci/run` sets TAIN_LONG_PART, so that each of the long files is run with some commits.
          exclude: [...QUICK, ...longFilesOutside(process.env.TAIN_LONG_PART), "**/node_modules/**"],
        },
      },
    ],
  },
});
