import { expect, test } from "vitest";
import { createComment, editComment } from "../../src/simulator/changes/comments.ts";
import { createIssue, editIssue } from "../../src/simulator/changes/issues.ts";
import { createMilestone } from "../../src/simulator/changes/milestones.ts";
import { openSimulated, type Reply, rel, rels, type Simulated } from "./simulated.ts";

const LIST = "/repos/octo/demo/issues";
const numbers = (reply: Reply): number[] => reply.body.map((row: { number: number }) => row.number);

/** Follows the `next` links to the end of the list, and answers what it met. */
async function walk(it: Simulated, path: string): Promise<number[]> {
  const seen: number[] = [];
  for (let next: string | undefined = path; next; ) {
    const reply: Reply = await it.get(next);
    expect(reply.status).toBe(200);
    seen.push(...numbers(reply));
    next = rel(reply, "next");
  }
  return seen;
}

function fill(it: Simulated, count: number): void {
  for (let n = 1; n <= count; n++) {
    it.issue(`Issue ${n}`);
    if (n % 3 === 0) it.clock.advance(1_000);
  }
}

test("issues are paged by cursor, without a last page, by numeric id", async () => {
  await using it = await openSimulated();
  fill(it, 25);
  const first = await it.get(`${LIST}?state=all&per_page=10`);
  expect(rels(first)).toEqual(["next"]);
  const next = rel(first, "next") ?? "";
  expect(next).toMatch(
    new RegExp(
      `^${it.simulator.url}/repositories/${it.repository.id}/issues\\?state=all&per_page=10&after=[\\w-]+(%3D)*&page=2$`,
    ),
  );
  const cursor = Buffer.from(new URL(next).searchParams.get("after") ?? "", "base64");
  expect(cursor.toString("latin1", 0, 10)).toBe("cursor:v2:");
  expect(cursor[10]).toBe(0x92);
  const second = await it.get(next);
  expect(rels(second)).toEqual(["next", "prev"]);
  expect(numbers(await it.get(rel(second, "prev") ?? ""))).toEqual(numbers(first));
  expect(rels(await it.get(rel(second, "next") ?? ""))).toEqual(["prev"]);
  expect(rels(await it.get(`${LIST}?per_page=25`))).toEqual([]);
});

test("a search answers whole issues with a score, in its own bucket, without a validator, and once replicas know them", async () => {
  await using it = await openSimulated();
  fill(it, 5);
  const q = encodeURIComponent(`is:issue (user:octo OR user:nobody) created:>=2000-01-01T00:00:00Z`);
  const found = await it.get(`/search/issues?q=${q}&sort=created&order=asc&per_page=2`);
  expect(found.status).toBe(200);
  const told = ["x-ratelimit-resource", "cache-control", "etag"].map((name) => found.headers.get(name));
  expect(told).toEqual(["search", "no-cache", null]);
  expect(found.body).toMatchObject({ total_count: 5, incomplete_results: false });
  expect(found.body.items.map((row: { number: number }) => row.number)).toEqual([1, 2]);
  const [{ closed_by: _, ...first }, shown] = [(await it.get(`${LIST}/1`)).body, found.body.items[0]];
  expect(shown).toEqual({ ...first, score: 1 });
  expect(rels(found)).toEqual(["next", "last"]);
  const numbersOf = async (text: string) =>
    (await it.get(`/search/issues?q=${encodeURIComponent(text)}&sort=created&order=asc`)).body.items.map(
      (row: { number: number }) => row.number,
    );
  expect(await numbersOf('"Issue 1" OR "Issue 2" is:closed')).toEqual([1]);
  expect(await numbersOf('("Issue 1" OR "Issue 2") is:open')).toEqual([1, 2]);
  expect(await numbersOf('Issue -"Issue 1" (-"Issue 2" is:open)')).toEqual([3, 4, 5]);
  it.simulator.setFaults({ lagMs: 60_000 });
  it.issue("Unheard of");
  expect((await it.get("/search/issues?q=Unheard")).body.items).toEqual([]);
  for (const path of ["/search/issues", "/search/issues?q=+"]) {
    const refused = await it.get(path);
    expect([refused.status, refused.body.errors]).toEqual([422, [{ resource: "Search", field: "q", code: "missing" }]]);
  }
});

