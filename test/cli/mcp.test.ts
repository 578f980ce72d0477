import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import type { Fields } from "../../src/json.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { blocksOf, projectRoot, readPage } from "../docs/markdown.ts";
import { askAt } from "../support/asking.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { mirrorParts, repositoriesOf } from "../support/mirrored.ts";
import { openWorld, type TestWorld } from "../support/world.ts";
import { type Agent, agentAt, ERAS, serveAgents, startAgent } from "./agent.ts";

const READ_TOOLS = [
  ...["search_issues", "list_issues", "get_issue", "list_pull_requests", "get_pull_request", "list_commits"],
  ...["get_repository", "list_repositories", "list_releases", "list_changes"],
];
const WRITE_TOOLS = ["create_issue", "add_comment", "update_issue"];

let world: TestWorld;
let open: string;
let hidden: string;
let userId: number;
/** An open pull request whose head has checks, by its number. */
let pull: number;
/** An issue with comments. */
let issue: number;
/** Reads with the mirror's own token, over stdio. */
let agent: Agent;

beforeAll(async () => {
  world = await openWorld({
    env: { MIRROR: "checks,releases" },
    fill: ({ world: filled }) =>
      void generateWorld(filled, { seed: 7, repositories: 3, issues: 24, pulls: 12, code: { releases: 4 } }),
  });
  const all = repositoriesOf(world.simulator);
  await world.mirror(...all.map(({ fullName }) => fullName));
  await mirrorParts(world.ctx);
  const named = (isPrivate: boolean) => all.find((one) => one.private === isPrivate)?.fullName ?? "";
  [open, hidden] = [named(false), named(true)];
  await world.listen(open);
  const [user] = await world.ctx.db.query<{ id: number }>(sql`select user_id::float8 as id from api_tokens limit 1`);
  userId = user?.id ?? 0;
  for (const { number, head } of await rows(`/repos/${open}/pulls`)) {
    const { body } = await world.get(`/repos/${open}/commits/${(head as Fields).sha}/check-runs`);
    if ((body as { total_count: number }).total_count > 0) pull = Number(number);
  }
  issue = Number((await rows(`/repos/${open}/issues?state=all&sort=comments`))[0]?.number);
  agent = await start();
});
afterAll(async () => {
  await agent?.[Symbol.asyncDispose]();
  await world?.[Symbol.asyncDispose]();
});

/** What the API itself answers. */
async function rows(path: string): Promise<Fields[]> {
  const { status, body } = await world.get(path);
  expect([path, status]).toEqual([path, 200]);
  return body as Fields[];
}

const numbers = (list: readonly Fields[]) => list.map(({ number }) => number);
const at = () => ["--url", world.url];
const start = (args: readonly string[] = [], token = world.token, era: (typeof ERAS)[number] = ERAS[0]) =>
  startAgent([...at(), ...args], { env: { TAIN_TOKEN: token }, era });

/** Runs with an agent on each transport. */
async function withAgent(
  over: string,
  era: (typeof ERAS)[number],
  run: (agent: Agent) => Promise<void>,
): Promise<void> {
  await using server = over === "HTTP" ? await serveAgents(at()) : null;
  await using agent = server ? await agentAt(server.url, world.token, { era }) : await start([], world.token, era);
  await run(agent);
}

