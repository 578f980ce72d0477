import { expect, test } from "vitest";
import { createComment, deleteComment, editComment } from "../../src/simulator/changes/comments.ts";
import { createIssue, editIssue, lockIssue, pinIssue, transferIssue } from "../../src/simulator/changes/issues.ts";
import { createLabel, deleteLabel, editLabel } from "../../src/simulator/changes/labels.ts";
import { createMilestone, editMilestone } from "../../src/simulator/changes/milestones.ts";
import { createPull, deleteForkHead, pushBranch, pushToPull, setDraft } from "../../src/simulator/changes/pulls.ts";
import { renameRepository } from "../../src/simulator/changes/repositories.ts";
import { createReview, editReview } from "../../src/simulator/changes/reviews.ts";
import { renameUser } from "../../src/simulator/changes/users.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { startLive } from "../../src/simulator/live/live.ts";
import { SettableClock } from "../../src/simulator/world/clock.ts";
import { nodeId, parseNodeId } from "../../src/simulator/world/node-id.ts";
import { OrderedIndex } from "../../src/simulator/world/ordered-index.ts";
import { seededRandom } from "../../src/simulator/world/random.ts";
import type { Issue } from "../../src/simulator/world/records.ts";
import { World } from "../../src/simulator/world/world.ts";

function openWorld() {
  const clock = new SettableClock(Date.UTC(2026, 9, 1));
  const world = new World({ clock });
  const owner = world.addUser({ login: "octo" });
  const repository = world.addRepository({ ownerId: owner.id, name: "demo" });
  return { clock, world, owner, by: owner.id, repository };
}

test.each([
  ["User", 3_407_303, true, undefined, "MDQ6VXNlcjM0MDczMDM="],
  ["Repository", 1_296_269, true, undefined, "MDEwOlJlcG9zaXRvcnkxMjk2MjY5"],
  ["PullRequest", 279_147_437, true, 5, "MDExOlB1bGxSZXF1ZXN0Mjc5MTQ3NDM3"],
  ["User", 3_407_303, false, undefined, "U_kgDOADP9xw"],
  ["Issue", 1_308_968_954, false, 515_435_940, "I_kwDOHrjtpM5OBUf6"],
] as const)("node ids are the service's own: %s %i, legacy %s", (kind, id, legacy, repositoryId, expected) => {
  expect(nodeId(kind, id, legacy, repositoryId)).toBe(expected);
  expect(parseNodeId(expected)).toEqual({ kind, id });
});

test("node ids of every size come back, and what is none is none", () => {
  for (const id of [1, 127, 128, 255, 256, 65_535, 65_536, 2 ** 32 - 1, 2 ** 32, 2 ** 45]) {
    expect(parseNodeId(nodeId("Label", id, false, id))).toEqual({ kind: "Label", id });
    expect(parseNodeId(nodeId("Label", id, true))).toEqual({ kind: "Label", id });
  }
  for (const text of ["", "X_kgDO", "I_", "I_!!", "MDU6SXNzdWU=", "MDQ6SXNzdWUx", "nonsense", "I_kgDO"])
    expect(parseNodeId(text)).toBeUndefined();
});

interface Row {
  id: number;
  at: number;
  deleted: boolean;
}

test.each([1, 2, 3, 4, 5])("an ordered index equals a sorted list, whatever happens to its rows (seed %i)", (seed) => {
  const random = seededRandom(seed);
  const index = new OrderedIndex<Row>((row) => row.at);
  const rows: Row[] = [];
  let now = 1_000;
  for (let step = 0; step < 3_000; step++) {
    now += random.chance(0.3) ? 1 : 0;
    const at = random.chance(0.02) ? random.int(0, now) : now; // Sometimes the clock runs backwards.
    const row = rows.length > 0 ? random.pick(rows) : undefined;
    if (!row || random.chance(0.3)) {
      const added = { id: random.int(1, 1e9), at, deleted: false };
      rows.push(added);
      index.add(added);
    } else if (random.chance(0.05)) {
      if (!row.deleted) index.removed();
      row.deleted = true;
    } else if (!row.deleted) {
      const before = row.at;
      row.at = at;
      index.moved(row, before);
    }
    if (step % 100 !== 0) continue;
    const expected = rows.filter((one) => !one.deleted).sort((a, b) => a.at - b.at || a.id - b.id);
    expect([...index.ascending()]).toEqual(expected);
    expect([...index.descending()]).toEqual(expected.toReversed());
    expect(index.size).toBe(expected.length);
    const middle = expected[Math.floor(expected.length / 2)];
    if (!middle) continue;
    const start = { key: middle.at, id: middle.id };
    const at2 = expected.indexOf(middle);
    expect([...index.ascending(start)]).toEqual(expected.slice(at2 + 1));
    expect([...index.descending(start)]).toEqual(expected.slice(0, at2).toReversed());
  }
});