test.each(["created", "updated", "comments"])(
  "a walk sorted by %s meets every issue once, in both directions",
  async (sort) => {
    await using it = await openSimulated();
    fill(it, 23);
    const { world } = it.simulator;
    for (const number of [3, 3, 9, 17]) {
      const issue = world.issue(it.repository, number);
      if (issue) createComment(world, it.owner.id, issue, "again");
    }
    const down = await walk(it, `${LIST}?sort=${sort}&direction=desc&per_page=4`);
    const up = await walk(it, `${LIST}?sort=${sort}&direction=asc&per_page=5`);
    expect(down).toHaveLength(23);
    expect(new Set(down).size).toBe(23);
    expect(up.toReversed()).toEqual(down);
    if (sort === "comments") expect(down.slice(0, 3)).toEqual([3, 17, 9]);
  },
);

test("page numbers work while they are small and are refused when they are deep", async () => {
  await using it = await openSimulated({ deepPageLimit: 20 });
  fill(it, 30);
  expect(numbers(await it.get(`${LIST}?per_page=5&page=2`))).toEqual([25, 24, 23, 22, 21]);
  expect(await it.get(`${LIST}?per_page=5&page=4`)).toMatchObject({
    status: 422,
    body: {
      message:
        "Pagination with the page parameter is not supported for large datasets, please use cursor based pagination (after/before)",
      documentation_url: "https://docs.github.com/rest/issues/issues#list-repository-issues",
      status: "422",
    },
  });
  expect(await walk(it, `${LIST}?per_page=5`)).toHaveLength(30);
  expect((await it.get(`${LIST}?after=nonsense`)).status).toBe(422);
});

test("per_page is 30 by default and silently at most 100", async () => {
  await using it = await openSimulated();
  fill(it, 101);
  for (const [asked, got] of [
    ["", 30],
    ["?per_page=100", 100],
    ["?per_page=1000", 100],
    ["?per_page=0", 30],
    ["?per_page=x", 30],
  ] as const) {
    expect((await it.get(LIST + asked)).body, asked).toHaveLength(got);
  }
});

test("since is inclusive", async () => {
  await using it = await openSimulated();
  fill(it, 9); // 1-3 at :00, 4-6 at :01, 7-9 at :02
  for (const sort of ["created", "updated"]) {
    for (const direction of ["asc", "desc"]) {
      const reply = await it.get(`${LIST}?since=2026-10-01T12:00:01Z&sort=${sort}&direction=${direction}`);
      expect(numbers(reply).sort()).toEqual([4, 5, 6, 7, 8, 9]);
    }
  }
  expect((await it.get(`${LIST}?since=yesterday`)).status).toBe(422);
});

test("filters choose by state, labels (all of them), people and milestone", async () => {
  await using it = await openSimulated();
  const { world } = it.simulator;
  fill(it, 6);
  const bob = world.addUser({ login: "bob" });
  const milestone = createMilestone(world, it.owner.id, { repository: it.repository, title: "v1" });
  await it.ask("PATCH", `${LIST}/1`, {
    body: { labels: ["bug", "a/b"], assignees: ["bob"], milestone: milestone.number },
  });
  await it.ask("PATCH", `${LIST}/2`, { body: { labels: ["bug"], state: "closed" } });
  const six = world.issue(it.repository, 6);
  if (six) editIssue(world, bob.id, six, { body: "see @bob" });
  world.addIssue({ repository: it.repository, title: "bob's", authorId: bob.id });
  for (const [query, expected] of [
    ["", [7, 6, 5, 4, 3, 1]],
    ["state=closed", [2]],
    ["state=all&labels=bug", [2, 1]],
    ["state=all&labels=bug,a/b", [1]],
    ["labels=none-such", []],
    ["assignee=bob", [1]],
    ["assignee=*", [1]],
    ["assignee=none", [7, 6, 5, 4, 3]],
    ["creator=bob", [7]],
    ["mentioned=BOB", [6]],
    ["milestone=1", [1]],
    ["milestone=*", [1]],
    ["milestone=none", [7, 6, 5, 4, 3]],
  ] as const) {
    expect([query, numbers(await it.get(`${LIST}?${query}`))]).toEqual([query, expected]);
  }
  expect(await it.get(`${LIST}?milestone=99`)).toMatchObject({ status: 422, body: { message: "Validation Failed" } });
});

test("pull requests are issues too: same numbers, an id of their own", async () => {
  await using it = await openSimulated();
  it.issue();
  const pull = it.openPull();
  const [row] = (await it.get(LIST)).body;
  const [simple] = (await it.get("/repos/octo/demo/pulls")).body;
  expect([row.number, row.id, simple.number, simple.id]).toEqual([2, pull.id, 2, pull.pull.id]);
  expect(row.id).not.toBe(simple.id);
  expect(row.node_id).toBe(simple.node_id);
  expect(row.pull_request).toEqual({
    url: `${it.simulator.url}/repos/octo/demo/pulls/2`,
    html_url: "https://github.com/octo/demo/pull/2",
    diff_url: "https://github.com/octo/demo/pull/2.diff",
    patch_url: "https://github.com/octo/demo/pull/2.patch",
    merged_at: null,
  });
  expect((await it.get("/repos/octo/demo")).body.open_issues_count).toBe(2);
});