describe.each([
  ["stdio", ERAS[0]],
  ["stdio", ERAS[1]],
  ["HTTP", ERAS[0]],
  ["HTTP", ERAS[1]],
] as const)("over %s, by the protocol of %s", (over, era) => {
  test("each tool that reads answers what the API answers, and upstream is asked nothing", async () => {
    await withAgent(over, era, async ({ client, call }) => {
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).toEqual(READ_TOOLS);
      expect(tools.every(({ annotations }) => annotations?.readOnlyHint)).toBe(true);
      await world.settle();
      world.simulator.meter.reset();

      const found = await call("search_issues", { query: `repo:${open} is:issue`, per_page: 5, sort: "created" });
      const issues = (await rows(`/repos/${open}/issues?state=all&per_page=100`)).filter((one) => !one.pull_request);
      expect(found.fields).toMatchObject({ total: issues.length, more: ["There are more: ask with page=2"] });
      expect(numbers(found.fields.issues)).toEqual(numbers(issues).slice(0, 5));
      expect(found.fields.issues[0]).toMatchObject({ repository: open, is_pull_request: false });
      expect(JSON.parse(found.text)).toEqual(found.fields);

      const [label] = issues.flatMap(({ labels }) => (labels as Fields[]).map(({ name }) => name));
      const labelled = await call("list_issues", { repository: open, state: "all", labels: [label] });
      expect(numbers(labelled.fields.issues)).toEqual(
        numbers(await rows(`/repos/${open}/issues?state=all&labels=${encodeURIComponent(String(label))}`)),
      );

      const one = (await world.get(`/repos/${open}/issues/${issue}`)).body as Fields;
      const comments = await rows(`/repos/${open}/issues/${issue}/comments`);
      const read = await call("get_issue", { repository: open, number: issue, max_text: 65_536 });
      expect(read.fields).toMatchObject({
        issue: { number: issue, title: one.title, body: one.body, author: (one.user as Fields).login },
        comments: comments.map(({ id, body }) => ({ id, body })),
      });
      expect(comments.length).toBeGreaterThan(0);

      const pulls = await call("list_pull_requests", { repository: open, state: "all", sort: "updated" });
      expect(numbers(pulls.fields.pull_requests)).toEqual(
        numbers(await rows(`/repos/${open}/pulls?state=all&sort=updated&direction=desc`)),
      );
      const include = ["comments", "reviews", "review_comments", "checks"];
      const { fields } = await call("get_pull_request", { repository: open, number: pull, include });
      const whole = (await world.get(`/repos/${open}/pulls/${pull}`)).body as Fields;
      const [reviews, runs] = await Promise.all([
        rows(`/repos/${open}/pulls/${pull}/reviews`),
        world.get(`/repos/${open}/commits/${(whole.head as Fields).sha}/check-runs`),
      ]);
      expect(fields.pull_request).toMatchObject({ number: pull, title: whole.title, draft: whole.draft });
      expect(fields.reviews.map(({ id }: Fields) => id)).toEqual(reviews.map(({ id }) => id));
      expect(fields.checks).toMatchObject({ total: (runs.body as Fields).total_count });
      expect(Object.keys(fields)).not.toContain("files");

      expect((await call("get_repository", { repository: open })).fields.repository).toMatchObject({ full_name: open });
      const listed = (await call("list_repositories")).fields;
      expect(listed.repositories.map((each: Fields) => each.full_name)).toEqual(
        (await rows("/user/repos?sort=full_name")).map((each) => each.full_name),
      );
      expect(listed.freshness).toMatchObject({ only_mirrored_repositories: true });
      const releases = (await call("list_releases", { repository: open, per_page: 2 })).fields;
      expect(releases.releases.map(({ id }: Fields) => id)).toEqual(
        (await rows(`/repos/${open}/releases?per_page=2`)).map(({ id }) => id),
      );
      expect((await call("list_changes", { repositories: [open] })).fields).toMatchObject({
        changes: [],
        next_since: expect.stringMatching(/^\d+$/),
      });

      expect(world.simulator.meter.read()).toMatchObject({ requests: 0, charged: 0, points: 0 });
    });
  });
});

test("each answer says how fresh it is, as the API's headers do, and is as old as its oldest part", async () => {
  const { headers } = await world.get(`/repos/${open}/issues/${issue}`);
  const { freshness } = (await agent.call("get_issue", { repository: open, number: issue })).fields;
  expect(freshness).toEqual({
    answered_by: "mirror",
    confirmed_at: headers.get("x-tain-confirmed-at"),
    age_seconds: expect.any(Number),
    not_confirmed: ["accounts", "comments", "reactions"],
  });
  const others = await agent.call("search_issues", { query: "is:issue" });
  const oldest = (await world.get("/search/issues?q=is:issue")).headers.get("x-tain-confirmed-at");
  expect(others.fields.freshness).toMatchObject({ confirmed_at: oldest, only_mirrored_repositories: true });
});

test("what the mirror does not keep is asked of upstream, and the answer names it", async () => {
  await world.settle();
  world.simulator.meter.reset();
  const given = { repository: open, number: pull, include: ["reviews", "files", "commits"] };
  const { fields } = await agent.call("get_pull_request", given);
  const theirs = await askAt(world.simulator.url, "GET", `/repos/${open}/pulls/${pull}/files`, {
    token: UPSTREAM_TOKEN,
  });
  expect(fields.files.map(({ filename }: Fields) => filename)).toEqual(
    theirs.body.map(({ filename }: Fields) => filename),
  );
  expect(fields.freshness).toMatchObject({
    answered_by: "mirror and upstream",
    forwarded: [
      { part: "commits", cache: "miss" },
      { part: "files", cache: "miss" },
    ],
  });
  const commits = await agent.call("list_commits", { repository: open, pull_request: pull });
  expect(commits.fields.freshness).toMatchObject({ answered_by: "upstream", confirmed_at: null });
  expect(commits.fields.commits.map(({ sha }: Fields) => sha)).toEqual(fields.commits.map(({ sha }: Fields) => sha));
});

