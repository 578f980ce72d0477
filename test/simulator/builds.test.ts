import { expect, test } from "vitest";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { startBuilds } from "../../src/simulator/live/builds.ts";
import { startLive } from "../../src/simulator/live/live.ts";
import { SettableClock } from "../../src/simulator/world/clock.ts";
import type { WorldEvent } from "../../src/simulator/world/event.ts";
import { isPull, World } from "../../src/simulator/world/world.ts";
import { NOON } from "./graphql-world.ts";

const SIZE = { seed: 5, repositories: 1, issues: 10, pulls: 60 };

function generated(code?: { readonly releases: number; readonly branches: number }) {
  const clock = new SettableClock(NOON);
  const world = new World({ seed: 3, clock });
  const [repository] = generateWorld(world, { ...SIZE, ...(code ? { code } : {}) }).repositories;
  if (!repository) throw new Error("No repository");
  const pulls = [...repository.rows.pullsByCreated.ascending()].filter(isPull);
  const open = pulls.filter(({ state }) => state === "open");
  return { clock, world, repository, open, code: world.code.of(repository) };
}

/** Notes each further event of the world, in words. */
function told(world: World): string[] {
  const names: string[] = [];
  world.onEvent(({ event, action, checkRun, checkSuite, status, senderId }: WorldEvent) => {
    const of = checkRun?.id ?? checkSuite?.id ?? status?.id ?? "";
    names.push(
      [event, action, of, checkRun?.conclusion ?? checkSuite?.conclusion ?? status?.state, senderId].join(" "),
    );
  });
  return names;
}

test("a generated world has no checks and releases unless they are asked for, and tells nobody of them", () => {
  const plain = generated();
  expect([plain.world.code.checkRuns.size, plain.code.releases.size, plain.code.tags.size]).toEqual([0, 0, 0]);
  const full = generated({ releases: 4, branches: 2 });
  const heads = new Set(full.open.map(({ pull }) => pull.head.sha));
  expect(full.world.code.checkRuns.size).toBeGreaterThan(full.code.suites.size);
  expect([...full.code.suites.keys()].filter((sha) => !heads.has(sha))).toEqual([]);
  expect([full.code.releases.size, full.code.tags.size]).toEqual([4, 4]);
  expect(full.repository.branches.size).toBeGreaterThanOrEqual(3);
  const text = ({ repository }: typeof plain) =>
    [...repository.rows.issuesByCreated.ascending()].map(({ title }) => title);
  expect(text(full)).toEqual(text(plain));
  const again = generated({ releases: 4, branches: 2 });
  expect([...again.world.code.checkRuns.keys()]).toEqual([...full.world.code.checkRuns.keys()]);
});

test("builds go on with the clock: what is due happens in its order, the same for a seed, and all of it ends", () => {
  const run = () => {
    const { clock, world, open } = generated();
    const names = told(world);
    const pulls = open.filter(({ pull }) => pull.head.repositoryId !== null).slice(0, 8);
    const builds = startBuilds(world, { pulls, seed: 11, pushEveryMs: 600_000, buildMs: 120_000, runs: 3 });
    expect(builds.catchUp()).toBe(0);
    const end = NOON + 3_600_000;
    while (builds.nextAt <= end) {
      clock.set(builds.nextAt);
      builds.catchUp();
    }
    builds.stop();
    return { names, world, pulls };
  };
  const { names, world, pulls } = run();
  const count = (start: string) => names.filter((name) => name.startsWith(start)).length;
  const pushes = count("pull_request synchronize");
  expect(pushes).toBeGreaterThanOrEqual(pulls.length * 4);
  expect(count("check_run created")).toBe(pushes * 3);
  // The checks of a head may still run for two minutes after its push.
  const unfinished = [...world.code.checkRuns.values()].filter(({ status }) => status !== "completed");
  expect(unfinished.every(({ createdAt }) => createdAt > (NOON + 3_600_000 - 120_000) / 1_000)).toBe(true);
  expect(count("check_run completed") + unfinished.length).toBe(pushes * 3);
  const suites = [...world.code.checkSuites.values()];
  expect(count("check_suite completed")).toBe(suites.filter(({ status }) => status === "completed").length);
  for (const suite of suites) {
    const states = world.code
      .of(suite.repository)
      .statuses.get(suite.headSha)
      ?.map(({ state }) => state);
    const last = suite.conclusion === "success" ? "success" : "failure";
    expect(states).toEqual(suite.status === "completed" ? ["pending", last] : ["pending"]);
  }
  expect(run().names).toEqual(names);
});

test("a closed pull request is built no more", () => {
  const { clock, world, open } = generated();
  const [pull] = open;
  if (!pull) throw new Error("No open pull request");
  const builds = startBuilds(world, { pulls: [pull], seed: 1, pushEveryMs: 60_000, buildMs: 1_000, runs: 1 });
  pull.state = "closed";
  clock.advance(3_600_000);
  expect(builds.catchUp()).toBeGreaterThan(10);
  expect(world.code.checkRuns.size).toBe(0);
});

test("the live stream makes builds, statuses and releases only when they are asked for", () => {
  const { world, code } = generated();
  const kinds = ["startBuild", "advanceBuild", "reportStatus", "release"] as const;
  const names = told(world);
  const plain = startLive(world, { ratePerSecond: 0, seed: 2 });
  for (let at = 0; at < 150; at++) plain.step();
  expect([world.code.checkRuns.size, code.releases.size]).toEqual([0, 0]);
  names.length = 0;
  const live = startLive(world, { ratePerSecond: 0, seed: 2, kinds });
  const deeds = Array.from({ length: 200 }, () => live.step()?.kind);
  for (const kind of kinds) expect(deeds).toContain(kind);
  for (const name of [
    "check_run created",
    "check_run completed",
    "check_suite completed",
    "status",
    "release published",
  ])
    expect(
      names.some((one) => one.startsWith(name)),
      name,
    ).toBe(true);
});
