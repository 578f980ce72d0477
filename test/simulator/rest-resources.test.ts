import { expect, test } from "vitest";
import { deleteIssue, transferIssue } from "../../src/simulator/changes/issues.ts";
import { archiveRepository, deleteRepository, editRepository } from "../../src/simulator/changes/repositories.ts";
import { deleteUser, renameUser } from "../../src/simulator/changes/users.ts";
import { openSimulated } from "./simulated.ts";

const ISSUES = "/repos/octo/demo/issues";
const PULLS = "/repos/octo/demo/pulls";

test("an issue is created, edited, closed with a reason and reopened", async () => {
  await using it = await openSimulated();
  const made = await it.ask("POST", ISSUES, {
    body: { title: "t", body: null, labels: ["bug", { name: "new" }], assignees: ["octo"] },
  });
  expect(made.status).toBe(201);
  expect(made.body).toMatchObject({
    number: 1,
    state: "open",
    body: null,
    user: { login: "octo" },
    assignee: { login: "octo" },
    labels: [{ name: "bug", color: "ededed", default: false, description: null }, { name: "new" }],
    author_association: "OWNER",
    closed_by: null,
    state_reason: null,
    created_at: "2026-10-01T12:00:00Z",
  });
  it.clock.advance(1_000);
  const closed = await it.ask("PATCH", `${ISSUES}/1`, {
    body: { state: "closed", state_reason: "not_planned", labels: [], assignees: [] },
  });
  expect(closed.body).toMatchObject({
    state: "closed",
    state_reason: "not_planned",
    closed_at: "2026-10-01T12:00:01Z",
    closed_by: { login: "octo" },
    labels: [],
    assignees: [],
  });
  const open = await it.ask("PATCH", `${ISSUES}/1`, { body: { state: "open" } });
  // A reopened issue still shows who closed it, as was recorded of the service.
  expect(open.body).toMatchObject({
    state: "open",
    state_reason: "reopened",
    closed_at: null,
    closed_by: { login: "octo" },
  });
});

test("without push access the sets are silently dropped, and others' issues cannot be edited", async () => {
  await using it = await openSimulated();
  await it.control("POST", "/-/tokens", { token: "eves", login: "eve" });
  it.issue();
  const made = await it.ask("POST", ISSUES, {
    token: "eves",
    body: { title: "t", labels: ["bug"], assignees: ["octo"] },
  });
  expect(made).toMatchObject({ status: 201, body: { labels: [], assignees: [], author_association: "NONE" } });
  expect((await it.ask("PATCH", `${ISSUES}/2`, { token: "eves", body: { title: "mine" } })).body.title).toBe("mine");
  expect((await it.ask("PATCH", `${ISSUES}/1`, { token: "eves", body: { title: "not mine" } })).status).toBe(403);
  expect((await it.ask("POST", ISSUES, { token: null, body: { title: "t" } })).status).toBe(401);
});

test("what cannot be is refused with the field that is wrong", async () => {
  await using it = await openSimulated();
  const post = (body: unknown) => it.ask("POST", ISSUES, { body });
  expect((await post({ title: " " })).body.errors).toEqual([
    { resource: "Issue", field: "title", code: "missing_field" },
  ]);
  expect((await post({ title: "x".repeat(257) })).body.errors[0].message).toBe(
    "title is too long (maximum is 256 characters)",
  );
  expect((await post({ title: "t", body: "x".repeat(65_537) })).body.errors[0].message).toBe(
    "body is too long (maximum is 65536 characters)",
  );
  expect((await post({ title: "t", milestone: 9 })).body.errors).toEqual([
    { value: 9, resource: "Issue", field: "milestone", code: "invalid" },
  ]);
  expect((await post({ title: "t", assignees: ["nobody"] })).status).toBe(422);
  expect((await post({ title: {} })).status).toBe(422);
  expect((await post({ title: 7 })).body.title).toBe("7");
  expect((await it.ask("PATCH", `${ISSUES}/1`, { body: { state: "done" } })).status).toBe(422);
  editRepository(it.simulator.world, it.owner.id, it.repository, { hasIssues: false });
  expect(await post({ title: "t" })).toMatchObject({
    status: 410,
    body: { message: "Issues has been disabled in this repository." },
  });
  archiveRepository(it.simulator.world, it.owner.id, it.repository, true);
  expect((await post({ title: "t" })).status).toBe(403);
});

