// `npm run check`: everything that can be said about the sources without running them. Silent when all is well.
import { basename, join } from "node:path";
import { CHECKOUT } from "./checkout.mjs";
import { ensureDependencies } from "./dependencies.mjs";
import { run } from "./processes.mjs";
import { findRuntime, runtimeEnvironment } from "./runtime.mjs";
import { watchForStop } from "./stopping.mjs";

/** @param {string} name */
const installed = (name) => join(CHECKOUT, "node_modules", ".bin", name);

const CHECKS = [
  { program: installed("tsc"), args: ["--noEmit", "--pretty", "false", "-p", "."] },
  // Code for browsers has other globals than Node.js, so it has its own settings.
  { program: installed("tsc"), args: ["--noEmit", "--pretty", "false", "-p", "src/operator/browser"] },
  { program: installed("biome"), args: ["check", "--error-on-warnings", "--max-diagnostics=200", "."] },
  { program: installed("knip"), args: ["--no-progress", "--no-config-hints"] },
  { program: process.execPath, args: [join(CHECKOUT, "scripts/import-arrows.mjs")] },
];

export async function check() {
  const { signal } = watchForStop();
  await ensureDependencies(signal);
  const env = runtimeEnvironment(await findRuntime(), {});
  const outcomes = await Promise.all(
    CHECKS.map(async ({ program, args }) => ({
      name: [basename(program), ...args].join(" "),
      ...(await run(program, args, { cwd: CHECKOUT, env, signal })),
    })),
  );
  const failed = outcomes.filter(({ code }) => code !== 0);
  for (const { name, stdout, stderr } of failed) process.stderr.write(`── ${name}\n${stdout}${stderr}\n`);
  return failed.length === 0 ? 0 : 1;
}
