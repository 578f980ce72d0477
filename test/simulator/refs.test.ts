import { expect, test } from "vitest";
import { createTags } from "../../src/simulator/changes/refs.ts";
import { NO_SHA } from "../../src/simulator/world/commits.ts";
import { addedHook } from "./hooked.ts";
import { openReceiver, openSimulated, rels, type Simulated } from "./simulated.ts";

const DEMO = "/repos/octo/demo";

function mutating(it: Simulated) {
  return async (op: string, given: object = {}) => {
    const reply = await it.control("POST", "/-/mutate", { op, repository: "octo/demo", ...given });
    expect(reply.status, reply.text).toBe(200);
    return reply.body;
  };
}

async function open() {
  const it = await openSimulated({ webhooks: { concurrency: 1 } });
  return { ...it, mutate: mutating(it), main: it.repository.branches.get("main") ?? "" };
}

async function graphql(it: Simulated, query: string, token?: string) {
  const { body } = await it.ask("POST", "/graphql", { body: { query }, ...(token ? { token } : {}) });
  expect(body.errors).toBeUndefined();
  return body.data.repository;
}

test("commits of a pull request go from the base to the head, and a push adds one", async () => {
  await using it = await open();
  const { number, head, base } = await it.mutate("createPull", { head: "topic", title: "p" });
  const list = async () => (await it.get(`${DEMO}/pulls/${number}/commits?per_page=100`)).body;
  const shas = (commits: readonly { sha: string }[]) => commits.map(({ sha }) => sha);
  const before = await list();
  expect([before[0].parents[0].sha, before.at(-1).sha]).toEqual([base.sha, head.sha]);
  for (const [at, commit] of before.entries()) if (at > 0) expect(commit.parents[0].sha).toBe(before[at - 1].sha);
  it.clock.advance(60_000);
  await it.mutate("pushToPull", { number });
  const after = await list();
  expect(shas(after.slice(0, -1))).toEqual(shas(before));
  expect(after.at(-1)).toMatchObject({
    author: { login: "octo" },
    commit: { committer: { date: "2026-10-01T12:01:00Z" } },
  });
  expect((await it.get(`${DEMO}/pulls/${number}`)).body.commits).toBe(after.length);
  const one = await it.get(`${DEMO}/commits/${after.at(-1).sha}`);
  expect(one.headers.get("last-modified")).toBe("Thu, 01 Oct 2026 12:01:00 GMT");
  const { files, stats } = one.body;
  const sum = files.reduce((total: number, file: { changes: number }) => total + file.changes, 0);
  expect(sum).toBe(stats.total);
  expect((await it.get(`${DEMO}/commits/${after[0].sha}/pulls`)).body[0].number).toBe(number);
  const compared = (await it.get(`${DEMO}/compare/main...topic`)).body;
  expect([compared.status, compared.ahead_by]).toEqual(["ahead", after.length]);
  await it.mutate("pushToPull", { number });
  await it.mutate("pushToPull", { number });
  const pageOf = (at: number) => it.get(`${DEMO}/compare/main...topic?per_page=1&page=${at}`);
  const [first, second, last] = [await pageOf(1), await pageOf(2), await pageOf(after.length + 2)];
  expect([first, second, last].map(rels)).toEqual([
    ["last", "next", "first"],
    ["last", "next", "first", "prev"],
    ["last", "first", "prev"],
  ]);
  expect([first.body, second.body].map(({ files }) => files === undefined)).toEqual([false, true]);
});

test("files of a pull request add up to its counters, and pages of them say where the next is", async () => {
  await using it = await open();
  const { world } = it.simulator;
  const end = (ref: string) => ({
    ref,
    sha: world.newSha(),
    label: `octo:${ref}`,
    userId: it.owner.id,
    repositoryId: it.repository.id,
  });
  const size = { changedFiles: 3_010, additions: 9_000, deletions: 4_000, commits: 260 };
  const pull = { head: end("big"), base: end("main"), ...size };
  const { number } = world.addIssue({ repository: it.repository, title: "p", authorId: it.owner.id, pull });
  const page = (at: number) => it.get(`${DEMO}/pulls/${number}/files?per_page=100&page=${at}`);
  const first = await page(1);
  expect([first.body.length, rels(first)]).toEqual([100, ["next", "last"]]);
  const last = await page(30);
  expect([last.body.length, rels(last)]).toEqual([100, ["prev", "first"]]); // The list ends at 3,000.
  const names = first.body.map((file: { filename: string }) => file.filename);
  expect(names).toEqual(names.toSorted((a: string, b: string) => (a < b ? -1 : 1)));
  const commits = await it.get(`${DEMO}/pulls/${number}/commits?per_page=100&page=3`);
  expect([commits.body.length, rels(commits)]).toEqual([50, ["prev", "first"]]); // The list ends at 250.
  const { pullRequest } = await graphql(
    it,
    `{ repository(owner: "octo", name: "demo") { pullRequest(number: ${number}) {
    files(first: 1) { totalCount nodes { path changeType } } commits(first: 1) { totalCount nodes { commit { oid } } } } } }`,
  );
  expect([pullRequest.files.totalCount, pullRequest.commits.totalCount]).toEqual([3_010, 260]);
});

