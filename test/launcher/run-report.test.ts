import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const checkout = fileURLToPath(new URL("../../", import.meta.url));

const TESTS = `
  let runs = 0;
  test("meets a race", () => {
    runs += 1;
    if (runs === 1) throw new Error("lost it");
  });
  test("holds", () => {});
  test.skip("needs what is not here (skipped without it)", () => {});
`;

/** The suite's own configuration, but for which files are tests. */
const CONFIG = `
  import config from ${JSON.stringify(join(checkout, "vitest.config.ts"))};
  const { projects, globalSetup, ...test } = config.test;
  export default { test: { ...test, globals: true, include: ["*.test.js"] } };
`;

test("in CI a test that passes only when it is run again is named and fails the run, and what is skipped is named", async () => {
  const folder = await mkdtemp(join(tmpdir(), "tain-report-"));
  await writeFile(join(folder, "vitest.config.ts"), CONFIG);
  await writeFile(join(folder, "some.test.js"), TESTS);
  const counts = join(folder, "counts.json");
  const { code, stdout } = await runVitest(folder, { CI: "true", TAIN_TEST_REPORT: counts });
  expect(stdout).toContain(
    "Flaky, which is a failure: some.test.js > meets a race passed only when it was run again\n",
  );
  expect(stdout).toContain("Skipped: some.test.js > needs what is not here (skipped without it)\n");
  expect(JSON.parse(await readFile(counts, "utf8"))).toEqual({ passed: 1, failed: 1, skipped: 1 });
  expect(code).toBe(1);
  await rm(folder, { recursive: true });
});

function runVitest(folder: string, env: NodeJS.ProcessEnv): Promise<{ code: number; stdout: string }> {
  const vitest = join(checkout, "node_modules", "vitest", "vitest.mjs");
  const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("VITEST")));
  return new Promise((resolve) => {
    const options = { cwd: folder, env: { ...clean, ...env } };
    const child = execFile(process.execPath, [vitest, "run", "--root", folder], options, (_error, stdout) =>
      resolve({ code: child.exitCode ?? -1, stdout }),
    );
  });
}
