import { expect, test } from "vitest";
import { createIssue } from "../../src/simulator/changes/issues.ts";
import type { SettableClock } from "../../src/simulator/clock.ts";
import { generateWorld } from "../../src/simulator/generate.ts";
import { mutate } from "../../src/simulator/mutations.ts";
import { openView } from "../../src/simulator/views/view.ts";
import { scheduleCatchUps } from "../../src/sync/catch-up.ts";
import { sweep } from "../../src/sync/sweep.ts";
import { compare } from "../support/comparison.ts";
import { openWorld } from "../support/world.ts";

const MINUTES = 60_000;
/** `FLEET=1000 npm test -- test/scenario/missed-sweep` measures a larger fleet. */
const FLEET = Number(process.env.FLEET ?? 60);

test("a fleet without any webhook: idle it costs next to nothing, and every change is found within one interval", async () => {
  await using world = await openWorld({
    fill: ({ world: upstream }) => {
      generateWorld(upstream, { seed: 9, repositories: 1, issues: 3, pulls: 2 });
      const owner = [...upstream.repositories.values()][0]?.ownerId ?? 0;
      for (let index = 0; index < FLEET; index++) {
        const repository = upstream.addRepository({ ownerId: owner, name: `idle-${index}` });
        createIssue(upstream, owner, { repository, title: "the only one" });
      }
    },
  });
  const owner = world.first.split("/")[0] as string;
  await world.mirror(`${owner}/*`);
  await world.settleMarks();
  const { clock } = world.simulator.world;
  const pass = (ms: number) => {
    (clock as SettableClock).advance(ms);
    world.advance(ms);
  };
  const repositories = FLEET + 1;
  pass(5 * MINUTES);
  expect(await sweep(world.ctx)).toEqual({ swept: repositories, changed: repositories });
  await world.settle();

  world.simulator.meter.reset();
  for (let minute = 0; minute < 60; minute++) {
    pass(MINUTES);
    await sweep(world.ctx);
    if (minute % 5 === 4) await scheduleCatchUps(world.ctx);
    await world.settle();
  }
  const idle = world.simulator.meter.read();
  console.log(
    JSON.stringify({
      repositories,
      requests: idle.requests,
      notModified: idle.notModified,
      charged: idle.charged,
      points: idle.points,
    }),
  );
  expect(idle.points).toBeLessThanOrEqual(100);
  expect(idle.charged - (idle.routes["POST /graphql"]?.charged ?? 0)).toBe(0);

  const view = openView({
    world: world.simulator.world,
    apiUrl: world.simulator.url,
    htmlUrl: world.simulator.htmlUrl,
    roleOf: () => "admin",
  });
  const change = (json: Record<string, unknown>) => mutate(world.simulator.world, view, json);
  change({ op: "editIssue", repository: `${owner}/idle-1`, number: 1, title: "changed" });
  change({ op: "createComment", repository: `${owner}/idle-2`, number: 1, body: "said" });
  change({ op: "createIssue", repository: `${owner}/idle-3`, title: "another" });
  change({ op: "renameRepository", repository: `${owner}/idle-4`, name: "renamed" });
  change({ op: "archiveRepository", repository: `${owner}/idle-5` });
  pass(4 * MINUTES);
  expect(await sweep(world.ctx)).toEqual({ swept: repositories, changed: 5 });
  await world.settleMarks();
  for (const name of ["idle-1", "idle-2", "idle-3", "renamed", "idle-5"])
    expect((await compare(world.ctx, world.simulator, `${owner}/${name}`)).differences).toEqual([]);

  // No webhook told of them, so they are asked more often for a while; the others are not.
  pass(MINUTES);
  expect(await sweep(world.ctx)).toEqual({ swept: 5, changed: 0 });
}, 600_000);

test("two sweeps at once are one", async () => {
  await using world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 9, repositories: 1, issues: 3, pulls: 2 }),
  });
  await world.mirror(world.first);
  const both = await Promise.all([sweep(world.ctx), sweep(world.ctx)]);
  expect(both.map(({ swept }) => swept).sort()).toEqual([0, 1]);
});
