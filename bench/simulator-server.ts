import { generateWorld } from "../src/simulator/generate/generate.ts";
import { openSimulator } from "../src/simulator/simulator.ts";
import { announce } from "./processes.ts";

/**
 * The simulator in a process of its own, with a world of the size that the environment says. It has no limits, unless
 * LIMITS says that it keeps the service's own.
 */
const simulator = await openSimulator({
  seed: 1,
  worldOptions: { mergeableDelayMs: 0 },
  tokens: [{ token: "bench-token", login: "mirror-owner", repositories: "all", write: true }],
});
// GraphQL shows a limit as a 32-bit integer.
if (process.env.LIMITS !== "service") {
  for (const limit of Object.keys(simulator.quota.limits) as (keyof typeof simulator.quota.limits)[])
    simulator.quota.limits[limit] = 1_000_000_000;
}
const { REPOSITORIES, ISSUES, PULLS } = process.env;
generateWorld(simulator.world, {
  seed: 1,
  repositories: Number(REPOSITORIES),
  issues: Number(ISSUES),
  pulls: Number(PULLS),
});
announce(simulator.url, async () => {
  await simulator[Symbol.asyncDispose]();
});
