import { expect, test } from "vitest";
import { generateWorld } from "../../src/simulator/generate.ts";
import { compare } from "../support/comparison.ts";
import { openWorld } from "../support/world.ts";

test("a generated repository is mirrored completely, nasty cases included", async () => {
  await using world = await openWorld({
    simulator: { worldOptions: { mergeableDelayMs: 0 } },
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 1, issues: 250, pulls: 130 }),
  });
  await world.mirror(world.first);
  await world.settle();
  const { counts, differences } = await compare(world.ctx, world.simulator, world.first);
  expect(differences).toEqual([]);
  expect(counts.issues).toBeGreaterThanOrEqual(380);
});
