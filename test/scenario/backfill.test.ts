import { expect, test } from "vitest";
import { generateWorld } from "../../src/simulator/generate.ts";
import { compare } from "../support/comparison.ts";
import { openWorld } from "../support/world.ts";

/** The generator's busiest repository. */
const FIRST = "octo-works/open-quarry";

test("a generated repository is mirrored completely, nasty cases included", async () => {
  await using world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 1, issues: 250, pulls: 130 }),
  });
  await world.mirror(FIRST);
  await world.settle();
  const { counts, differences } = await compare(world.ctx, world.simulator, FIRST);
  expect(differences).toEqual([]);
  expect(counts.issues).toBeGreaterThanOrEqual(380);
});
