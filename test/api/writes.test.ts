import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { sql } from "../../db/sql.ts";
import { pushBranch } from "../../src/simulator/changes/pulls.ts";
import { renameRepository } from "../../src/simulator/changes/repositories.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import { askAt } from "../support/asking.ts";
import { PATIENCE_MS } from "../support/bounds.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { connectTo, testRedis } from "../support/database.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

let world: ApiWorld;
let repo: string;
let repoId: number;
beforeAll(async () => {
  world = await openApiWorld({ issues: 20, repositories: 1, upstreamTokens: 20 });
  const [first] = world.repositories;
  if (!first) throw new Error("The generated world has no repository");
  ({ fullName: repo, id: repoId } = first);
});
afterAll(() => world?.[Symbol.asyncDispose]());

const post = (what: "issues" | "pulls", body: object | string, headers: Record<string, string> = {}) =>
  world.send("POST", `/repos/${repo}/${what}`, {
    body: typeof body === "string" ? body : JSON.stringify(body),
    headers,
  });

describe("a created issue", () => {
  test("is upstream's, is in the mirror when the answer arrives, and is answered as the service does", async () => {
    const made = await post("issues", { title: "Through the mirror", body: "with \u0000 and 🎉", labels: ["bug"] });
    expect(made.status).toBe(201);
    const { number } = made.body;
    expect(made.body).toMatchObject({
      title: "Through the mirror",
      state: "open",
      url: `${world.url}/repos/${repo}/issues/${number}`,
      user: { login: expect.stringMatching(/^mirror-owner/) },
    });
    expect(made.headers.get("location")).toBe(`${world.url}/repos/${repo}/issues/${number}`);
    expect(made.headers.get("etag")).toMatch(/^"[0-9a-f]{64}"$/);
    expect(made.headers.get("deprecation")).toBe("Tue, 10 Mar 2026 00:00:00 GMT");
    expect(made.headers.get("link")).toContain('rel="deprecation"');
    const [read, listed, theirs] = await Promise.all([
      world.get(`/repos/${repo}/issues/${number}`),
      world.get(`/repos/${repo}/issues?per_page=1`),
      world.getUpstream(`/repos/${repo}/issues/${number}`),
    ]);
    expect(read.body).toEqual(made.body);
    expect(listed.body[0]).toEqual(made.body);
    expect(theirs.body).toMatchObject({ number, title: "Through the mirror", body: made.body.body });
    // The read came compressed.
    expect(read.headers.get("etag")).toBe(`W/${made.headers.get("etag")}`);
  });

  test("by numeric id and under the enterprise address, too", async () => {
    const made = await world.send("POST", `/api/v3/repositories/${repoId}/issues`, {
      body: '{"title":"By id"}',
      headers: { "x-github-api-version": "2026-03-10" },
    });
    expect(made.status).toBe(201);
    expect(made.body.url).toMatch(`${world.url}/api/v3/repos/${repo}/issues/`);
    expect(made.body).not.toHaveProperty("assignee");
    expect(made.headers.get("deprecation")).toBeNull();
  });

  test("by GraphQL", async () => {
    const {
      body: { data },
    } = await graphql(
      `query { repository(owner: "${repo.split("/")[0]}", name: "${repo.split("/")[1]}") { id label(name: "bug") { id } } }`,
    );
    const input = {
      repositoryId: data.repository.id,
      title: "By GraphQL",
      body: "text",
      labelIds: [data.repository.label.id],
      clientMutationId: "abc",
    };
    const made = await graphql(
      "mutation($input: CreateIssueInput!) { createIssue(input: $input) { clientMutationId issue { number url title body labels(first: 5) { nodes { name } } author { login } repository { nameWithOwner } } } }",
      { input },
    );
    expect(made.body.errors).toBeUndefined();
    const { clientMutationId, issue } = made.body.data.createIssue;
    expect(clientMutationId).toBe("abc");
    expect(issue).toMatchObject({
      title: "By GraphQL",
      body: "text",
      labels: { nodes: [{ name: "bug" }] },
      author: { login: expect.stringMatching(/^mirror-owner/) },
      repository: { nameWithOwner: repo },
    });
    expect((await world.get(`/repos/${repo}/issues/${issue.number}`)).body.html_url).toBe(issue.url);
    const legacy = Buffer.from(`010:Repository${repoId}`).toString("base64");
    const again = await graphql(
      "mutation($input: CreateIssueInput!) { createIssue(input: $input) { issue { number } } }",
      { input: { repositoryId: legacy, title: "By legacy id" } },
    );
    expect(again.body.data.createIssue.issue.number).toBe(issue.number + 1);
  });
});

