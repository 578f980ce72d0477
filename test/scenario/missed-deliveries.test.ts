import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { mutate } from "../../src/simulator/control/mutations.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { openView } from "../../src/simulator/views/view.ts";
import { SettableClock } from "../../src/simulator/world/clock.ts";
import { sweep } from "../../src/sync/catch-up/sweep.ts";
import { checkDeliveries } from "../../src/sync/hook-deliveries/missed.ts";
import { compare } from "../support/comparison.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

const MINUTES = 60_000;

async function openHooked(): Promise<TestWorld> {
  const world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 5, repositories: 1, issues: 20, pulls: 5 }),
  });
  await world.mirror(world.first);
  await world.listen(world.first);
  await world.settleMarks();
  return world;
}

const edit = ({ simulator, first }: TestWorld, number: number, title: string) =>
  mutate(
    simulator.world,
    openView({ world: simulator.world, apiUrl: simulator.url, htmlUrl: simulator.htmlUrl, roleOf: () => "admin" }),
    { op: "editIssue", repository: first, number, title },
  );

/** Moves both clocks, so that whatever was sent is settled and no replica lags. */
function pass(world: TestWorld, ms: number): void {
  const { clock } = world.simulator.world;
  if (!(clock instanceof SettableClock)) throw new Error("The simulator's clock cannot be moved");
  clock.advance(ms);
  world.advance(ms);
}

const titleOf = async (world: TestWorld, number: number) =>
  ((await world.get(`/repos/${world.first}/issues/${number}`)).body as { title: string }).title;

test("deliveries that failed are asked for again, and checked no more once they have arrived", async () => {
  await using world = await openHooked();
  world.simulator.setFaults({ webhooks: { fail: 1 } });
  edit(world, 1, "missed once");
  edit(world, 2, "missed as well");
  await world.simulator.quiet();
  world.simulator.setFaults({});
  expect(await checkDeliveries(world.ctx)).toEqual({ missed: 0, asked: 0 }); // They may still be under way.
  pass(world, 2 * MINUTES);
  const checked = await checkDeliveries(world.ctx);
  expect(checked.missed).toBeGreaterThanOrEqual(2);
  expect(checked.asked).toBe(checked.missed);
  await world.settle();
  expect(await titleOf(world, 1)).toBe("missed once");
  expect(await titleOf(world, 2)).toBe("missed as well");
  pass(world, 2 * MINUTES);
  expect(await checkDeliveries(world.ctx)).toEqual({ missed: 0, asked: 0 });
  world.simulator.meter.reset();
  expect(await checkDeliveries(world.ctx)).toEqual({ missed: 0, asked: 0 });
  expect(world.simulator.meter.read()).toMatchObject({ requests: 1, charged: 0 });
});

test.each([null, "no moment", "2041-05-05T05:05:05.000Z"])(
  "failed deliveries that upstream dates %o are asked for again, and checked no more once they have arrived",
  async (delivered_at) => {
    await using world = await openHooked();
    world.simulator.setFaults({ webhooks: { fail: 1 } });
    for (let number = 1; number <= 3; number++) edit(world, number, "missed");
    await world.simulator.quiet();
    pass(world, 2 * MINUTES);
    const listed = "/deliveries\\?";
    const where = { event: "issues" };
    world.simulator.setFaults({ rows: [{ match: listed, where, kind: "with", fields: { delivered_at } }] });
    expect((await checkDeliveries(world.ctx)).missed).toBeGreaterThanOrEqual(3);
    await world.settle();
    expect(await titleOf(world, 3)).toBe("missed");
    pass(world, 2 * MINUTES);
    expect((await checkDeliveries(world.ctx)).missed).toBe(0);
    // No delivery is on its way, so an unchanged list is free from now on.
    const kept = sql`select from validators where path like '%/deliveries%'`;
    expect(await world.ctx.db.count(kept)).toBe(1);
  },
);

test("what fails again and again is read from upstream instead", async () => {
  await using world = await openHooked();
  world.simulator.setFaults({ webhooks: { fail: 1 } });
  edit(world, 1, "never delivered");
  await world.simulator.quiet();
  for (let round = 0; round < 2; round++) {
    pass(world, 2 * MINUTES);
    expect((await checkDeliveries(world.ctx)).asked).toBeGreaterThan(0);
    await world.simulator.quiet();
  }
  pass(world, 2 * MINUTES);
  const checked = await checkDeliveries(world.ctx);
  expect(checked.missed).toBeGreaterThan(0);
  expect(checked.asked).toBe(0);
  await world.settle();
  expect(await titleOf(world, 1)).toBe("never delivered");
});

test("a token that may not see hooks is no failure, and is not tried at every check", async () => {
  await using world = await openHooked();
  world.simulator.setFaults({ http: [{ match: "GET /repositories/\\d+/hooks", kind: "status", status: 404 }] });
  expect(await checkDeliveries(world.ctx)).toEqual({ missed: 0, asked: 0 });
  world.simulator.meter.reset();
  expect(await checkDeliveries(world.ctx)).toEqual({ missed: 0, asked: 0 });
  expect(world.simulator.meter.read().requests).toBe(0);
  world.simulator.setFaults({});
  pass(world, 7 * 60 * MINUTES);
  await checkDeliveries(world.ctx);
  expect(world.simulator.meter.read().requests).toBeGreaterThan(0);
});

test("a third of all deliveries is lost without a trace: one sweep finds every change", async () => {
  await using world = await openHooked();
  await sweep(world.ctx);
  await world.settleMarks();
  world.simulator.setFaults({ seed: 3, webhooks: { drop: 0.3 } });
  for (let number = 1; number <= 20; number++) edit(world, number, `changed ${number}`);
  await world.settle();
  pass(world, 5 * MINUTES);
  expect(await sweep(world.ctx)).toEqual({ swept: 1, changed: 1 });
  await world.settleMarks();
  expect((await compare(world.ctx, world.simulator, world.first)).differences).toEqual([]);
});

test("where the token may not have deliveries sent again, upstream is read instead, and the check goes on", async () => {
  await using world = await openHooked();
  world.simulator.setFaults({ webhooks: { fail: 1 } });
  edit(world, 1, "never sent again");
  await world.simulator.quiet();
  world.simulator.setFaults({ http: [{ match: "^POST .*/attempts$", kind: "refusal", as: "permission" }] });
  pass(world, 2 * MINUTES);
  const checked = await checkDeliveries(world.ctx);
  expect(checked).toEqual({ missed: expect.any(Number), asked: 0 });
  expect(checked.missed).toBeGreaterThan(0);
  await world.settle();
  expect(await titleOf(world, 1)).toBe("never sent again");
  // Each check begins a little before the time at which the last one ended.
  pass(world, 10 * MINUTES);
  await checkDeliveries(world.ctx);
  pass(world, 10 * MINUTES);
  expect(await checkDeliveries(world.ctx)).toEqual({ missed: 0, asked: 0 });
});
