import { expect, test } from "vitest";
import { generateWorld } from "../../src/simulator/generate.ts";
import { sweep } from "../../src/sync/sweep.ts";
import { probesFor } from "../../src/sync/sweep-lists.ts";
import { openWorld } from "../support/world.ts";

test("two sweeps at once are one", async () => {
  await using world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 9, repositories: 1, issues: 3, pulls: 2 }),
  });
  await world.mirror(world.first);
  const both = await Promise.all([sweep(world.ctx), sweep(world.ctx)]);
  expect(both.map(({ swept }) => swept).sort()).toEqual([0, 1]);
});

test.each([1, 29, 99, 100, 101, 9_900, 60_000])(
  "of a list of %i rows the page is asked for that holds its last row and has room for the next",
  (rows) => {
    const probes = probesFor({ labels: 1, milestones: 0, issues: 1, comments: rows, reviewComments: 0 });
    const query = new URLSearchParams(
      probes.find(({ path }) => path.startsWith("issues/comments"))?.path.split("?")[1],
    );
    const [size, page] = [Number(query.get("per_page")), Number(query.get("page"))];
    expect(rows).toBeGreaterThan((page - 1) * size);
    expect(rows).toBeLessThan(page * size);
    expect(size).toBeLessThanOrEqual(100);
  },
);

test("labels are asked for whole, and issues that are too many to be numbered from the newest change", () => {
  const paths = probesFor({ labels: 250, milestones: 0, issues: 9_000, comments: 0, reviewComments: 0 }).map(
    ({ path }) => path,
  );
  expect(paths.filter((path) => path.startsWith("labels"))).toHaveLength(3);
  expect(paths.filter((path) => path.startsWith("issues?"))).toEqual([
    "issues?direction=desc&per_page=30&sort=updated&state=all",
  ]);
  expect(paths).toHaveLength(5);
});
