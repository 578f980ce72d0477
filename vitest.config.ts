import { defineConfig } from "vitest/config";

// Set by whoever wants to count the tests (.ci/run): a file that receives the results as JSON.
const report = process.env.TAIN_TEST_REPORT;

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/global-setup.ts"],
    // Processes, not threads: a test file may signal, exit or leak without touching its neighbours.
    pool: "forks",
    // More than cores: half of the time a file waits for a process or a store.
    maxWorkers: 3,
    // Generous, since the machine may be many times slower than usual: only what hangs should fail by it.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 300_000 } },
    // Scenarios with killed processes and stopped stores meet real races of the machine they run on. Where nobody watches, one
    // that failed is tried once more; at a desk it shows at once.
    retry: process.env.CI ? 1 : 0,
    reporters: report ? ["default", ["json", { outputFile: report }]] : ["default"],
  },
});
