import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { createComment } from "../../src/simulator/changes/comments.ts";
import { openSnapshots } from "../../src/simulator/generate/histories-snapshots.ts";
import { issueView } from "../../src/simulator/views/issue.ts";
import { pullSummary } from "../../src/simulator/views/pull.ts";
import { openView } from "../../src/simulator/views/view.ts";
import { SettableClock } from "../../src/simulator/world/clock.ts";
import type { PullIssue, Repository } from "../../src/simulator/world/records.ts";
import { World } from "../../src/simulator/world/world.ts";
import { findRecording } from "../support/recording.ts";

const { path: FILE, exists, reason } = findRecording("quicwg-rest-snapshots.json.gz");

// biome-ignore lint/suspicious/noExplicitAny: recorded documents of another time.
type Recorded = any;

async function open() {
  const clock = new SettableClock(0);
  const world = new World({ seed: 1, clock });
  const events: unknown[] = [];
  world.onEvent((event) => events.push(event));
  const snapshots = await openSnapshots(world, FILE, { clock });
  // The bases are the recorded hosts, so each view must equal the recording as it is.
  const view = () => openView({ world, apiUrl: "https://api.github.com", htmlUrl: "https://github.com" });
  return { clock, world, events, snapshots, view };
}

describe.skipIf(!exists)(`recorded listings ${reason}`, () => {
  const recording: Recorded = exists ? JSON.parse(gunzipSync(readFileSync(FILE)).toString("utf8")) : null;
  const issueOf = (world: World, repository: Repository, number: number) => {
    const issue = world.issue(repository, number);
    if (!issue) throw new Error(`#${number} is missing`);
    return issue;
  };

  test("what is served equals what was recorded, step after step, and nobody is told", async () => {
    const { world, events, snapshots, view, clock } = await open();
    expect(snapshots.stepsLeft).toBe(307);
    for (const recorded of recording.base.issues)
      expect(issueView(view(), issueOf(world, snapshots.repository, recorded.number))).toMatchObject(recorded);
    const repositories = new Map<number, Recorded>();
    let silent = 0;
    for (const step of recording.steps) {
      const done = snapshots.step();
      expect(done?.at.toISOString()).toBe(new Date(step.at).toISOString());
      expect(clock.now()).toBe(Date.parse(step.at));
      for (const recorded of step.issues?.upsert ?? [])
        expect(issueView(view(), issueOf(world, snapshots.repository, recorded.number))).toMatchObject(recorded);
      for (const number of step.issues?.remove ?? [])
        expect(issueView(view(), issueOf(world, snapshots.repository, number))).toMatchObject({ state: "closed" });
      for (const one of step.repos ?? []) repositories.set(one.id, one);
      for (const recorded of step.pulls?.upsert ?? []) {
        const whole = (end: Recorded) => ({ ...end, repo: end.repo && repositories.get(end.repo.$repo) });
        const shown = pullSummary(view(), issueOf(world, snapshots.repository, recorded.number) as PullIssue);
        expect(shown).toMatchObject({ ...recorded, head: whole(recorded.head), base: whole(recorded.base) });
      }
      silent += done?.issues.filter((change) => change.kind !== "opened" && !change.bumped).length ?? 0;
    }
    expect(snapshots.step()).toBeNull();
    expect(silent).toBeGreaterThan(150); // Most changes of embedded users and milestones do not move `updated_at`.
    expect(events).toEqual([]);
  });

  test("in the end there are as many rows as were recorded, and the indexes follow", async () => {
    const { snapshots } = await open();
    while (snapshots.step());
    const { rows, openIssues, openPulls } = snapshots.repository;
    const all = [...rows.issuesByCreated.ascending()];
    expect(all).toHaveLength(479);
    expect(all.filter((issue) => issue.pull)).toHaveLength(217);
    expect(openIssues + openPulls).toBe(133);
    expect(all.filter((issue) => issue.assigneeIds.length > 0)).toHaveLength(100);
    const updated = [...rows.issuesByUpdated.ascending()].map((issue) => issue.updatedAt);
    expect(updated).toEqual([...updated].sort((a, b) => a - b));
    expect(updated).toHaveLength(479);
  });

  test("addresses move to this server, bodies stay as they are", async () => {
    const { world, snapshots } = await open();
    const recorded = recording.base.issues[0];
    const view = openView({ world, apiUrl: "http://127.0.0.1:9", htmlUrl: "http://pages.test" });
    const shown = issueView(view, issueOf(world, snapshots.repository, recorded.number));
    expect(shown).toMatchObject({
      url: "http://127.0.0.1:9/repos/quicwg/base-drafts/issues/260",
      html_url: "http://pages.test/quicwg/base-drafts/pull/260",
      body: recorded.body,
    });
    expect(shown.node_id).toEqual(expect.any(String)); // In 2017 this key was not recorded, so the simulator makes it.
  });

  test("a row that a user changes afterwards is shown as it is then", async () => {
    const { world, snapshots, view } = await open();
    const issue = issueOf(world, snapshots.repository, 260);
    createComment(world, issue.authorId ?? 0, issue, "hello");
    expect(issueView(view(), issue)).toMatchObject({ comments: 1 });
  });
});

test("a file that is no recording is refused with what it should hold", async () => {
  const file = new URL("../../package.json", import.meta.url).pathname;
  await expect(openSnapshots(new World(), file)).rejects.toThrow(
    "is no recording of listings: it should hold {repo, base, steps}",
  );
});
