import { setTimeout as wait } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { LIVE_KINDS, type LiveKind } from "../../src/simulator/live/acts.ts";
import { startLive } from "../../src/simulator/live/live.ts";
import { SettableClock } from "../../src/simulator/world/clock.ts";
import { World } from "../../src/simulator/world/world.ts";
import { expectConsistent, wholeTruth } from "./world-truth.ts";

function populated(issues = 200) {
  const clock = new SettableClock(Date.UTC(2026, 9, 1));
  const world = new World({ seed: 2, clock });
  generateWorld(world, { seed: 2, repositories: 4, issues });
  return { world, clock };
}

/** A second passes only with every third step, so some changes share a second. */
function run(world: World, clock: SettableClock, seed: number, steps: number, kinds?: readonly LiveKind[]) {
  const live = startLive(world, { ratePerSecond: 0, seed, ...(kinds ? { kinds } : {}) });
  const deeds = [];
  for (let done = 0; done < steps; done++) {
    if (done % 3 === 0) clock.advance(1_000);
    deeds.push(live.step());
  }
  return { live, deeds };
}

test("the same seed over the same world is the same stream", () => {
  const [a, b, c] = [populated(), populated(), populated()];
  const first = run(a.world, a.clock, 1, 400);
  expect(run(b.world, b.clock, 1, 400).deeds).toEqual(first.deeds);
  expect(wholeTruth(b.world)).toBe(wholeTruth(a.world));
  expect(run(c.world, c.clock, 2, 400).deeds).not.toEqual(first.deeds);
});

test("a long stream leaves counters, indexes and references in order", () => {
  const { world, clock } = populated();
  const kinds = LIVE_KINDS;
  const { deeds } = run(world, clock, 11, 12_000, kinds);
  expectConsistent(world);
  expect(new Set(deeds.map((deed) => deed?.kind))).toEqual(new Set(kinds));
});

test("only the kinds asked for happen; deleting accounts only when asked for", () => {
  const { world, clock } = populated();
  expect(new Set(run(world, clock, 1, 50, ["open", "comment"]).deeds.map((deed) => deed?.kind))).toEqual(
    new Set(["open", "comment"]),
  );
  expect(run(world, clock, 1, 2_000).deeds.some((deed) => deed?.kind === "deleteUser")).toBe(false);
});

test("every deed but quiet ones is heard, and archived repositories stay as they are", () => {
  const { world, clock } = populated();
  const archived = [...world.repositories.values()].find((repository) => repository.archived);
  const touched: string[] = [];
  world.onEvent((event) => touched.push(event.repository.name));
  const { deeds } = run(world, clock, 4, 300, ["comment"]);
  expect(deeds).toHaveLength(300);
  expect(touched).toHaveLength(300);
  expect(touched).not.toContain(archived?.name);
});

test("where nothing can be done, nothing is: null", () => {
  const world = new World({ seed: 1 });
  const live = startLive(world, { ratePerSecond: 0, seed: 1 });
  expect(live.step()).toBeNull();
  expect(live.count).toBe(0);
});

describe("the timer", () => {
  test("drives about as many steps as asked, until it is stopped", async () => {
    const { world } = populated();
    const live = startLive(world, { ratePerSecond: 500, seed: 1, kinds: ["comment"] });
    while (live.count < 20) await wait(5);
    live.stop();
    await live.done;
    const { count } = live;
    await wait(60);
    expect(live.count).toBe(count);
    live.step();
    expect(live.count).toBe(count + 1);
  });
  test("a failing step ends the stream and says why", async () => {
    const { world } = populated();
    world.onEvent(() => {
      throw new Error("listener broke");
    });
    await expect(startLive(world, { ratePerSecond: 1_000, seed: 1, kinds: ["comment"] }).done).rejects.toThrow(
      "listener broke",
    );
  });
});

test.each([
  [{ ratePerSecond: -1, seed: 1 }, "ratePerSecond is from 0 to 10,000, not -1"],
  [{ ratePerSecond: Number.NaN, seed: 1 }, "not NaN"],
  [{ ratePerSecond: 1, seed: 1, kinds: ["dance" as LiveKind] }, '"dance" is nothing that happens: open, openPull'],
])("refuses %j", (options, message) => {
  expect(() => startLive(new World(), options)).toThrow(message);
});
