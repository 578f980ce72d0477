import { expect, test } from "vitest";
import { addIssueEvent } from "../../src/simulator/changes/issue-events.ts";
import { deleteIssue, editIssue, lockIssue } from "../../src/simulator/changes/issues.ts";
import { openSimulated } from "./simulated.ts";

const ISSUES = "/repos/octo/demo/issues";
const names = ({ body }: { body: { event: string }[] }) => body.map(({ event }) => event);

test("what happens to an issue is listed, an issue's events from the oldest on, a repository's from the newest", async () => {
  await using it = await openSimulated();
  const { world } = it.simulator;
  const [one, other] = [it.issue("one"), it.issue("other")];
  const label = world.addLabel({ repository: one.repository, name: "bug" });
  editIssue(world, it.owner.id, one, { labelIds: [label.id], title: "renamed" });
  editIssue(world, it.owner.id, one, { title: "renamed" });
  lockIssue(world, it.owner.id, other, "spam");
  expect(names(await it.get(`${ISSUES}/1/events`))).toEqual(["renamed", "labeled"]);
  const all = await it.get(`${ISSUES}/events`);
  expect(names(all)).toEqual(["locked", "labeled", "renamed"]);
  expect(all.body[1]).toMatchObject({
    label: { name: "bug", color: label.color },
    issue: { number: 1 },
    commit_id: null,
  });
  expect(all.body[0].lock_reason).toBe("spam");
  expect((await it.get(`${ISSUES}/events/${all.body[2].id}`)).body.rename).toEqual({ from: "one", to: "renamed" });
  expect((await it.get(`${ISSUES}/1/events`)).body[0]).not.toHaveProperty("issue");
});

test("a reference by a commit moves no time, and a deleted issue takes its events along", async () => {
  await using it = await openSimulated();
  const { world } = it.simulator;
  const issue = it.issue("one");
  const before = issue.updatedAt;
  it.clock.advance(60_000);
  const { id } = addIssueEvent(world, it.owner.id, issue, { happened: "referenced", commitId: "a".repeat(40) });
  expect(issue.updatedAt).toBe(before);
  expect((await it.get(`${ISSUES}/events/${id}`)).body.commit_url).toMatch(/\/commits\/a{40}$/);
  deleteIssue(world, it.owner.id, issue);
  expect((await it.get(`${ISSUES}/events/${id}`)).status).toBe(404);
  expect((await it.get(`${ISSUES}/events`)).body).toEqual([]);
});