test("a deleted issue is 410, a transferred one 301, their comments 404 or 410", async () => {
  await using it = await openSimulated();
  const { world, url } = it.simulator;
  const target = world.addRepository({ ownerId: it.owner.id, name: "other", visibility: "private" });
  const gone = it.issue("gone");
  const moved = it.issue("moved");
  await it.ask("POST", `${ISSUES}/2/comments`, { body: { body: "comes along" } });
  deleteIssue(world, it.owner.id, gone);
  const there = transferIssue(world, it.owner.id, moved, target);
  expect(await it.get(`${ISSUES}/1`)).toMatchObject({
    status: 410,
    body: { message: "This issue was deleted", status: "410" },
  });
  const reply = await it.get(`${ISSUES}/2`);
  expect([reply.status, reply.body.url]).toEqual([301, `${url}/repositories/${target.id}/issues/${there.number}`]);
  expect((await it.get(reply.body.url)).body).toMatchObject({ title: "moved", comments: 1 });
  expect((await it.get(`${ISSUES}/2/comments`)).status).toBe(404);
  expect((await it.get(`${ISSUES}/2`, { token: null })).status).toBe(404);
  expect((await it.get(ISSUES)).body).toEqual([]);
  expect((await it.ask("PATCH", `${ISSUES}/1`, { body: { title: "x" } })).status).toBe(410);
  deleteRepository(world, it.owner.id, target);
  const lost = await it.get(`${ISSUES}/2`);
  expect([lost.status, lost.headers.get("location"), lost.body.url]).toEqual([301, "", ""]);
  expect((await it.ask("POST", ISSUES, { body: { title: "next" } })).body.number).toBe(3);
});

test("labels of an issue are added, replaced, removed; a label that is not there is told", async () => {
  await using it = await openSimulated();
  it.issue();
  const names = (reply: { body: { name: string }[] }) => reply.body.map((label) => label.name);
  expect(names(await it.ask("POST", `${ISSUES}/1/labels`, { body: { labels: ["a", "b/c"] } }))).toEqual(["a", "b/c"]);
  expect(names(await it.ask("POST", `${ISSUES}/1/labels`, { body: ["d"] }))).toEqual(["a", "b/c", "d"]);
  expect(names(await it.ask("DELETE", `${ISSUES}/1/labels/b%2Fc`))).toEqual(["a", "d"]);
  expect(await it.ask("DELETE", `${ISSUES}/1/labels/nope`)).toMatchObject({
    status: 404,
    body: { message: "Label does not exist" },
  });
  expect(names(await it.ask("PUT", `${ISSUES}/1/labels`, { body: { labels: ["b/c"] } }))).toEqual(["b/c"]);
  expect((await it.ask("DELETE", `${ISSUES}/1/labels`)).status).toBe(204);
  expect((await it.get(`${ISSUES}/1/labels`)).body).toEqual([]);
});

test("labels and milestones are managed and validated", async () => {
  await using it = await openSimulated();
  const labels = "/repos/octo/demo/labels";
  const post = (path: string, body: unknown) => it.ask("POST", path, { body });
  expect((await post(labels, { name: "bug 🐛", color: "FF0000" })).body).toMatchObject({
    color: "ff0000",
    url: `${it.simulator.url}${labels}/bug%20%F0%9F%90%9B`,
  });
  expect((await post(labels, { name: "BUG 🐛" })).body.errors).toEqual([
    { resource: "Label", code: "already_exists", field: "name" },
  ]);
  expect(await post(labels, { name: "x", color: "#fff" })).toMatchObject({
    status: 422,
    body: { message: "Validation Failed", errors: [{ resource: "Label", code: "invalid", field: "color" }] },
  });
  expect((await post(labels, { name: "x", description: "d".repeat(101) })).status).toBe(422);
  await post(ISSUES, { title: "t", labels: ["bug 🐛"] });
  await it.ask("PATCH", `${labels}/${encodeURIComponent("bug 🐛")}`, { body: { new_name: "defect" } });
  expect((await it.get(`${ISSUES}/1`)).body.labels[0].name).toBe("defect");
  expect((await it.ask("DELETE", `${labels}/defect`)).status).toBe(204);
  expect((await it.get(`${ISSUES}/1`)).body).toMatchObject({ labels: [], updated_at: "2026-10-01T12:00:00Z" });

  const milestones = "/repos/octo/demo/milestones";
  expect((await post(milestones, { title: "v1", due_on: "2026-12-24T00:00:00Z" })).body).toMatchObject({
    number: 1,
    due_on: "2026-12-24T00:00:00Z",
    creator: { login: "octo" },
  });
  expect((await post(milestones, { title: "v1" })).status).toBe(422);
  await post(milestones, { title: "v0", due_on: "2026-11-01T00:00:00Z" });
  await it.ask("PATCH", `${ISSUES}/1`, { body: { milestone: 1 } });
  expect((await it.get(`${milestones}/1`)).body).toMatchObject({ open_issues: 1, closed_issues: 0 });
  await it.ask("PATCH", `${ISSUES}/1`, { body: { state: "closed" } });
  expect((await it.get(`${milestones}/1`)).body).toMatchObject({ open_issues: 0, closed_issues: 1 });
  expect((await it.get(milestones)).body.map((row: { title: string }) => row.title)).toEqual(["v0", "v1"]);
  expect((await it.ask("PATCH", `${milestones}/1`, { body: { state: "closed" } })).body.closed_at).toBe(
    "2026-10-01T12:00:00Z",
  );
  expect((await it.get(milestones)).body).toHaveLength(1);
  expect((await it.ask("DELETE", `${milestones}/1`)).status).toBe(204);
  expect((await it.get(`${ISSUES}/1`)).body.milestone).toBeNull();
  expect((await it.get(`${milestones}/1`)).status).toBe(404);
});

