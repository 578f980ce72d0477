import { expect, test } from "vitest";
import { deleteForkHead, mergePull, pushBranch } from "../../src/simulator/changes/pulls.ts";
import { deleteRepository } from "../../src/simulator/changes/repositories.ts";
import { openSimulated } from "./simulated.ts";

const ISSUES = "/repos/octo/demo/issues";
const PULLS = "/repos/octo/demo/pulls";

test("a pull request needs a branch to come from, one to go to, and something between them", async () => {
  await using it = await openSimulated();
  const main = (await it.get("/repos/octo/demo/git/ref/heads/main")).body.object.sha;
  const post = (body: unknown) => it.ask("POST", PULLS, { body });
  expect((await post({ title: "t", head: "topic", base: "main" })).body.errors).toEqual([
    { resource: "PullRequest", field: "head", code: "invalid" },
  ]);
  await it.ask("POST", "/repos/octo/demo/git/refs", { body: { ref: "refs/heads/same", sha: main } });
  await it.ask("POST", "/repos/octo/demo/git/refs", { body: { ref: "refs/heads/topic", sha: "a".repeat(40) } });
  expect((await post({ title: "t", head: "topic", base: "x" })).body.errors).toEqual([
    { message: "Proposed base branch 'x' was not found", resource: "PullRequest", field: "base", code: "invalid" },
  ]);
  expect((await post({ title: "t", head: "same", base: "main" })).body.errors[0].message).toBe(
    "No commits between main and same",
  );
  const made = await post({ title: "t", head: "octo:topic", base: "main", draft: true });
  expect(made).toMatchObject({
    status: 201,
    body: {
      draft: true,
      merged: false,
      mergeable: null,
      mergeable_state: "draft",
      head: { label: "octo:topic", sha: "a".repeat(40) },
    },
  });
  expect((await post({ title: "t", head: "topic", base: "main" })).body.errors).toEqual([
    { resource: "PullRequest", code: "custom", message: "A pull request already exists for octo:topic." },
  ]);
});

test("an open issue can become a pull request: same number and words, new kind", async () => {
  await using it = await openSimulated();
  await it.ask("POST", ISSUES, { body: { title: "an idea", body: "words" } });
  await it.ask("POST", "/repos/octo/demo/git/refs", { body: { ref: "refs/heads/topic", sha: "a".repeat(40) } });
  const convert = (issue: number) => it.ask("POST", PULLS, { body: { issue, head: "topic", base: "main" } });
  expect((await convert(9)).body.errors[0]).toMatchObject({ field: "issue", code: "missing" });
  const made = await convert(1);
  expect(made).toMatchObject({
    status: 201,
    body: { number: 1, title: "an idea", body: "words", head: { ref: "topic" } },
  });
  expect((await it.get(`${ISSUES}/1`)).body.pull_request.url).toBe(made.body.url);
  expect((await it.get(PULLS)).body).toHaveLength(1);
  expect((await it.control("GET", "/-/state")).body.repositories[0]).toMatchObject({
    issues: 0,
    pulls: 1,
    open_issues: 0,
    open_pulls: 1,
  });
  expect((await convert(1)).status).toBe(422);
});

test("mergeable is unknown until a single read has asked and the job has run", async () => {
  await using it = await openSimulated();
  it.openPull();
  it.clock.advance(60_000);
  expect((await it.get(`${PULLS}/1`)).body).toMatchObject({
    mergeable: null,
    mergeable_state: "unknown",
    merge_commit_sha: null,
  });
  it.clock.advance(2_000);
  expect((await it.get(`${PULLS}/1`)).body).toMatchObject({
    mergeable: true,
    mergeable_state: "clean",
    merge_commit_sha: expect.stringMatching(/^[0-9a-f]{40}$/),
  });
  await it.control("POST", "/-/mutate", { op: "pushToPull", repository: "octo/demo", number: 1 });
  expect((await it.get(`${PULLS}/1`)).body.mergeable).toBeNull();
});