test("other lists are paged by number with up to four rels", async () => {
  await using it = await openSimulated();
  for (let n = 1; n <= 7; n++) await it.ask("POST", "/repos/octo/demo/labels", { body: { name: `label ${n}` } });
  const path = "/repos/octo/demo/labels?per_page=2";
  const first = await it.get(path);
  const base = `${it.simulator.url}/repositories/${it.repository.id}/labels?per_page=2`;
  expect(first.headers.get("link")).toBe(`<${base}&page=2>; rel="next", <${base}&page=4>; rel="last"`);
  expect(rels(await it.get(`${path}&page=2`))).toEqual(["prev", "next", "last", "first"]);
  expect(rels(await it.get(`${path}&page=4`))).toEqual(["prev", "first"]);
  expect((await it.get(`${path}&page=9`)).body).toEqual([]);
  expect(rel(await it.get("/repos/octo/demo/labels?page=1&per_page=3"), "next")).toBe(
    `${it.simulator.url}/repositories/${it.repository.id}/labels?page=2&per_page=3`,
  );
});

test("pull lists are ascending unless sorted by creation, and filter by head and base", async () => {
  await using it = await openSimulated();
  const { world } = it.simulator;
  for (const branch of ["a", "b", "c"]) {
    await it.control("POST", "/-/mutate", { op: "createPull", repository: "octo/demo", head: branch, title: branch });
    it.clock.advance(1_000);
  }
  const second = world.issue(it.repository, 2);
  if (second) createComment(world, it.owner.id, second, "bump");
  await it.control("POST", "/-/mutate", { op: "mergePull", repository: "octo/demo", number: 1 });
  const pulls = async (query: string) => numbers(await it.get(`/repos/octo/demo/pulls?${query}`));
  expect(await pulls("state=all")).toEqual([3, 2, 1]);
  expect(await pulls("state=all&sort=updated")).toEqual([3, 1, 2]);
  expect(await pulls("state=closed")).toEqual([1]);
  expect(await pulls("")).toEqual([3, 2]);
  expect(await pulls("head=octo:b")).toEqual([2]);
  expect(await pulls("base=nope")).toEqual([]);
  expect(await pulls("since=2030-01-01T00:00:00Z")).toEqual([3, 2]);
  expect((await it.get("/repos/octo/demo/pulls/1")).body).toMatchObject({
    state: "closed",
    merged: true,
    merged_by: { login: "octo" },
  });
});

test("comments are listed for an issue and for the whole repository, by id or by time", async () => {
  await using it = await openSimulated();
  const { world } = it.simulator;
  const [one, two] = [it.issue(), it.issue()];
  const made = [one, two, one].map((issue, n) => {
    it.clock.advance(1_000);
    return createComment(world, it.owner.id, issue, `comment ${n}`);
  });
  it.clock.advance(1_000);
  if (made[0]) editComment(world, it.owner.id, made[0], "edited");
  const ids = (reply: Reply) =>
    reply.body.map((row: { id: number }) => made.findIndex((comment) => comment.id === row.id));
  const whole = "/repos/octo/demo/issues/comments";
  expect(ids(await it.get(`${LIST}/1/comments`))).toEqual([0, 2]);
  expect(ids(await it.get(whole))).toEqual([0, 1, 2]);
  expect(ids(await it.get(`${whole}?direction=desc`))).toEqual([0, 1, 2]);
  expect(ids(await it.get(`${whole}?sort=created&direction=desc`))).toEqual([2, 1, 0]);
  expect(ids(await it.get(`${whole}?sort=updated`))).toEqual([1, 2, 0]);
  expect(ids(await it.get(`${whole}?since=2026-10-01T12:00:03Z`))).toEqual([0, 2]);
  expect(ids(await it.get(`${whole}?sort=updated&direction=desc&since=2026-10-01T12:00:03Z`))).toEqual([0, 2]);
  expect((await it.get(`${whole}?per_page=2`)).headers.get("link")).toContain('rel="last"');
  expect((await it.get(LIST)).body.map((row: { comments: number }) => row.comments)).toEqual([1, 2]);
});

