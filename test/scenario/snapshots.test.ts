import { expect, test } from "vitest";
import { openSnapshots, type Snapshots } from "../../src/simulator/generate/histories-snapshots.ts";
import { SettableClock } from "../../src/simulator/world/clock.ts";
import { audit } from "../../src/sync/audit/audit.ts";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { compare } from "../support/comparison.ts";
import { printFigures } from "../support/figures.ts";
import { findRecording } from "../support/recording.ts";
import { openWorld } from "../support/world.ts";

const { path: FILE, exists, reason } = findRecording("quicwg-rest-snapshots.json.gz");

/** `SNAPSHOT_STEPS=all npm test -- test/scenario/snapshots` follows every step; otherwise two hundred at a time. */
const every = process.env.SNAPSHOT_STEPS === "all" ? 1 : 200;

test.skipIf(!exists)(
  `real listings, played without a webhook: after a catch-up and an audit every field is upstream's ${reason}`,
  async () => {
    const clock = new SettableClock(0);
    let snapshots: Snapshots | undefined;
    await using world = await openWorld({
      simulator: { clock },
      fill: async ({ world: upstream }) => {
        snapshots = await openSnapshots(upstream, FILE, { clock });
      },
    });
    if (!snapshots) throw new Error("The recording was not opened");
    await world.mirror("quicwg/base-drafts");
    await world.settleMarks();
    world.simulator.meter.reset();
    const repositoryId = snapshots.repository.id;
    let steps = 0;
    let silent = 0;
    let followed = 0;
    for (let step = snapshots.step(); step; step = snapshots.step()) {
      steps++;
      silent += step.issues.filter((change) => change.kind !== "opened" && !change.bumped).length;
      if (steps % every !== 0 && snapshots.stepsLeft > 0) continue;
      followed++;
      world.advance(60_000);
      await world.catchUp();
      world.advance(60_000);
      await audit(world.ctx, { repositoryId, repair: true, signal: new AbortController().signal });
      await world.settleMarks();
      const shown = await sharedShown(world.simulator.url);
      const { differences } = await compare(world.ctx, world.simulator, "quicwg/base-drafts", (kind, path, mine) => {
        const isShared = kind === "repository" || /(^|\.)(user|assignee|creator|owner|repo|\d+)\./.test(path);
        const text = JSON.stringify(mine);
        return isShared && (shown.has(`${path.split(".").at(-1)}=${text}`) || isFilledIn(text));
      });
      expect(differences, `after step ${steps}, ${step.at.toISOString()}`).toEqual([]);
    }
    const { charged, points, notModified, requests, routes } = world.simulator.meter.read();
    printFigures("snapshots", { steps, followed, silent, requests, notModified, charged, points });
    if (process.env.SNAPSHOT_STEPS) console.table(routes);
    expect(silent).toBeGreaterThan(150);
  },
  every === 1 ? 3_600_000 : LONG_TEST_MS,
);

/**
 * The recording contradicts itself in shared rows: it shows a pull request with a person or repository as they were
 * then, beside others with their present form. The mirror stores each of them once, so upstream's present form is right
 * everywhere. Answers `key=value` of every person and repository shown.
 */
async function sharedShown(url: string): Promise<Set<string>> {
  const shown = new Set<string>();
  const walk = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    const isShared = "login" in value || "full_name" in value;
    for (const [key, inner] of Object.entries(value)) {
      if (isShared && (typeof inner !== "object" || inner === null)) shown.add(`${key}=${JSON.stringify(inner)}`);
      walk(inner);
    }
  };
  walk(await (await fetch(`${url}/-/state?repository=quicwg/base-drafts`)).json());
  return shown;
}

/** The address that the simulator gives to a picture that the recording does not have. */
const isFilledIn = (json: string) => /^"https:\/\/avatars\.githubusercontent\.com\/u\/\d+\?v=4"$/.test(json);