test("a merge lands a commit of two parents, and its branch's end closes what was proposed from it", async () => {
  await using it = await open();
  await using receiver = await openReceiver();
  await addedHook(it, receiver.url);
  const merged = await it.mutate("createPull", { head: "topic", title: "p" });
  await it.mutate("mergePull", { number: merged.number });
  const head = (await it.get(`${DEMO}/commits/main`)).body;
  expect(head.parents.map(({ sha }: { sha: string }) => sha)).toEqual([it.main, merged.head.sha]);
  expect(head.commit.message).toMatch(/^Merge pull request #1 from octo\/topic\n\np$/);
  const left = await it.mutate("createPull", { head: "left", title: "q" });
  await it.simulator.quiet();
  receiver.heard.length = 0;
  expect((await it.ask("DELETE", `${DEMO}/git/refs/heads/left`)).status).toBe(204);
  await it.simulator.quiet();
  expect(receiver.names()).toEqual(["delete", "push", "pull_request.closed"]);
  expect(receiver.heard[0]?.payload).toMatchObject({ ref: "left", ref_type: "branch", pusher_type: "user" });
  expect(receiver.heard[1]?.payload).toMatchObject({ deleted: true, after: NO_SHA, commits: [], head_commit: null });
  expect((await it.get(`${DEMO}/pulls/${left.number}`)).body).toMatchObject({ state: "closed", merged: false });
  expect((await it.get(`${DEMO}/branches/left`)).status).toBe(404);
  expect((await it.ask("DELETE", `${DEMO}/git/refs/heads/main`)).status).toBe(422);
});

test("refs are made, moved forward, moved back by force alone, and listed whole by their beginning", async () => {
  await using it = await open();
  const refs = `${DEMO}/git/refs`;
  await it.mutate("pushBranch", { ref: "feature/a" });
  const sha = (await it.get(`${DEMO}/git/ref/heads/feature/a`)).body.object.sha;
  expect((await it.ask("PATCH", `${refs}/heads/main`, { body: { sha } })).body.object.sha).toBe(sha);
  const back = await it.ask("PATCH", `${refs}/heads/main`, { body: { sha: it.main } });
  expect([back.status, back.body.message]).toEqual([422, "Update is not a fast forward"]);
  expect((await it.ask("PATCH", `${refs}/heads/main`, { body: { sha: it.main, force: true } })).status).toBe(200);
  expect((await it.ask("POST", refs, { body: { ref: "main", sha } })).status).toBe(422);
  const again = await it.ask("POST", refs, { body: { ref: "refs/heads/feature/a", sha } });
  expect([again.status, again.body.message]).toEqual([422, "Reference already exists"]);
  const tag = await it.ask("POST", refs, { body: { ref: "refs/tags/v1", sha } });
  expect([tag.status, tag.headers.get("location")]).toEqual([201, tag.body.url]);
  await it.mutate("createPull", { head: "feature/a", title: "p" });
  const shown = async (prefix: string) =>
    (await it.get(`${DEMO}/git/matching-refs/${prefix}?per_page=1`)).body.map(({ ref }: { ref: string }) => ref);
  expect(await shown("heads")).toEqual(["refs/heads/feature/a", "refs/heads/main"]);
  expect(await shown("tags/v")).toEqual(["refs/tags/v1"]);
  expect(await shown("pull")).toEqual(["refs/pull/1/head"]);
  expect(await shown("none")).toEqual([]);
  const page = await it.get(`${DEMO}/branches?per_page=1`);
  expect([page.body[0].name, rels(page), page.headers.get("last-modified")]).toEqual([
    "feature/a",
    ["next", "last"],
    null,
  ]);
  expect((await it.get(`${DEMO}/commits/tags/v1`)).body.sha).toBe(sha);
  const found = await graphql(
    it,
    `{ repository(owner: "octo", name: "demo") { ref(qualifiedName: "feature/a") { name prefix
    target { oid ... on Commit { messageHeadline history(first: 2) { totalCount } } } }
    refs(refPrefix: "refs/heads/feature/", first: 5) { totalCount nodes { name prefix } }
    tags: refs(refPrefix: "refs/tags/", first: 5, orderBy: { field: TAG_COMMIT_DATE, direction: DESC }) { nodes { name } }
    none: ref(qualifiedName: "refs/heads/none") { name } defaultBranchRef { name target { oid } } } }`,
  );
  expect(found).toMatchObject({
    ref: { name: "feature/a", prefix: "refs/heads/", target: { oid: sha } },
    refs: { totalCount: 1, nodes: [{ name: "a", prefix: "refs/heads/feature/" }] },
    tags: { nodes: [{ name: "v1" }] },
    none: null,
    defaultBranchRef: { name: "main", target: { oid: it.main } },
  });
});

test("up to three tags of one push are told, and more are silent", async () => {
  await using it = await open();
  await using receiver = await openReceiver();
  await addedHook(it, receiver.url);
  const push = async (...names: string[]) => {
    receiver.heard.length = 0;
    createTags(
      it.simulator.world,
      it.owner.id,
      it.repository,
      names.map((name) => ({ name, sha: it.main })),
    );
    await it.simulator.quiet();
    return receiver.names();
  };
  expect(await push("a", "b", "c")).toEqual(["create", "push", "create", "push", "create", "push"]);
  expect(receiver.heard[1]?.payload).toMatchObject({ ref: "refs/tags/a", commits: [], head_commit: { id: it.main } });
  expect(await push("d", "e", "f", "g")).toEqual([]);
  expect((await it.get(`${DEMO}/tags`)).body).toHaveLength(7);
});

test("a release is drafted, published, edited, taken back and deleted; each is told", async () => {
  await using it = await open();
  await using receiver = await openReceiver();
  await addedHook(it, receiver.url);
  const heard = async () => {
    await it.simulator.quiet();
    return receiver.names().splice(0, receiver.heard.splice(0).length);
  };
  const releases = `${DEMO}/releases`;
  const draft = await it.ask("POST", releases, { body: { tag_name: "v1", draft: true, body: "one" } });
  expect([draft.status, await heard()]).toEqual([201, ["release.created"]]);
  const at = `${releases}/${draft.body.id}`;
  it.simulator.world.addUser({ login: "reader" });
  const reader = it.simulator.tokens.create({ login: "reader" }).value;
  expect((await it.get(releases, { token: reader })).body).toEqual([]);
  expect((await it.get(at, { token: reader })).status).toBe(404);
  expect((await it.get(`${releases}/latest`)).status).toBe(404);
  await it.ask("PATCH", at, { body: { draft: false } });
  expect(await heard()).toEqual(["create", "push", "release.published", "release.released"]);
  expect((await it.get(`${releases}/latest`, { token: reader })).body.tag_name).toBe("v1");
  await it.ask("PATCH", at, { body: { name: "One", body: "two" } });
  await it.simulator.quiet();
  expect(receiver.heard[0]?.payload.changes).toEqual({ name: { from: "" }, body: { from: "one" } });
  expect(await heard()).toEqual(["release.edited"]);
  const taken = await it.ask("POST", releases, { body: { tag_name: "v1" } });
  expect([taken.status, taken.body.errors[0].code]).toEqual([422, "already_exists"]);
  await it.ask("POST", releases, { body: { tag_name: "v2", prerelease: true } });
  expect(await heard()).toEqual(["release.created", "create", "push", "release.published", "release.prereleased"]);
  expect((await it.get(`${releases}/latest`)).body.tag_name).toBe("v1");
  await it.mutate("addReleaseAsset", { release: draft.body.id, name: "a.tgz" });
  const tag = async () => (await it.get(at)).headers.get("etag");
  const before = await tag();
  await it.mutate("downloadReleaseAsset", { release: draft.body.id, name: "a.tgz" });
  expect(await tag()).not.toBe(before);
  expect(await heard()).toEqual([]);
  const shown = await graphql(
    it,
    `{ repository(owner: "octo", name: "demo") { latestRelease { tagName isLatest }
    releases(first: 5, orderBy: { field: CREATED_AT, direction: ASC }) { totalCount nodes { tagName databaseId isPrerelease
      tagCommit { oid } releaseAssets(first: 1) { nodes { name downloadCount } } } } } }`,
  );
  expect(shown.latestRelease).toEqual({ tagName: "v1", isLatest: true });
  expect(shown.releases.nodes[0]).toMatchObject({
    ...{ tagName: "v1", databaseId: draft.body.id, tagCommit: { oid: it.main } },
    releaseAssets: { nodes: [{ name: "a.tgz", downloadCount: 1 }] },
  });
  await it.ask("PATCH", at, { body: { draft: true } });
  await it.ask("DELETE", at);
  expect(await heard()).toEqual(["release.unpublished", "release.deleted"]);
});

test("a thread of a review is resolved and opened again by GraphQL, and told", async () => {
  await using it = await open();
  await using receiver = await openReceiver();
  await addedHook(it, receiver.url);
  const { number } = await it.mutate("createPull", { head: "topic", title: "p" });
  const remark = await it.mutate("createReviewComment", { number, body: "why?" });
  await it.simulator.quiet();
  receiver.heard.length = 0;
  const threads = `{ repository(owner: "octo", name: "demo") { pullRequest(number: ${number}) { reviewThreads(first: 1) {
    nodes { id isResolved isCollapsed resolvedBy { login } } } } } }`;
  const thread = async () => (await graphql(it, threads)).pullRequest.reviewThreads.nodes[0];
  const { id } = await thread();
  const change = (name: string, token?: string) =>
    it.ask("POST", "/graphql", {
      body: { query: `mutation { ${name}(input: { threadId: "${id}" }) { thread { isResolved } } }` },
      ...(token ? { token } : {}),
    });
  it.simulator.world.addUser({ login: "reader" });
  const reader = it.simulator.tokens.create({ login: "reader" }).value;
  expect((await change("resolveReviewThread", reader)).body.errors).toMatchObject([{ type: "FORBIDDEN" }]);
  expect((await change("resolveReviewThread")).body.data.resolveReviewThread.thread.isResolved).toBe(true);
  await change("resolveReviewThread");
  expect(await thread()).toMatchObject({ isResolved: true, isCollapsed: true, resolvedBy: { login: "octo" } });
  await change("unresolveReviewThread");
  expect(await thread()).toMatchObject({ isResolved: false, resolvedBy: null });
  await it.simulator.quiet();
  expect(receiver.names()).toEqual(["pull_request_review_thread.resolved", "pull_request_review_thread.unresolved"]);
  expect(receiver.heard[0]?.payload.thread).toMatchObject({ node_id: id, comments: [{ id: remark.id }] });
});

test("merging says why not, and squashes on demand; a branch is brought up to date", async () => {
  await using it = await open();
  const first = await it.mutate("createPull", { head: "one", title: "One" });
  const second = await it.mutate("createPull", { head: "two", title: "Two" });
  const merge = (number: number, body: object) => it.ask("PUT", `${DEMO}/pulls/${number}/merge`, { body });
  const moved = await merge(first.number, { sha: it.main });
  expect([moved.status, moved.body.message]).toEqual([
    409,
    "Head branch was modified. Review and try the merge again.",
  ]);
  it.repository.allowRebaseMerge = false;
  const refused = await merge(first.number, { merge_method: "rebase" });
  expect([refused.status, refused.body.message]).toEqual([405, "Rebase merges are not allowed on this repository."]);
  const update = (body: object) => it.ask("PUT", `${DEMO}/pulls/${second.number}/update-branch`, { body });
  const early = await update({});
  expect([early.status, early.body.message]).toEqual([422, "There are no new commits on the base branch."]);
  const landed = await merge(first.number, { merge_method: "squash", commit_message: "Because." });
  expect(landed.body).toEqual({ sha: expect.any(String), merged: true, message: "Pull Request successfully merged" });
  const main = (await it.get(`${DEMO}/commits/main`)).body;
  expect([main.sha, main.commit.message, main.parents.length]).toEqual([landed.body.sha, "One (#1)\n\nBecause.", 1]);
  expect((await it.get(`${DEMO}/pulls/${first.number}/merge`)).status).toBe(204);
  expect((await merge(first.number, {})).status).toBe(405);
  const wrong = await update({ expected_head_sha: it.main });
  expect([wrong.status, wrong.body.message]).toEqual([422, "expected head sha didn’t match current head ref."]);
  const updated = await update({ expected_head_sha: second.head.sha });
  expect([updated.status, updated.headers.get("location")]).toEqual([202, updated.body.url]);
  const head = (await it.get(`${DEMO}/commits/two`)).body;
  expect(head.parents.map(({ sha }: { sha: string }) => sha)).toEqual([second.head.sha, main.sha]);
  expect((await it.get(`${DEMO}/pulls/${second.number}`)).body).toMatchObject({
    head: { sha: head.sha },
    commits: second.commits + 1,
  });
});
