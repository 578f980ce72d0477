import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { createComment, deleteComment } from "../../src/simulator/changes/comments.ts";
import { createIssue, deleteIssue, editIssue } from "../../src/simulator/changes/issues.ts";
import { openSimulated } from "./simulated.ts";

const REST = "/repos/octo/demo";

test("the next requests that match fail as they are told to", async () => {
  await using it = await openSimulated();
  await it.control("POST", "/-/faults", {
    http: [
      { kind: "status", status: 502, match: "^GET /repos/octo/demo$", times: 2 },
      { kind: "status", status: 429, match: "/issues", retryAfter: 7, times: 1 },
      { kind: "secondary-limit", match: "/labels", retryAfter: 3, times: 1 },
    ],
  });
  const bad = await it.get(REST);
  expect([bad.status, bad.headers.get("content-type")]).toEqual([502, "text/html"]);
  expect((await it.get(REST)).status).toBe(502);
  expect((await it.get(REST)).status).toBe(200);
  const many = await it.get(`${REST}/issues`);
  expect([many.status, many.headers.get("retry-after"), many.body]).toEqual([429, "7", null]);
  const secondary = await it.get(`${REST}/labels`);
  expect([
    secondary.status,
    secondary.headers.get("retry-after"),
    Number(secondary.headers.get("x-ratelimit-remaining")) > 0,
  ]).toEqual([403, "3", true]);
  expect((await it.control("GET", "/-/faults")).body.struck).toEqual({
    "status 502": 2,
    "status 429": 1,
    "secondary-limit": 1,
  });
  await it.control("POST", "/-/faults", { http: [{ kind: "status", status: 500 }] });
  expect((await it.get(REST)).status).toBe(500);
  await it.control("POST", "/-/faults", {});
  expect((await it.get(REST)).status).toBe(200);
});

test("an answer can be cut short, or never come", async () => {
  await using it = await openSimulated();
  await it.control("POST", "/-/faults", {
    http: [
      { kind: "truncate", match: "demo$" },
      { kind: "reset", match: "/user$" },
    ],
  });
  await expect(it.get(REST)).rejects.toThrow();
  await expect(it.get("/user")).rejects.toThrow();
  expect((await it.get("/users/octo")).status).toBe(200);
});

test("faults that make no sense are refused", async () => {
  await using it = await openSimulated();
  for (const body of [{ http: [{ kind: "explode" }] }, { http: [{ kind: "status" }] }, { webhooks: { drop: 2 } }]) {
    expect((await it.control("POST", "/-/faults", body)).status).toBe(400);
  }
});

test("where each request is answered by another replica, reads go back in time, and no further than the lag", async () => {
  await using it = await openSimulated({ faults: { lagMs: 2_000, lagDrawn: true } });
  it.clock.advance(2_000);
  const issue = it.issue("old");
  it.clock.advance(2_000);
  editIssue(it.simulator.world, it.owner.id, issue, { title: "new" });
  it.clock.advance(1_000);
  const titles: string[] = [];
  for (let reads = 0; reads < 30; reads++) titles.push((await it.get(`${REST}/issues/1`)).body.title);
  expect(titles.join(" ")).toMatch(/new (new )*old/);
  it.clock.advance(1_000);
  for (let reads = 0; reads < 10; reads++) expect((await it.get(`${REST}/issues/1`)).body.title).toBe("new");
});

test("a replica that lags shows the older version, no new rows, and rows that are gone", async () => {
  await using it = await openSimulated({ faults: { lagMs: 2_000 } });
  const { world } = it.simulator;
  it.clock.advance(2_000);
  const old = it.issue("old");
  const doomed = it.issue("doomed");
  it.clock.advance(2_000);
  editIssue(world, it.owner.id, old, {
    title: "newer",
    labelIds: [world.addLabel({ repository: it.repository, name: "l" }).id],
  });
  it.clock.advance(1_000);
  editIssue(world, it.owner.id, old, { title: "newest" });
  deleteIssue(world, it.owner.id, doomed);
  createIssue(world, it.owner.id, { repository: it.repository, title: "new" });
  const title = async (number: number) => (await it.get(`${REST}/issues/${number}`)).body.title ?? null;
  expect([await title(1), await title(2), await title(3)]).toEqual(["old", "doomed", null]);
  expect((await it.get(`${REST}/issues/1`)).body.labels).toEqual([]);
  expect((await it.get(`${REST}/issues`)).body.map((row: { title: string }) => row.title)).toEqual(["old"]);
  it.clock.advance(1_000);
  expect(await title(1)).toBe("newer");
  it.clock.advance(1_000);
  expect([await title(1), await title(3), (await it.get(`${REST}/issues/2`)).status]).toEqual(["newest", "new", 410]);
});