test("repositories are listed for the caller, an account and an organisation", async () => {
  await using it = await openSimulated();
  const { world } = it.simulator;
  const org = world.addUser({ login: "acme", type: "Organization", memberIds: [it.owner.id] });
  const other = world.addUser({ login: "other" });
  it.clock.advance(1_000);
  world.addRepository({ ownerId: org.id, name: "secret", visibility: "private" });
  it.clock.advance(1_000);
  world.addRepository({ ownerId: org.id, name: "Open" });
  world.addRepository({ ownerId: other.id, name: "foreign" });
  world.addRepository({
    ownerId: other.id,
    name: "shared",
    visibility: "private",
    collaborators: new Map([[it.owner.id, "push"]]),
  });
  const names = async (path: string, token?: null) =>
    (await it.get(path, token === null ? { token } : {})).body.map((row: { full_name: string }) => row.full_name);
  expect(await names("/user/repos")).toEqual(["acme/Open", "acme/secret", "octo/demo", "other/shared"]);
  expect(await names("/user/repos?affiliation=owner")).toEqual(["octo/demo"]);
  expect(await names("/user/repos?type=private")).toEqual(["acme/secret", "other/shared"]);
  expect(await names("/user/repos?sort=created&affiliation=owner,organization_member")).toEqual([
    "acme/Open",
    "acme/secret",
    "octo/demo",
  ]);
  expect((await it.get("/user/repos?type=all&visibility=public")).status).toBe(422);
  // Without a sort the oldest comes first.
  expect(await names("/orgs/acme/repos")).toEqual(["acme/secret", "acme/Open"]);
  expect(await names("/orgs/acme/repos", null)).toEqual(["acme/Open"]);
  expect(await names("/users/other/repos")).toEqual(["other/foreign"]);
  expect(rel(await it.get("/orgs/acme/repos?per_page=1"), "next")).toBe(
    `${it.simulator.url}/organizations/${org.id}/repos?per_page=1&page=2`,
  );
  expect((await it.get(`/organizations/${org.id}/repos?per_page=1&page=2`)).body[0].name).toBe("Open");
  const [row] = (await it.get("/user/repos")).body;
  expect(row.permissions).toEqual({ admin: true, maintain: true, push: true, triage: true, pull: true });
});

test("issues are listed across repositories, for those who have to do with them", async () => {
  await using it = await openSimulated();
  const { world } = it.simulator;
  const acme = world.addUser({ login: "acme", type: "Organization", memberIds: [it.owner.id] });
  const theirs = world.addRepository({ ownerId: acme.id, name: "theirs" });
  const mine = it.issue("mine");
  editIssue(world, it.owner.id, mine, { assigneeIds: [it.owner.id] });
  const other = createIssue(world, it.owner.id, { repository: theirs, title: "of the organisation" });
  const titles = async (path: string) => (await it.get(path)).body.map(({ title }: { title: string }) => title);
  expect(await titles("/issues")).toEqual(["mine"]);
  expect((await titles("/issues?filter=all")).sort()).toEqual(["mine", "of the organisation"]);
  expect(await titles("/user/issues?filter=created")).toEqual(["mine"]);
  expect(await titles("/orgs/acme/issues?filter=created")).toEqual([other.title]);
  expect((await it.get("/orgs/acme/issues?filter=all")).body[0].repository.full_name).toBe("acme/theirs");
  expect((await it.get("/issues?state=")).status).toBe(422);
  expect((await it.get("/issues", { token: null })).status).toBe(401);
});

test("repositories and labels are searched, and a search of nothing that is there is refused", async () => {
  await using it = await openSimulated();
  await it.ask("POST", "/repos/octo/demo/labels", { body: { name: "needs care", color: "ededed" } });
  const headers = { accept: "application/vnd.github.text-match+json" };
  const found = await it.get("/search/repositories?q=demo", { headers });
  expect(found.body).toMatchObject({ total_count: 1, incomplete_results: false });
  expect(found.headers.get("x-github-media-type")).toBe("github.v3; param=text-match; format=json");
  expect(found.body.items[0].text_matches).toEqual([
    {
      object_url: `${it.simulator.url}/repositories/${it.repository.id}`,
      object_type: "Repository",
      property: "name",
      fragment: "demo",
      matches: [{ text: "demo", indices: [0, 4] }],
    },
  ]);
  const labels = await it.get(`/search/labels?repository_id=${it.repository.id}&q=care`);
  expect(labels.body.items).toMatchObject([{ name: "needs care", score: 1 }]);
  expect((await it.get("/search/labels?repository_id=1&q=care")).status).toBe(404);
  const nothing = await it.get("/search/issues?q=repo:octo/none%20org:nobody");
  expect(nothing.status).toBe(422);
  expect(nothing.body.errors[0].message).toMatch(/^The listed users and repositories cannot be searched/);
  expect((await it.get("/search/issues?q=repo:octo/none%20repo:octo/demo")).status).toBe(200);
});