describe("when the store falters after upstream has done it, the answer comes once it is stored:", () => {
  let number: number;
  beforeAll(async () => {
    number = (await post("issues", { title: "before" })).body.number;
  });

  /** Holds the issue's row, so that the write waits for it; then `strike` at the waiting transaction. */
  async function editStruck(title: string, strike: (client: pg.Client, pid: number) => Promise<unknown>) {
    const client = await connectTo(world.ctx.config.databaseUrl);
    try {
      await client.query("begin");
      await client.query("select from issues where repository_id = $1 and number = $2 for update", [repoId, number]);
      const edit = world.send("PATCH", `/repos/${repo}/issues/${number}`, { body: JSON.stringify({ title }) });
      const waiting = sql`
        select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      const { pid } = await vi.waitUntil(
        async () => (await world.ctx.db.query<{ pid: number }>(waiting))[0],
        PATIENCE_MS,
      );
      await strike(client, pid);
      await client.query("commit");
      const edited = await edit;
      expect(edited.status, edited.text).toBe(200);
      expect(edited.body.title).toBe(title);
    } finally {
      await client.end();
    }
    expect((await world.get(`/repos/${repo}/issues/${number}`)).body.title).toBe(title);
  }

  test("its connection breaks", () =>
    editStruck("connected anew", (client, pid) => client.query("select pg_terminate_backend($1)", [pid])));

  test("it loses a deadlock", () =>
    editStruck("unlocked", async (client) => {
      await client.query("set local deadlock_timeout = '1min'");
      await client.query("select from turns where purpose = 'write' for update");
    }));
});

async function graphql(query: string, variables: object = {}, token = world.token) {
  return world.send("POST", "/graphql", { token, body: JSON.stringify({ query, variables }) });
}

test("a created pull request is in the mirror, among the pull requests and among the issues", async () => {
  const repository = world.upstream.world.repositories.get(repoId);
  if (!repository) throw new Error("The repository is not in the world");
  pushBranch(world.upstream.world, world.userId, repository, "a-new-branch");
  const made = await post("pulls", { title: "Pull", head: "a-new-branch", base: repository.defaultBranch, body: "b" });
  expect(made.status, made.text).toBe(201);
  const { number } = made.body;
  expect(made.headers.get("location")).toBe(`${world.url}/repos/${repo}/pulls/${number}`);
  expect(made.body).toMatchObject({ title: "Pull", merged: false, changed_files: expect.any(Number) });
  expect((await world.get(`/repos/${repo}/pulls/${number}`)).body).toEqual(made.body);
  expect((await world.get(`/repos/${repo}/pulls?per_page=1`)).body[0].number).toBe(number);
  const issue = await world.get(`/repos/${repo}/issues/${number}`);
  expect(issue.status).toBe(200);
  expect(issue.body.pull_request.url).toBe(`${world.url}/repos/${repo}/pulls/${number}`);
});

test("a pull request that is edited and closed within one of upstream's seconds shows who closed it", async () => {
  const { world: upstream } = world.upstream;
  const repository = upstream.repositories.get(repoId);
  if (!repository) throw new Error("The repository is not in the world");
  pushBranch(upstream, world.userId, repository, "edited-and-closed");
  const made = await post("pulls", { title: "t", head: "edited-and-closed", base: repository.defaultBranch });
  const path = `/repos/${repo}/pulls/${made.body.number}`;
  // Both writes fall into one second. The first answer says that nobody has closed the issue.
  (upstream.clock as SettableClock).set(Math.ceil(upstream.clock.now() / 1_000) * 1_000);
  await world.send("PATCH", path.replace("/pulls/", "/issues/"), { body: '{"title":"edited"}' });
  const closed = await world.send("PATCH", path, { body: '{"state":"closed"}' });
  expect(closed.status, closed.text).toBe(200);
  const issue = await world.get(path.replace("/pulls/", "/issues/"));
  expect(issue.body.closed_by).toMatchObject({ login: expect.stringMatching(/^mirror-owner/) });
});

describe("a refused write", () => {
  test.each([
    ["without a title", "issues", {}],
    ["with a head that does not exist", "pulls", { title: "t", head: "no-such-branch", base: "main" }],
    ["with a base that does not exist", "pulls", { title: "t", head: "main", base: "no-such-branch" }],
  ] as const)("%s reaches the caller as upstream refused it", async (_why, what, body) => {
    const ours = await post(what, body);
    const theirs = await askAt(world.upstream.url, "POST", `/repos/${repo}/${what}`, {
      token: UPSTREAM_TOKEN,
      body: JSON.stringify(body),
    });
    expect(theirs.status).toBe(422);
    expect(ours.status).toBe(422);
    expect(ours.body).toEqual(theirs.body);
    expect(ours.headers.get("content-type")).toBe(theirs.headers.get("content-type"));
  });

  test.each([
    ["{", "Problems parsing JSON"],
    ["", "Problems parsing JSON"],
    ["[1]", "Body should be a JSON object"],
    ["null", "Body should be a JSON object"],
  ])("body %j: 400 %s, and upstream is not asked", async (body, message) => {
    const before = await upstreamWrites();
    const answer = await post("issues", body);
    expect(answer.status).toBe(400);
    expect(answer.body.message).toBe(message);
    expect(await upstreamWrites()).toBe(before);
  });

  test("by a token that only reads: 403; by nobody: 401; where nothing can be seen: 404; upstream is not asked", async () => {
    const before = await upstreamWrites();
    const body = '{"title":"t"}';
    const reader = await world.send("POST", `/repos/${repo}/issues`, { token: world.readToken, body });
    expect([reader.status, reader.body.message]).toEqual([403, "Resource not accessible by personal access token"]);
    const nobody = await world.send("POST", `/repos/${repo}/issues`, { token: null, body });
    expect([nobody.status, nobody.body.message]).toEqual([401, "Requires authentication"]);
    expect((await world.send("POST", "/repos/no/body/issues", { body })).status).toBe(404);
    const mutation = await graphql(
      "mutation($input: CreateIssueInput!) { createIssue(input: $input) { issue { number } } }",
      { input: { repositoryId: Buffer.from(`010:Repository${repoId}`).toString("base64"), title: "t" } },
      world.readToken,
    );
    expect(mutation.body).toMatchObject({
      data: { createIssue: null },
      errors: [
        { type: "FORBIDDEN", message: "Resource not accessible by personal access token", path: ["createIssue"] },
      ],
    });
    expect(await upstreamWrites()).toBe(before);
  });

  test("too large a body: 413", async () => {
    const answer = await post("issues", JSON.stringify({ title: "t", body: "x".repeat(5_000_000) }));
    expect(answer.status).toBe(413);
  });
});

async function upstreamWrites(): Promise<number> {
  const { body } = await world.getUpstream(`/repos/${repo}/issues?state=all&per_page=1`);
  return body[0].number;
}

describe("an upstream that fails", () => {
  /** Counts what reaches it and answers as told. */
  async function openFailing(
    act: (respond: (status: number, body: string, type?: string) => void, destroy: () => void) => void,
  ): Promise<{ url: string; requests: () => number }> {
    let requests = 0;
    const server: Server = createServer((request, response) => {
      requests++;
      request.resume();
      request.on("end", () =>
        act(
          (status, body, type = "application/json") => response.writeHead(status, { "content-type": type }).end(body),
          () => request.socket.destroy(),
        ),
      );
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(
      () =>
        new Promise<void>((resolve) => {
          server.closeAllConnections();
          server.close(() => resolve());
        }),
    );
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests: () => requests };
  }

  /** The same mirror in front of another upstream. */
  async function writeThrough(upstreamUrl: string): Promise<Awaited<ReturnType<typeof askAt>>> {
    // This process has a Redis prefix of its own: the others must not learn what it learns of its credential.
    const url = await world.openSibling({ UPSTREAM_URL: upstreamUrl, REDIS_PREFIX: testRedis().prefix });
    return askAt(url, "POST", `/repos/${repo}/issues`, { token: world.token, body: '{"title":"t"}' });
  }

  test("cannot be reached: 502 that says that nothing was done and nothing queued", async () => {
    const answer = await writeThrough("http://127.0.0.1:1");
    expect(answer.status).toBe(502);
    expect(answer.body).toEqual({
      message: "Upstream cannot be reached. Nothing was done, and nothing was queued.",
      documentation_url: "https://docs.github.com/rest",
      status: "502",
    });
  });

  test("breaks off: 502 that says that the outcome is not known; the write is sent once", async () => {
    const failing = await openFailing((_respond, destroy) => destroy());
    const answer = await writeThrough(failing.url);
    expect(answer.status).toBe(502);
    expect(answer.body.message).toMatch(
      /^Upstream gave no answer that can be read\. Whether it did what was asked is not known; nothing was queued/,
    );
    expect(failing.requests()).toBe(1);
  });

  test.each([500, 502, 503, 410, 403])(
    "answers %i: the caller gets it as it is; the write is sent once",
    async (status) => {
      const failing = await openFailing((respond) =>
        respond(status, '{"message":"As it is","documentation_url":"https://docs.github.com/rest"}'),
      );
      const answer = await writeThrough(failing.url);
      expect([answer.status, answer.body]).toEqual([
        status,
        { message: "As it is", documentation_url: "https://docs.github.com/rest" },
      ]);
      expect(failing.requests()).toBe(1);
    },
  );

  test("rejects the mirror's own credential: 502, not a 401 that would blame the caller's", async () => {
    const failing = await openFailing((respond) => respond(401, '{"message":"Bad credentials"}'));
    const answer = await writeThrough(failing.url);
    expect([answer.status, answer.body.message]).toEqual([
      502,
      "Upstream rejects the mirror's credential. Nothing was done, and nothing was queued.",
    ]);
  });

  test("creates and answers what cannot be stored: the caller is told of the success all the same", async () => {
    const failing = await openFailing((respond) => respond(201, '{"number":12345,"title":"odd"}'));
    const answer = await writeThrough(failing.url);
    expect([answer.status, answer.body]).toEqual([201, { number: 12345, title: "odd" }]);
  });

  test("GraphQL says it in its own form", async () => {
    const url = await world.openSibling({ UPSTREAM_URL: "http://127.0.0.1:1", REDIS_PREFIX: testRedis().prefix });
    const query = "mutation($input: CreateIssueInput!) { createIssue(input: $input) { issue { number } } }";
    const input = { repositoryId: Buffer.from(`010:Repository${repoId}`).toString("base64"), title: "t" };
    const answer = await askAt(url, "POST", "/graphql", {
      token: world.token,
      body: JSON.stringify({ query, variables: { input } }),
    });
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({
      data: { createIssue: null },
      errors: [
        {
          type: "SERVICE_UNAVAILABLE",
          message: "Upstream cannot be reached. Nothing was done, and nothing was queued.",
        },
      ],
    });
    const refused = await graphql(query, { input: { ...input, title: "" } });
    expect(refused.body.errors[0]).toMatchObject({ type: "UNPROCESSABLE", path: ["createIssue"] });
  });
});

test("a write to a repository that upstream has renamed meanwhile goes where upstream points to", async () => {
  const sibling = await openApiWorld({ issues: 10, repositories: 1 });
  onTestFinished(() => sibling[Symbol.asyncDispose]());
  const [first] = sibling.repositories;
  const [owner, name] = (first?.fullName ?? "/").split("/");
  const repository = sibling.upstream.world.repositories.get(first?.id ?? 0);
  if (!repository) throw new Error("The repository is not in the world");
  renameRepository(sibling.upstream.world, sibling.userId, repository, "elsewhere");
  const made = await sibling.send("POST", `/repos/${owner}/${name}/issues`, { body: '{"title":"After the rename"}' });
  expect(made.status, made.text).toBe(201);
  expect((await sibling.getUpstream(`/repos/${owner}/elsewhere/issues/${made.body.number}`)).body.title).toBe(
    "After the rename",
  );
});