test("a replica that lags still has a comment that was deleted, by REST and GraphQL", async () => {
  await using it = await openSimulated({ faults: { lagMs: 2_000 } });
  const { world } = it.simulator;
  const comment = createComment(world, it.owner.id, it.issue("commented"), "here");
  it.clock.advance(2_000);
  const { node_id: id } = (await it.get(`${REST}/issues/comments/${comment.id}`)).body;
  const query = `{ node(id: "${id}") { ... on IssueComment { body } } }`;
  const shown = async () => [
    (await it.get(`${REST}/issues/comments/${comment.id}`)).body.body ?? null,
    (await it.ask("POST", "/graphql", { body: { query } })).body.data.node?.body ?? null,
  ];
  deleteComment(world, it.owner.id, comment);
  it.clock.advance(1_999);
  expect(await shown()).toEqual(["here", "here"]);
  it.clock.advance(1);
  expect(await shown()).toEqual([null, null]);
});

test("two windows of one token are counted apart, and its answers tell now of one and now of the other", async () => {
  await using it = await openSimulated({ faults: { windows: true } });
  const seen: number[] = [];
  for (let reads = 0; reads < 24; reads++) seen.push(Number((await it.get(REST)).headers.get("x-ratelimit-remaining")));
  const jumps = seen.filter((remaining, at) => at > 0 && remaining >= (seen[at - 1] ?? 0));
  expect(jumps.length).toBeGreaterThan(0);
  // The two windows together have counted 24 requests, so some figures come twice.
  expect(new Set(seen).size).toBeLessThan(24);
});

test("tags of another formula differ from the known ones, and are worth as much", async () => {
  await using it = await openSimulated();
  const known = (await it.get(REST)).headers.get("etag");
  await it.control("POST", "/-/faults", { tags: true });
  const other = (await it.get(REST)).headers.get("etag") ?? "";
  expect(other).not.toBe(known);
  expect((await it.get(REST, { headers: { "If-None-Match": other } })).status).toBe(304);
});

test("lists by page number end where the service ends them, and deep pages may fail alone", async () => {
  await using it = await openSimulated({
    faults: { numberedRows: 2, http: [{ kind: "status", status: 502, match: "/milestones", fromPage: 2 }] },
  });
  for (const name of ["a", "b", "c"]) it.simulator.world.addLabel({ repository: it.repository, name });
  const page = async (list: string, number: number) =>
    (await it.get(`${REST}/${list}?per_page=1&page=${number}`)).status;
  expect([await page("labels", 1), await page("labels", 2), await page("labels", 3)]).toEqual([200, 200, 422]);
  expect([await page("milestones", 1), await page("milestones", 2)]).toEqual([200, 502]);
});

test("who tries a token that is gone too often is refused with the account's other tokens, for a while", async () => {
  await using it = await openSimulated({ faults: { lockOut: { attempts: 3, seconds: 60 } } });
  const { tokens } = it.simulator;
  tokens.create({ token: "ghp_gone", login: "octo", repositories: "all" });
  tokens.create({ token: "ghp_kept", login: "octo", repositories: "all" });
  tokens.delete("ghp_gone");
  const status = async (token: string) => (await it.get(REST, { token })).status;
  expect([await status("ghp_gone"), await status("ghp_gone"), await status("ghp_kept")]).toEqual([401, 401, 200]);
  expect([await status("ghp_gone"), await status("ghp_kept")]).toEqual([403, 403]);
  it.clock.advance(61_000);
  expect(await status("ghp_kept")).toBe(200);
});

test("the clock can be read and moved over HTTP", async () => {
  await using it = await openSimulated();
  expect((await it.control("POST", "/-/clock", { now: "2030-01-01T00:00:00Z" })).body.now).toBe(Date.UTC(2030, 0, 1));
  await it.control("POST", "/-/clock", { advanceMs: 1_000 });
  expect((await it.control("GET", "/-/clock")).body.now).toBe(Date.UTC(2030, 0, 1) + 1_000);
  expect((await it.control("POST", "/-/clock", {})).status).toBe(400);
});