test("merging closes with merged_at and makes the author a contributor", async () => {
  await using it = await openSimulated();
  const { world } = it.simulator;
  const eve = world.addUser({ login: "eve" });
  const fork = world.addRepository({ ownerId: eve.id, name: "demo", fork: true, parentId: it.repository.id });
  pushBranch(world, eve.id, fork, "fix");
  await it.control("POST", "/-/tokens", { token: "eves", login: "eve" });
  const made = await it.ask("POST", PULLS, { token: "eves", body: { title: "fix", head: "eve:fix", base: "main" } });
  expect(made.body).toMatchObject({
    author_association: "NONE",
    head: { repo: { full_name: "eve/demo", fork: true } },
    maintainer_can_modify: true,
  });
  expect((await it.ask("PUT", `${PULLS}/1/merge`, { token: "eves" })).status).toBe(403);
  expect((await it.get(`${PULLS}/1/merge`)).status).toBe(404);
  expect((await it.ask("PUT", `${PULLS}/1/merge`, { body: { sha: "0".repeat(40) } })).status).toBe(409);
  expect((await it.ask("PUT", `${PULLS}/1/merge`)).body.merged).toBe(true);
  expect((await it.get(`${PULLS}/1`)).body).toMatchObject({
    state: "closed",
    merged: true,
    mergeable: null,
    author_association: "CONTRIBUTOR",
  });
  expect((await it.get(`${ISSUES}/1`)).body).toMatchObject({
    state: "closed",
    pull_request: { merged_at: "2026-10-01T12:00:00Z" },
    state_reason: null,
  });
  expect((await it.ask("PATCH", `${PULLS}/1`, { body: { state: "open" } })).status).toBe(422);
  deleteRepository(world, eve.id, fork);
  expect((await it.get(`${PULLS}/1`)).body.head).toMatchObject({
    repo: null,
    label: "eve:fix",
    user: { login: "eve" },
  });
});

test("reviews go from pending to submitted to dismissed; nobody else sees the pending one", async () => {
  await using it = await openSimulated();
  await it.control("POST", "/-/tokens", { token: "eves", login: "eve", repositories: ["octo/demo"] });
  it.openPull();
  const reviews = `${PULLS}/1/reviews`;
  const pending = await it.ask("POST", reviews, {
    token: "eves",
    body: { comments: [{ path: "a.ts", position: 3, body: "hm" }] },
  });
  expect(pending.body).toMatchObject({ state: "PENDING", body: "" });
  expect(pending.body).not.toHaveProperty("submitted_at");
  expect((await it.get(reviews)).body).toEqual([]);
  expect((await it.get(reviews, { token: "eves" })).body).toHaveLength(1);
  const submitted = await it.ask("POST", `${reviews}/${pending.body.id}/events`, {
    token: "eves",
    body: { event: "APPROVE" },
  });
  expect(submitted.body).toMatchObject({ state: "APPROVED", submitted_at: "2026-10-01T12:00:00Z" });
  expect((await it.get(`${reviews}/${pending.body.id}/comments`)).body).toHaveLength(1);
  expect(
    (await it.ask("PUT", `${reviews}/${pending.body.id}/dismissals`, { body: { message: "no" } })).body.state,
  ).toBe("DISMISSED");
  expect((await it.ask("POST", reviews, { body: { event: "APPROVE" } })).status).toBe(422);
  expect((await it.ask("POST", reviews, { token: "eves", body: { event: "REQUEST_CHANGES" } })).status).toBe(422);
  const comment = (await it.get(`${PULLS}/comments`)).body[0];
  const reply = await it.ask("POST", `${PULLS}/1/comments/${comment.id}/replies`, { body: { body: "answered" } });
  expect(reply.body).toMatchObject({ in_reply_to_id: comment.id, path: "a.ts" });
  expect((await it.get(`${PULLS}/1`)).body.review_comments).toBe(2);
});

test("the head of a deleted fork is null, and base stays", async () => {
  await using it = await openSimulated();
  deleteForkHead(it.simulator.world, it.openPull());
  expect((await it.get(PULLS)).body[0]).toMatchObject({
    head: { repo: null },
    base: { repo: { full_name: "octo/demo" } },
  });
});

test("a closed pull request that was merged by another shows who", async () => {
  await using it = await openSimulated();
  const { world } = it.simulator;
  mergePull(world, world.addUser({ login: "bob" }).id, it.openPull());
  expect((await it.get(`${PULLS}/1`)).body.merged_by.login).toBe("bob");
});