/** Whether the change moved `updated_at`, when it came a minute after everything else. */
function moves(setting: ReturnType<typeof openWorld>, issue: Issue, change: () => void): boolean {
  setting.clock.advance(60_000);
  const before = issue.updatedAt;
  change();
  return issue.updatedAt !== before;
}

test("updated_at moves for what the service says it moves for, and for nothing else", () => {
  const setting = openWorld();
  const { world, by, repository, owner } = setting;
  const issue = createIssue(world, by, { repository, title: "t" });
  const label = createLabel(world, by, { repository, name: "l" });
  const milestone = createMilestone(world, by, { repository, title: "m" });
  const milestoneAt = milestone.updatedAt;
  const moved = (change: () => void) => moves(setting, issue, change);
  expect(moved(() => editIssue(world, by, issue, { body: "b" }))).toBe(true);
  expect(moved(() => editIssue(world, by, issue, { labelIds: [label.id] }))).toBe(true);
  expect(moved(() => editIssue(world, by, issue, { assigneeIds: [by] }))).toBe(true);
  expect(moved(() => editIssue(world, by, issue, { milestoneId: milestone.id }))).toBe(true);
  expect(milestone.updatedAt).toBeGreaterThan(milestoneAt);
  expect(moved(() => createComment(world, by, issue, "c"))).toBe(true);
  expect(moved(() => editIssue(world, by, issue, { state: "closed" }))).toBe(true);
  const [comment] = issue.thread;
  if (!comment) throw new Error("There should be a comment");
  expect(moved(() => editComment(world, by, comment, "c2"))).toBe(false);
  expect(comment.updatedAt).toBe(world.now());
  expect(moved(() => deleteComment(world, by, comment))).toBe(false);
  expect(moved(() => editLabel(world, by, label, { name: "renamed" }))).toBe(false);
  expect(moved(() => deleteLabel(world, by, label))).toBe(false);
  expect(moved(() => editMilestone(world, by, milestone, { title: "renamed" }))).toBe(false);
  expect(moved(() => renameUser(world, owner, "octavia"))).toBe(false);
  expect(moved(() => renameRepository(world, by, repository, "renamed"))).toBe(false);
  expect(moved(() => lockIssue(world, by, issue))).toBe(false);
  expect(moved(() => pinIssue(world, by, issue, true))).toBe(false);
});

test("what the documentation leaves open can be set", () => {
  const clock = new SettableClock(0);
  const world = new World({ clock, bumps: { lock: true, commentDelete: true } });
  const owner = world.addUser({ login: "octo" });
  const repository = world.addRepository({ ownerId: owner.id, name: "demo" });
  const issue = createIssue(world, owner.id, { repository, title: "t" });
  const setting = { clock, world, owner, by: owner.id, repository };
  expect(moves(setting, issue, () => lockIssue(world, owner.id, issue))).toBe(true);
});