test("long texts are cut, and the answer says how to get them whole", async () => {
  const body = `${"long ".repeat(1_000)}🙂`;
  const made = await askAt(world.url, "POST", `/repos/${open}/issues`, {
    token: world.token,
    body: JSON.stringify({ title: "A long one", body }),
  });
  const given = { repository: open, number: made.body.number };
  const cut = (await agent.call("get_issue", { ...given, max_text: 100 })).fields;
  expect(cut.issue.body).toBe(`${body.slice(0, 100)} … [cut: 100 of 5,002 characters]`);
  expect(cut.more).toEqual(["1 texts were cut: ask again with max_text (up to 65536)"]);
  expect((await agent.call("get_issue", { ...given, max_text: 10_000 })).fields.issue.body).toBe(body);
});

test("changes are told in order, none twice and none left out, and it waits for the next", async () => {
  const began = (await agent.call("list_changes")).fields.next_since;
  const comment = (text: string) =>
    askAt(world.simulator.url, "POST", `/repos/${open}/issues/${issue}/comments`, {
      token: UPSTREAM_TOKEN,
      body: JSON.stringify({ body: text }),
    });
  const waiting = agent.call("list_changes", { since: began, events: ["issue_comment"], wait_seconds: 50, limit: 1 });
  await comment("the first");
  await comment("the second");
  const first = (await waiting).fields;
  expect(first.changes).toMatchObject([
    {
      ...{ repository: open, event: "issue_comment.created", subject: expect.stringMatching(`/${issue}$`) },
      said: { body: "the first", author: "mirror-owner" },
    },
  ]);
  expect(first.more).toEqual([`There may be more: ask with since=${first.next_since}`]);
  const second = await agent.call("list_changes", { since: first.next_since, wait_seconds: 50, limit: 1 });
  expect(second.fields.changes).toMatchObject([{ said: { body: "the second" } }]);
  const given = { since: second.fields.next_since, repositories: [open] };
  expect((await agent.call("list_changes", given)).fields.changes).toEqual([]);
});

describe("writes", () => {
  test("are offered only with --write, and then happen at upstream, once, and are shown by the mirror", async () => {
    await expect(agent.client.callTool({ name: "create_issue", arguments: {} })).rejects.toThrow("create_issue");

    await using writer = await start(["--write"]);
    const { tools } = await writer.client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([...READ_TOOLS, ...WRITE_TOOLS]);
    const { fields } = await writer.call("create_issue", {
      repository: open,
      title: "Made by an agent",
      body: "Hello",
    });
    const { number } = fields.issue;
    const upstreams = async (below = "") =>
      (await askAt(world.simulator.url, "GET", `/repos/${open}/issues/${number}${below}`, { token: UPSTREAM_TOKEN }))
        .body;
    expect(await upstreams()).toMatchObject({ title: "Made by an agent", body: "Hello", state: "open" });

    await writer.call("add_comment", { repository: open, number, body: "Said by an agent" });
    expect(await upstreams("/comments")).toMatchObject([{ body: "Said by an agent" }]);
    const changes = { state: "closed", state_reason: "not_planned", title: "Closed by an agent" };
    const closed = await writer.call("update_issue", { repository: open, number, ...changes });
    expect(closed.fields.issue).toMatchObject(changes);
    expect(await upstreams()).toMatchObject({ ...changes, body: "Hello" });
    const read = await writer.call("get_issue", { repository: open, number });
    expect(read.fields).toMatchObject({ issue: changes, comments: [{ body: "Said by an agent" }] });
  });

  test("are refused to a token that may not write, and where nothing is to be changed", async () => {
    const token = await createApiToken(world.ctx, { userId, canWrite: false });
    await using agent = await start(["--write"], token);
    world.simulator.meter.reset();
    const answer = await agent.call("add_comment", { repository: open, number: issue, body: "No" });
    expect(answer).toMatchObject({ isError: true, fields: { error: { kind: "forbidden", status: 403 } } });
    const nothing = await agent.call("update_issue", { repository: open, number: issue });
    expect(nothing.fields.error).toMatchObject({ kind: "invalid", status: null });
    expect(world.simulator.meter.read().requests).toBe(0);
  });
});

