import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { doWhatIsDue, follow, OF_CHAIN, openFollower, tokenOfFollower } from "../support/chain.ts";
import { compare } from "../support/comparison.ts";
import { printFigures } from "../support/figures.ts";
import { openMirror } from "../support/mirror.ts";
import { type Program, startProgram } from "../support/program.ts";
import { openWorld } from "../support/world.ts";

/**
 * `CHANGES=500 npm test -- test/events/chain-kill` runs it: it takes some minutes, since the middle one's clock is the
 * real one.
 */
const CHANGES = Number(process.env.CHANGES ?? 0);
const A_SECOND = 20;
const KILLS = 3;
const EQUAL_WITHIN_MS = 480_000;
/** Short, so that it does not take longer. */
const OFTEN = { CATCH_UP_INTERVAL: "30s", SWEEP_INTERVAL: "30s" };

test.runIf(CHANGES > 0)(
  "the middle one of three mirrors is killed again and again, and the last becomes equal to the root by itself",
  { timeout: LONG_TEST_MS },
  async () => {
    await using world = await openWorld({
      fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 1, issues: 30, pulls: 15 }),
      simulator: { worldOptions: { mergeableDelayMs: 20 } },
      env: { ...OF_CHAIN, ...OFTEN },
    });
    const fullName = world.first;
    await world.mirror(fullName);
    await world.listen(fullName);
    const env = { ...OF_CHAIN, ...OFTEN, UPSTREAM_TOKEN: await tokenOfFollower(world) };
    await using middle = await openMirror({ upstream: world.url, web: false, env });
    let programs: Program[] = [];
    let url = "";
    const start = async () => {
      const web = startProgram("src/web.ts", { ...middle.env, LOG_LEVEL: "info", PORT: url && new URL(url).port });
      const others = ["workers/main.ts", "workers/scheduler.ts"].map((entry) => startProgram(entry, middle.env));
      programs = [web, ...others];
      url = String((await web.said("Listening")).address);
    };
    await start();
    await follow({ ctx: middle.ctx, url }, fullName);
    await using leaf = await openFollower({ url, token: await tokenOfFollower(middle), fullName }, { env: OFTEN });

    const live = world.simulator.startLive({ ratePerSecond: A_SECOND, seed: 3 });
    for (let kills = 1; kills <= KILLS; kills++) {
      while (live.count < (CHANGES * kills) / (KILLS + 1)) await delay(50);
      await Promise.all(programs.map((program) => program.kill()));
      await delay(1_000);
      await start();
    }
    while (live.count < CHANGES) await delay(50);
    live.stop();

    const [root] = [...world.simulator.world.repositories.values()].filter(({ fork }) => !fork);
    const stoppedAt = performance.now();
    const differences = async () =>
      // A new contributor becomes one in all their earlier texts, and only an audit finds that.
      (await compare(leaf.ctx, world.simulator, String(root?.id), (_kind, path) => path === "author_association"))
        .differences;
    let left = await differences();
    while (left.length > 0 && performance.now() - stoppedAt < EQUAL_WITHIN_MS) {
      // The middle one has a scheduler of its own.
      for (const { ctx } of [world, leaf]) await doWhatIsDue(ctx);
      await delay(5_000);
      left = await differences();
    }
    expect(left).toEqual([]);
    const seconds = Math.round((performance.now() - stoppedAt) / 1_000);
    printFigures("chain-kill", { changes: live.count, kills: KILLS, seconds });
  },
);
