// `npm run check`: everything that can be said about the sources without running them. Silent when all is well.
import { join } from "node:path";
import { checkout } from "./checkout.mjs";
import { ensureDependencies } from "./dependencies.mjs";
import { run } from "./processes.mjs";
import { findRuntime, runtimeEnvironment } from "./runtime.mjs";
import { watchForStop } from "./stopping.mjs";

const checks = [
  ["tsc", ["--noEmit", "--pretty", "false", "-p", "."]],
  ["biome", ["check", "--error-on-warnings", "--max-diagnostics=200", "."]],
  ["knip", ["--no-progress", "--no-config-hints"]],
];

export async function check() {
  const { signal } = watchForStop();
  await ensureDependencies(signal);
  const env = runtimeEnvironment(await findRuntime(), {});
  const outcomes = await Promise.all(
    checks.map(async ([name, args]) => ({
      name,
      ...(await run(join(checkout, "node_modules", ".bin", name), args, { cwd: checkout, env, signal })),
    })),
  );
  const failed = outcomes.filter(({ code }) => code !== 0);
  for (const { name, stdout, stderr } of failed) process.stderr.write(`── ${name}\n${stdout}${stderr}\n`);
  return failed.length === 0 ? 0 : 1;
}