test("the state is the whole truth, private things included", async () => {
  await using it = await openSimulated();
  const mutate = (op: Record<string, unknown>) => it.control("POST", "/-/mutate", { repository: "octo/demo", ...op });
  await mutate({ op: "createIssue", title: "t", labels: ["bug"] });
  await mutate({ op: "createMilestone", title: "v1" });
  await mutate({ op: "createPull", head: "topic", title: "p" });
  await mutate({ op: "createComment", number: 1, body: "c" });
  await mutate({ op: "createReview", number: 2, state: "COMMENTED", body: "r" });
  await mutate({ op: "createReviewComment", number: 2, body: "rc" });
  await mutate({ op: "privatizeRepository" });
  const [state] = (await it.control("GET", "/-/state?repository=octo/demo")).body.repositories;
  expect(
    Object.fromEntries(Object.entries(state).map(([key, rows]) => [key, Array.isArray(rows) ? rows.length : "one"])),
  ).toEqual({
    repository: "one",
    labels: 1,
    milestones: 1,
    issues: 2,
    pulls: 1,
    comments: 1,
    reviews: 2,
    review_comments: 1,
  });
  for (const [key, path] of [
    ["issues", "issues/1"],
    ["pulls", "pulls/2"],
    ["labels", "labels/bug"],
    ["comments", `issues/comments/${state.comments[0].id}`],
  ] as const) {
    expect(state[key][0], key).toEqual((await it.get(`${REST}/${path}`)).body);
  }
  expect((await it.control("GET", "/-/state")).body.repositories).toEqual([
    expect.objectContaining({
      full_name: "octo/demo",
      visibility: "private",
      issues: 1,
      pulls: 1,
      comments: 1,
      reviews: 2,
    }),
  ]);
  expect((await it.control("GET", "/-/state?repository=octo/nope")).status).toBe(400);
});

test("changes by name are refused with a sentence when they make no sense", async () => {
  await using it = await openSimulated();
  const mutate = (op: Record<string, unknown>) => it.control("POST", "/-/mutate", { repository: "octo/demo", ...op });
  expect((await mutate({ op: "explode" })).body.message).toMatch(
    /^There is no change "explode"; there are: createUser, /,
  );
  expect((await mutate({ op: "createIssue" })).body.message).toBe("title is missing");
  expect((await mutate({ op: "editIssue", number: 9 })).body.message).toBe("There is no #9 in octo/demo");
  expect((await mutate({ op: "createIssue", title: " " })).status).toBe(422);
  expect((await it.control("GET", "/-/nothing")).status).toBe(404);
});

test("live changes run until they are stopped", async () => {
  await using it = await openSimulated();
  for (let n = 0; n < 5; n++) it.issue();
  let events = 0;
  const heard = Promise.withResolvers<void>();
  it.simulator.world.onEvent(() => {
    events += 1;
    if (events === 5) heard.resolve();
  });
  expect(
    (await it.control("POST", "/-/live", { ratePerSecond: 200, seed: 1, kinds: ["open", "comment"] })).status,
  ).toBe(200);
  await heard.promise;
  expect((await it.control("DELETE", "/-/live")).body.count).toBeGreaterThanOrEqual(5);
  expect((await it.control("POST", "/-/live", {})).status).toBe(400);
});

test("the process tells where it listens, and ends with its parent", async () => {
  const child = spawn(
    process.execPath,
    ["src/simulator/main.ts", "--repositories", "1", "--issues", "20", "--token", "t", "--login", "me"],
    {
      stdio: ["ignore", "pipe", "inherit", "ipc"],
    },
  );
  const [line] = (await once(createInterface({ input: child.stdout ?? process.stdin }), "line")) as [string];
  const { ready, url, repositories } = JSON.parse(line);
  expect([ready, repositories.length > 0]).toEqual([true, true]);
  const reply = await fetch(`${url}/user`, { headers: { authorization: "token t", "user-agent": "tests" } });
  expect((await reply.json()) as object).toMatchObject({ login: "me" });
  child.disconnect();
  const [code] = await once(child, "exit");
  expect(code).toBe(0);
});

test("a process with senseless options says which, and ends with 1", async () => {
  const child = spawn(process.execPath, ["src/simulator/main.ts", "--port", "x", "--limits", "{"], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let text = "";
  child.stderr.on("data", (chunk) => {
    text += chunk;
  });
  const [code] = await once(child, "exit");
  expect(code).toBe(1);
  expect(text).toContain('--port should be a number that is not negative, not "x"');
  expect(text).toContain("--limits should be JSON");
});
