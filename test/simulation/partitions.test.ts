/**
 * Tests the parts of `npm run proofs partitions`: its plan, and its judgement of answers. The proof itself takes a
 * quarter of an hour.
 */
import { expect, test } from "vitest";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { World } from "../../src/simulator/world/world.ts";
import { cutsAt, cutsOf, NEEDS, SITES } from "./cuts.ts";
import { History } from "./history.ts";

const FOR_MS = 600_000;

test("the cuts of a seed are the same each time, end in time, and strike every link, both ways and one way", () => {
  const cuts = cutsOf({ seed: 3, forMs: FOR_MS });
  expect(cutsOf({ seed: 3, forMs: FOR_MS })).toEqual(cuts);
  expect(cutsOf({ seed: 4, forMs: FOR_MS })).not.toEqual(cuts);
  expect(Math.max(...cuts.map(({ atMs, forMs }) => atMs + forMs))).toBeLessThanOrEqual(FOR_MS);
  expect(cutsAt(cuts, FOR_MS)).toEqual([]);
  const ways = new Set(cuts.flatMap((cut) => cut.ways.map(({ from, to }) => `${from}>${to}`)));
  const all = SITES.flatMap((site) => NEEDS.flatMap((need) => [`${site}>${need}`, `${need}>${site}`]));
  expect([...ways].sort()).toEqual(all.sort());
  expect(cuts.some(({ ways: cut }) => cut.length === 1)).toBe(true);
});

test("an answer is older than it says if upstream had changed before the moment for which it holds", () => {
  const world = new World({ seed: 1 });
  const { repositories } = generateWorld(world, { seed: 1, repositories: 1, issues: 1 });
  const [repository] = repositories;
  const issue = repository?.rows.byNumber.find((one) => one !== undefined);
  if (!issue) throw new Error("The generator has made no issue");
  const history = new History(repositories);
  const shown = () => ({
    title: issue.title,
    state: issue.state,
    updatedAt: new Date(issue.updatedAt * 1_000).toISOString().replace(".000Z", "Z"),
  });
  const before = shown();
  issue.title = "another";
  history.note(issue, 5_000);
  expect(history.judge(issue, before, 5_000)).toBe("held");
  expect(history.judge(issue, before, 5_001)).toBe("older");
  expect(history.judge(issue, shown(), 9_000)).toBe("held");
  expect(history.judge(issue, { ...before, title: "never" }, 9_000)).toBe("unknown");
  expect(history.judge(issue, { ...shown(), state: issue.state === "open" ? "closed" : "open" }, 0)).toBe("unknown");
  // The issue is again what it was. Of two equal versions the newest counts.
  issue.title = before.title;
  history.note(issue, 7_000);
  expect(history.judge(issue, before, 9_000)).toBe("held");
});
