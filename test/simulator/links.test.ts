import { expect, test } from "vitest";
import { deleteIssue, editIssue } from "../../src/simulator/changes/issues.ts";
import { addedHook } from "./hooked.ts";
import { openReceiver, openSimulated } from "./simulated.ts";

const ISSUES = "/repos/octo/demo/issues";

test("a sub-issue hangs below one parent, in an order that people choose, and neither side's updated_at moves", async () => {
  await using it = await openSimulated();
  const [parent, first, second] = [it.issue("parent"), it.issue("first"), it.issue("second")];
  it.clock.advance(60_000);
  for (const { id } of [first, second]) {
    const made = await it.ask("POST", `${ISSUES}/1/sub_issues`, { body: { sub_issue_id: id } });
    expect(made.status).toBe(201);
  }
  const twice = await it.ask("POST", `${ISSUES}/1/sub_issues`, { body: { sub_issue_id: first.id } });
  expect(twice.status).toBe(422);
  const above = await it.ask("POST", `${ISSUES}/2/sub_issues`, { body: { sub_issue_id: parent.id } });
  expect(above.status).toBe(422);
  await it.ask("PATCH", `${ISSUES}/1/sub_issues/priority`, { body: { sub_issue_id: second.id } });
  const list = await it.get(`${ISSUES}/1/sub_issues`);
  expect(list.body.map(({ number }: { number: number }) => number)).toEqual([3, 2]);
  editIssue(it.simulator.world, it.owner.id, first, { state: "closed" });
  expect((await it.get(`${ISSUES}/1`)).body).toMatchObject({
    sub_issues_summary: { total: 2, completed: 1, percent_completed: 50 },
    updated_at: "2026-10-01T12:00:00Z",
  });
  expect((await it.get(`${ISSUES}/3`)).body.parent_issue_url).toBe(`${it.simulator.url}${ISSUES}/1`);
  expect((await it.get(`${ISSUES}/3/parent`)).body.number).toBe(1);
  expect((await it.get(`${ISSUES}/1/parent`)).status).toBe(404);

  deleteIssue(it.simulator.world, it.owner.id, parent);
  expect((await it.get(`${ISSUES}/3`)).body).not.toHaveProperty("parent_issue_url");
});

test("what blocks an issue counts as long as it is open", async () => {
  await using it = await openSimulated();
  const [blocked, blocking] = [it.issue(), it.issue()];
  const made = await it.ask("POST", `${ISSUES}/1/dependencies/blocked_by`, { body: { issue_id: blocking.id } });
  expect(made.body.issue_dependencies_summary).toEqual({
    blocked_by: 1,
    total_blocked_by: 1,
    blocking: 0,
    total_blocking: 0,
  });
  editIssue(it.simulator.world, it.owner.id, blocking, { state: "closed" });
  expect((await it.get(`${ISSUES}/1`)).body.issue_dependencies_summary).toMatchObject({
    blocked_by: 0,
    total_blocked_by: 1,
  });
  const waiting = await it.get(`${ISSUES}/2/dependencies/blocking`);
  expect(waiting.body.map(({ id }: { id: number }) => id)).toEqual([blocked.id]);
  expect((await it.get(`${ISSUES}/1/dependencies/blocked_by`)).body).toHaveLength(1);
  expect((await it.ask("DELETE", `${ISSUES}/1/dependencies/blocked_by/${blocking.id}`)).status).toBe(200);
  expect((await it.get(`${ISSUES}/1/dependencies/blocked_by`)).body).toEqual([]);
});

test("each link is told from both sides, and a type as the event of its issue", async () => {
  await using it = await openSimulated({ webhooks: { concurrency: 1 } });
  await using receiver = await openReceiver();
  const [parent, child] = [it.issue(), it.issue()];
  await it.simulator.quiet();
  await addedHook(it, receiver.url);
  await it.ask("POST", `${ISSUES}/1/sub_issues`, { body: { sub_issue_id: child.id } });
  await it.ask("POST", `${ISSUES}/1/dependencies/blocked_by`, { body: { issue_id: child.id } });
  await it.ask("PATCH", `${ISSUES}/1`, { body: { type: "Bug" } });
  await it.ask("PATCH", `${ISSUES}/1`, { body: { type: null } });
  await it.simulator.quiet();
  expect(receiver.names()).toEqual([
    "sub_issues.sub_issue_added",
    "sub_issues.parent_issue_added",
    "issue_dependencies.blocked_by_added",
    "issue_dependencies.blocking_added",
    "issues.typed",
    "issues.untyped",
  ]);
  const [added, seenBelow] = receiver.heard.map(({ payload }) => payload);
  expect(added).toMatchObject({ parent_issue_id: parent.id, parent_issue: { number: 1 }, sub_issue: { number: 2 } });
  expect(added).toHaveProperty("sub_issue_repo.full_name", "octo/demo");
  expect(seenBelow).toHaveProperty("parent_issue_repo.full_name", "octo/demo");
  expect(receiver.heard[4]?.payload).toMatchObject({ type: { name: "Bug" }, issue: { type: { name: "Bug" } } });
});