describe("what goes wrong is said in words to act on", () => {
  test("a token that the mirror does not know, which is repeated nowhere", async () => {
    const token = `tain_${"x".repeat(40)}`;
    await using agent = await start([], token);
    for (const [tool, given] of [
      ["get_issue", { repository: open, number: issue }],
      ["list_changes", {}],
    ] as const) {
      const { isError, fields, text } = await agent.call(tool, given);
      expect({ isError, ...fields.error }).toMatchObject({ isError: true, kind: "wrong_token", status: 401 });
      expect(text + agent.said()).not.toContain(token);
    }
  });

  test("what the mirror refuses, by the reason", async () => {
    const token = await createApiToken(world.ctx, { userId, canWrite: false, permissions: ["issues:read"] });
    await using agent = await start([], token);
    for (const [tool, given, kind, message] of [
      ["list_pull_requests", { repository: hidden }, "forbidden", /may not do that/],
      ["get_issue", { repository: open, number: 99_999 }, "not_found", /^Not found: issue 99999 of /],
      ["get_repository", { repository: "octo/nowhere" }, "not_found", /is not mirrored here/],
      ["list_changes", { repositories: ["octo/nowhere"] }, "not_found", /is not mirrored here/],
      ["list_changes", { since: "999999999999" }, "invalid", /No event has the id 999999999999/],
      ["search_issues", { query: "repo:octo/nowhere is:issue" }, "invalid", /cannot be searched/],
    ] as const) {
      const { isError, fields } = await agent.call(tool, given);
      expect([tool, isError, fields.error.kind]).toEqual([tool, true, kind]);
      expect(fields.error.message).toMatch(message);
    }
  });

  test("a pull request is shown without the parts that the token may not read", async () => {
    const token = await createApiToken(world.ctx, { userId, canWrite: false, permissions: ["pull_requests:read"] });
    await using agent = await start([], token);
    const [one] = await rows(`/repos/${hidden}/pulls?state=all`);
    const given = { repository: hidden, number: one?.number, include: ["reviews", "checks"] };
    const { isError, fields } = await agent.call("get_pull_request", given);
    expect([isError, fields.pull_request.number, Array.isArray(fields.reviews)]).toEqual([false, one?.number, true]);
    expect(fields.more.join()).toMatch(/checks are not shown: This token may not do that/);
  });

  test("a spent quota, and when there is more", async () => {
    const token = await createApiToken(world.ctx, { userId, canWrite: false, hourlyLimit: 1 });
    await using agent = await start([], token);
    const given = { repository: open };
    expect((await agent.call("get_repository", given)).isError).toBe(false);
    for (const [tool, asked] of [
      ["get_repository", given],
      ["list_changes", {}],
    ] as const) {
      const { error } = (await agent.call(tool, asked)).fields;
      expect(error).toMatchObject({
        kind: "rate_limited",
        status: 403,
        message: expect.stringMatching(/Ask again in \d/),
      });
      expect(error.retry_after_seconds).toBeGreaterThan(0);
    }
  });

  test("upstream is away, where only upstream has the answer", async () => {
    const [, second] = await rows(`/repos/${open}/pulls?state=all`);
    world.simulator.setFaults({ http: [{ match: "/commits", kind: "reset" }] });
    const given = { repository: open, pull_request: second?.number };
    const { error } = (await agent.call("list_commits", given)).fields;
    world.simulator.setFaults({});
    expect(error).toMatchObject({ kind: "upstream_away" });
    expect((await agent.call("list_commits", given)).isError).toBe(false);
  });
});

test("over HTTP each caller is answered by their own token's rights, and nobody by the server's", async () => {
  await using server = await serveAgents(at(), { TAIN_TOKEN: world.token });
  const scope = { repositoryIds: [], ownerIds: [] };
  const stranger = await createApiToken(world.ctx, { userId, canWrite: false, scope });
  const [whole, narrow] = [await agentAt(server.url, world.token), await agentAt(server.url, stranger)];
  await using _agents = new AsyncDisposableStack();
  for (const each of [whole, narrow]) _agents.use(each);
  const asked = { repository: hidden };
  const [seen, unseen] = await Promise.all([whole.call("get_repository", asked), narrow.call("get_repository", asked)]);
  expect(seen.fields.repository).toMatchObject({ full_name: hidden });
  expect(unseen.fields.error).toMatchObject({ kind: "not_found" });
  const plain = await fetch(server.url, {
    method: "POST",
    body: "{}",
    headers: { "content-type": "application/json" },
  });
  expect([plain.status, plain.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
  await expect(agentAt(server.url, "")).rejects.toThrow();
});

test("the configuration in docs/clients.md starts a server, by the launcher", async () => {
  const block = blocksOf(readPage("docs/clients.md")).find(
    ({ text }) => text.includes("mcpServers") && text.includes("args"),
  );
  const { mcpServers } = JSON.parse(block?.text ?? "") as {
    mcpServers: { tain: { command: string; args: string[]; env: Record<string, string> } };
  };
  const { command, args, env } = mcpServers.tain;
  expect([command, Object.keys(env)]).toEqual(["node", ["TAIN_TOKEN"]]);
  const given = args.map((arg) =>
    arg.replace("/path/to/tain/", projectRoot).replace("https://tain.example.com", world.url),
  );
  await using agent = await startAgent(given, { env: { TAIN_TOKEN: world.token }, program: [process.execPath] });
  expect((await agent.call("get_repository", { repository: open })).fields.repository).toMatchObject({
    full_name: open,
  });
});
