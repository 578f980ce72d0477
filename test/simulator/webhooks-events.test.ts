import { expect, test } from "vitest";
import { GHOST_ID } from "../../src/simulator/world/records.ts";
import { addedHook } from "./hooked.ts";
import { type Heard, openReceiver, openSimulated, type Receiver, type Simulated } from "./simulated.ts";

/** Performs the operations, and answers what the hook of `octo/demo` received. */
async function hear(
  it: Simulated,
  receiver: Receiver,
  ...ops: readonly Record<string, unknown>[]
): Promise<readonly Heard[]> {
  receiver.heard.length = 0;
  for (const op of ops) {
    const reply = await it.control("POST", "/-/mutate", { repository: "octo/demo", by: "octo", ...op });
    expect(reply.status, reply.text).toBe(200);
    await it.simulator.quiet(); // They are performed one by one, because the test looks at the order.
  }
  return receiver.heard;
}

async function open() {
  const it = await openSimulated({ webhooks: { concurrency: 1 } });
  const receiver = await openReceiver();
  await addedHook(it, receiver.url);
  const stack = new AsyncDisposableStack();
  stack.use(receiver);
  stack.use(it);
  return { it, receiver, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

test("an issue tells each of its changes with what changed", async () => {
  await using at = await open();
  const { it, receiver } = at;
  it.simulator.world.addUser({ login: "bob" });
  await hear(it, receiver, { op: "createMilestone", title: "v1" });
  const heard = await hear(
    it,
    receiver,
    { op: "createIssue", title: "t", body: "b", labels: ["bug"], assignees: ["bob"] },
    { op: "editIssue", number: 1, title: "t2", body: "b2" },
    { op: "editIssue", number: 1, labels: ["new"], assignees: [], milestone: 1 },
    { op: "editIssue", number: 1, state: "closed", milestone: null },
    { op: "editIssue", number: 1, state: "open" },
    { op: "lockIssue", number: 1, reason: "spam" },
    { op: "unlockIssue", number: 1 },
    { op: "pinIssue", number: 1 },
    { op: "unpinIssue", number: 1 },
    { op: "deleteIssue", number: 1 },
  );
  expect(receiver.names()).toEqual([
    "label.created",
    "issues.opened",
    "issues.labeled",
    "issues.assigned",
    "issues.edited",
    "label.created",
    "issues.unlabeled",
    "issues.labeled",
    "issues.unassigned",
    "issues.milestoned",
    "issues.closed",
    "issues.demilestoned",
    "issues.reopened",
    "issues.locked",
    "issues.unlocked",
    "issues.pinned",
    "issues.unpinned",
    "issues.deleted",
  ]);
  expect(heard[2]?.payload.label.name).toBe("bug");
  expect(heard[3]?.payload.assignee.login).toBe("bob");
  expect(heard[4]?.payload.changes).toEqual({ title: { from: "t" }, body: { from: "b" } });
  expect(heard[6]?.payload.label.name).toBe("bug");
  expect(heard[9]?.payload.milestone.title).toBe("v1");
  expect(heard[10]?.payload.issue).not.toHaveProperty("closed_by");
  expect(heard[10]?.payload).toMatchObject({
    repository: { full_name: "octo/demo" },
    sender: { login: "octo" },
    issue: { state: "closed" },
  });
});

test("equal edits change nothing, bump nothing and tell nothing", async () => {
  await using at = await open();
  const { it, receiver } = at;
  await hear(it, receiver, { op: "createIssue", title: "t" });
  it.clock.advance(5_000);
  const heard = await hear(
    it,
    receiver,
    { op: "editIssue", number: 1, title: "t", state: "open", labels: [] },
    { op: "unlockIssue", number: 1 },
  );
  expect(heard).toEqual([]);
  expect((await it.get("/repos/octo/demo/issues/1")).body.updated_at).toBe("2026-10-01T12:00:00Z");
});

test("deleting a label tells unlabeled without the label, besides label.deleted", async () => {
  await using at = await open();
  const { it, receiver } = at;
  await hear(
    it,
    receiver,
    { op: "createIssue", title: "t", labels: ["bug"] },
    { op: "createIssue", title: "u", labels: ["bug"] },
  );
  const heard = await hear(
    it,
    receiver,
    { op: "editLabel", label: "bug", name: "defect", color: "00ff00" },
    { op: "deleteLabel", label: "defect" },
  );
  expect(receiver.names()).toEqual(["label.edited", "issues.unlabeled", "issues.unlabeled", "label.deleted"]);
  expect(heard[0]?.payload.changes).toEqual({ name: { from: "bug" }, color: { from: "ededed" } });
  expect(heard[1]?.payload).not.toHaveProperty("label");
  expect(heard[1]?.payload.issue.labels).toEqual([]);
  expect(heard[3]?.payload.label.name).toBe("defect");
});

test("a transfer is told at both ends", async () => {
  await using at = await open();
  const { it, receiver } = at;
  const other = it.simulator.world.addRepository({ ownerId: it.owner.id, name: "other" });
  it.simulator.world.addHook({ repository: other, url: receiver.url, contentType: "json", events: ["*"] });
  await hear(it, receiver, { op: "createIssue", title: "t" });
  const heard = await hear(it, receiver, { op: "transferIssue", number: 1, to: "octo/other" });
  const source = heard.find((one) => one.payload.action === "transferred")?.payload;
  const target = heard.find((one) => one.payload.action === "opened")?.payload;
  expect(heard).toHaveLength(2);
  expect(source).toMatchObject({
    repository: { full_name: "octo/demo" },
    issue: { number: 1 },
    changes: { new_issue: { number: 1, title: "t" }, new_repository: { full_name: "octo/other" } },
  });
  expect(target).toMatchObject({
    repository: { full_name: "octo/other" },
    changes: { old_issue: { number: 1 }, old_repository: { full_name: "octo/demo" } },
  });
  expect(target.issue.id).not.toBe(source.issue.id);
});

test("a pull request tells its life", async () => {
  await using at = await open();
  const { it, receiver } = at;
  it.simulator.world.addUser({ login: "bob" });
  const heard = await hear(
    it,
    receiver,
    { op: "pushBranch", ref: "next" },
    { op: "createPull", head: "topic", title: "p", draft: true },
    { op: "readyForReview", number: 1 },
    { op: "requestReviewers", number: 1, logins: ["bob"] },
    { op: "pushToPull", number: 1, sha: "b".repeat(40) },
    { op: "editPull", number: 1, baseRef: "next" },
    { op: "editIssue", number: 1, labels: ["l"] },
    { op: "createReview", number: 1, by: "bob", state: "APPROVED", body: "fine" },
    { op: "createReviewComment", number: 1, by: "bob", body: "nit", path: "a.ts" },
    { op: "createComment", number: 1, body: "thanks" },
    { op: "mergePull", number: 1 },
  );
  expect(receiver.names()).toEqual([
    "create",
    "push",
    "create",
    "push",
    "pull_request.opened",
    "pull_request.ready_for_review",
    "pull_request.review_requested",
    "push",
    "pull_request.synchronize",
    "pull_request.edited",
    "label.created",
    "pull_request.labeled",
    "pull_request_review.submitted",
    "pull_request_review.submitted",
    "pull_request_review_comment.created",
    "issue_comment.created",
    "push",
    "pull_request.closed",
  ]);
  const named = (name: string) => heard.find((one) => `${one.event}.${one.payload.action}` === name)?.payload;
  expect(named("pull_request.opened")).toMatchObject({
    number: 1,
    pull_request: { draft: true, mergeable: null, commits: expect.any(Number) },
  });
  expect(named("pull_request.review_requested").requested_reviewer.login).toBe("bob");
  expect(named("pull_request.synchronize")).toMatchObject({
    after: "b".repeat(40),
    pull_request: { head: { sha: "b".repeat(40) } },
  });
  expect(named("pull_request.edited").changes).toMatchObject({
    base: { ref: { from: "main" }, sha: { from: expect.any(String) } },
  });
  const review = named("pull_request_review.submitted");
  expect(review.review).toMatchObject({ state: "approved", updated_at: "2026-10-01T12:00:00Z", body: "fine" });
  for (const key of [
    "merged",
    "mergeable",
    "rebaseable",
    "merged_by",
    "comments",
    "commits",
    "additions",
    "changed_files",
    "maintainer_can_modify",
  ]) {
    expect(review.pull_request).not.toHaveProperty(key);
    expect(named("pull_request_review_comment.created").pull_request).not.toHaveProperty(key);
    expect(named("pull_request.closed").pull_request).toHaveProperty(key);
  }
  expect(named("issue_comment.created").issue.pull_request).toBeDefined();
  expect(named("pull_request.closed").pull_request).toMatchObject({
    merged: true,
    state: "closed",
    merged_by: { login: "octo" },
  });
  const push = heard[1]?.payload;
  expect(push).toMatchObject({
    ref: "refs/heads/next",
    repository: { created_at: expect.any(Number), pushed_at: expect.any(Number), owner: { name: "octo" } },
  });
});

test("edits and deletions of comments and reviews are told with the text from before", async () => {
  await using at = await open();
  const { it, receiver } = at;
  await hear(it, receiver, { op: "createPull", head: "topic", title: "p" });
  const id = async (op: Record<string, unknown>) =>
    (await it.control("POST", "/-/mutate", { repository: "octo/demo", number: 1, ...op })).body.id;
  const comment = await id({ op: "createComment", body: "one" });
  const review = await id({ op: "createReview", state: "COMMENTED", body: "one" });
  const remark = await id({ op: "createReviewComment", body: "one" });
  await it.simulator.quiet();
  const heard = await hear(
    it,
    receiver,
    { op: "editComment", comment, body: "two" },
    { op: "deleteComment", comment },
    { op: "editReview", review, body: "two" },
    { op: "editReviewComment", comment: remark, body: "two" },
    { op: "deleteReviewComment", comment: remark },
  );
  expect(receiver.names()).toEqual([
    "issue_comment.edited",
    "issue_comment.deleted",
    "pull_request_review.edited",
    "pull_request_review_comment.edited",
    "pull_request_review_comment.deleted",
  ]);
  for (const at of [0, 2, 3]) expect(heard[at]?.payload.changes).toEqual({ body: { from: "one" } });
  expect(heard[1]?.payload.comment).toMatchObject({ id: comment, body: "two" });
});

test("milestones and repositories tell their changes", async () => {
  await using at = await open();
  const { it, receiver } = at;
  it.simulator.world.addUser({ login: "acme", type: "Organization" });
  const heard = await hear(
    it,
    receiver,
    { op: "createMilestone", title: "v1" },
    { op: "editMilestone", milestone: 1, title: "v2", dueOn: 1_800_000_000 },
    { op: "editMilestone", milestone: 1, state: "closed" },
    { op: "editMilestone", milestone: 1, state: "open" },
    { op: "deleteMilestone", milestone: 1 },
    { op: "editRepository", description: "d" },
    { op: "privatizeRepository" },
    { op: "publicizeRepository" },
    { op: "archiveRepository" },
    { op: "unarchiveRepository" },
    { op: "renameRepository", name: "renamed" },
    { op: "transferRepository", repository: "octo/renamed", to: "acme" },
    { op: "deleteRepository", repository: "acme/renamed" },
  );
  expect(receiver.names()).toEqual([
    "milestone.created",
    "milestone.edited",
    "milestone.closed",
    "milestone.opened",
    "milestone.deleted",
    "repository.edited",
    "repository.privatized",
    "repository.publicized",
    "public",
    "repository.archived",
    "repository.unarchived",
    "repository.renamed",
    "repository.transferred",
    // Its deletion is for Apps alone.
  ]);
  expect(heard[1]?.payload.changes).toEqual({ title: { from: "v1" }, due_on: { from: null } });
  expect(heard[11]?.payload.changes).toEqual({ repository: { name: { from: "demo" } } });
  expect(heard[12]?.payload).toMatchObject({
    changes: { owner: { from: { user: { login: "octo" } } } },
    organization: { login: "acme" },
  });
});

test("a deleted account is the ghost in webhooks too", async () => {
  await using at = await open();
  const { it, receiver } = at;
  it.simulator.world.addUser({ login: "eve" });
  await hear(it, receiver, { op: "createIssue", by: "eve", title: "t" }, { op: "deleteUser", login: "eve" });
  const heard = await hear(it, receiver, { op: "lockIssue", number: 1 });
  expect(heard[0]?.payload.issue.user.id).toBe(GHOST_ID);
});