test("pushes, drafts and reviews move a pull request; edits of reviews and the loss of its fork do not", () => {
  const setting = openWorld();
  const { world, by, repository } = setting;
  const bob = world.addUser({ login: "bob" });
  pushBranch(world, by, repository, "topic");
  const pull = createPull(world, by, {
    repository,
    headRepository: repository,
    headRef: "topic",
    baseRef: "main",
    title: "p",
  });
  const moved = (change: () => void) => moves(setting, pull, change);
  expect(moved(() => pushToPull(world, by, pull))).toBe(true);
  expect(repository.branches.get("topic")).toBe(pull.pull.head.sha);
  expect(moved(() => setDraft(world, by, pull, true))).toBe(true);
  expect(moved(() => createReview(world, bob.id, pull, { state: "APPROVED" }))).toBe(true);
  const [review] = pull.pull.reviews;
  if (!review) throw new Error("There should be a review");
  expect(moved(() => editReview(world, bob.id, review, "words"))).toBe(false);
  expect(moved(() => deleteForkHead(world, pull))).toBe(false);
  expect(() => pushToPull(world, by, pull)).toThrow("The head repository of this pull request is gone");
});

test("a transferred issue keeps its words and its age, and takes labels of the same name along", () => {
  const { clock, world, by, repository } = openWorld();
  const target = world.addRepository({ ownerId: by, name: "other" });
  const shared = createLabel(world, by, { repository: target, name: "Bug" });
  const labelIds = ["bug", "only here"].map((name) => createLabel(world, by, { repository, name }).id);
  const issue = createIssue(world, by, { repository, title: "t", labelIds });
  createComment(world, by, issue, "c");
  clock.advance(5_000);
  const moved = transferIssue(world, by, issue, target);
  expect(moved).toMatchObject({ title: "t", createdAt: issue.createdAt, labelIds: [shared.id], number: 1 });
  expect(moved.thread.map((comment) => comment.body)).toEqual(["c"]);
  expect([
    repository.openIssues,
    target.openIssues,
    repository.rows.commentsById.size,
    target.rows.commentsById.size,
  ]).toEqual([0, 1, 0, 1]);
});

test("a number in use, a name in use and a merged pull request's reopening are refused", () => {
  const { world, by, repository } = openWorld();
  createIssue(world, by, { repository, title: "t" });
  expect(() => world.addIssue({ repository, number: 1, title: "t", authorId: by })).toThrow(
    "#1 is in use in octo/demo",
  );
  expect(() => world.addRepository({ ownerId: by, name: "DEMO" })).toThrow("is taken");
  expect(() => world.addUser({ login: "OCTO" })).toThrow("is taken");
});

test.each([1, 2])("counters and indexes stay true through a live stream (seed %i)", (seed) => {
  const world = new World({ seed, clock: new SettableClock(Date.UTC(2026, 9, 1)) });
  generateWorld(world, { seed, repositories: 2, issues: 120 });
  const live = startLive(world, { ratePerSecond: 0, seed });
  for (let step = 0; step < 1_500; step++) {
    if (step % 3 === 0) (world.clock as SettableClock).advance(1_000);
    live.step();
  }
  for (const repository of world.repositories.values()) {
    const { rows } = repository;
    const issues = rows.byNumber.filter((issue) => issue !== undefined);
    const open = issues.filter((issue) => issue.state === "open");
    expect(repository.openPulls).toBe(open.filter((issue) => issue.pull).length);
    expect(repository.openIssues).toBe(open.filter((issue) => !issue.pull).length);
    expect([...rows.issuesByUpdated.ascending()]).toEqual(
      issues.toSorted((a, b) => a.updatedAt - b.updatedAt || a.id - b.id),
    );
    expect(rows.issuesByCreated.size).toBe(issues.length);
    expect(rows.pullsByCreated.size).toBe(issues.filter((issue) => issue.pull).length);
    expect([...rows.commentsById.ascending()].map((row) => row.id)).toEqual(
      issues.flatMap((issue) => issue.thread.map((row) => row.id)).toSorted((a, b) => a - b),
    );
    for (const milestone of rows.milestones.values()) {
      const inside = issues.filter((issue) => issue.milestoneId === milestone.id);
      expect(milestone.openIssues).toBe(inside.filter((issue) => issue.state === "open").length);
      expect(milestone.closedIssues).toBe(inside.filter((issue) => issue.state === "closed").length);
    }
  }
});