test("locked issues take comments only from those who may push", async () => {
  await using it = await openSimulated();
  await it.control("POST", "/-/tokens", { token: "eves", login: "eve" });
  it.issue();
  expect((await it.ask("PUT", `${ISSUES}/1/lock`, { body: { lock_reason: "too heated" } })).status).toBe(204);
  expect((await it.get(`${ISSUES}/1`)).body).toMatchObject({ locked: true, active_lock_reason: "too heated" });
  expect((await it.ask("POST", `${ISSUES}/1/comments`, { token: "eves", body: { body: "b" } })).status).toBe(403);
  expect((await it.ask("POST", `${ISSUES}/1/comments`, { body: { body: "b" } })).status).toBe(201);
  expect((await it.ask("PUT", `${ISSUES}/1/lock`, { body: { lock_reason: "bored" } })).status).toBe(422);
  expect((await it.ask("DELETE", `${ISSUES}/1/lock`)).status).toBe(204);
});

test("comments are created, edited, deleted; a deleted one is 404", async () => {
  await using it = await openSimulated();
  it.issue();
  const made = await it.ask("POST", `${ISSUES}/1/comments`, { body: { body: "first" } });
  const path = `${ISSUES}/comments/${made.body.id}`;
  expect(made.body).toMatchObject({
    issue_url: `${it.simulator.url}${ISSUES}/1`,
    html_url: `https://github.com/octo/demo/issues/1#issuecomment-${made.body.id}`,
  });
  it.clock.advance(1_000);
  expect((await it.ask("PATCH", path, { body: { body: "second" } })).body).toMatchObject({
    body: "second",
    updated_at: "2026-10-01T12:00:01Z",
  });
  expect((await it.ask("DELETE", path)).status).toBe(204);
  expect((await it.get(path)).status).toBe(404);
  expect((await it.get(`${ISSUES}/1`)).body.comments).toBe(0);
  expect((await it.ask("POST", `${ISSUES}/1/comments`, { body: {} })).body.message).toBe(
    'Invalid request.\n\n"body" wasn\'t supplied.',
  );
});

test("deleted people are the ghost, null on review comments and pull request ends", async () => {
  await using it = await openSimulated();
  const { world } = it.simulator;
  const eve = world.addUser({ login: "eve" });
  it.openPull();
  const by = { repository: "octo/demo", number: 1, by: "eve" };
  await it.control("POST", "/-/mutate", { op: "createComment", ...by, body: "c" });
  const comment = await it.control("POST", "/-/mutate", { op: "createReviewComment", ...by, body: "c", path: "a.ts" });
  await it.ask("POST", `${ISSUES}/1/assignees`, { body: { assignees: ["eve"] } });
  deleteUser(world, it.owner.id, eve);
  expect((await it.get(`${ISSUES}/1/comments`)).body[0].user).toMatchObject({
    login: "ghost",
    id: 10137,
    type: "User",
  });
  expect((await it.get(`${PULLS}/comments/${comment.body.id}`)).body.user).toBeNull();
  expect((await it.get(`${ISSUES}/1`)).body.assignees).toEqual([]);
  expect((await it.get("/users/eve")).status).toBe(404);
});

test("a renamed person is renamed everywhere, without any updated_at", async () => {
  await using it = await openSimulated();
  it.issue();
  const before = (await it.get(`${ISSUES}/1`)).body.updated_at;
  it.clock.advance(10_000);
  renameUser(it.simulator.world, it.owner, "octavia");
  const reply = await it.get("/repos/octavia/demo/issues/1");
  expect(reply.body).toMatchObject({ user: { login: "octavia" }, updated_at: before });
  expect((await it.get("/repos/octo/demo")).status).toBe(301);
  expect((await it.get("/users/octo")).status).toBe(404);
});
