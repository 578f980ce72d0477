import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Answered, askAt } from "../support/asking.ts";
import { testRedis } from "../support/database.ts";
import { store } from "../support/mirrored.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

let world: ApiWorld;
let repo: string;
let repoId: number;
beforeAll(async () => {
  world = await openApiWorld({ repositories: 3, issues: 30 });
  const [first] = world.repositories;
  if (!first) throw new Error("The generated world has no repository");
  ({ fullName: repo, id: repoId } = first);
});
afterAll(() => world?.[Symbol.asyncDispose]());

const fault = (status: number, message: string, path: string) => ({
  message,
  documentation_url: `https://docs.github.com/${path}`,
  status: String(status),
});

describe("refusals", () => {
  test("no User-Agent: 403 in plain words, before anything else", async () => {
    const answer = await world.get("/user", {
      token: "bad",
      headers: { "user-agent": "", "x-github-api-version": "v3" },
    });
    expect(answer.status).toBe(403);
    expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(answer.text).toMatch(/^Request forbidden by administrative rules/);
  });

  test("a version that is not supported: 400, after a token that is none, and before all else", async () => {
    const headers = { "x-github-api-version": "v3" };
    const rejected = await world.get(`/repos/${repo}`, { token: "bad", headers });
    expect([rejected.status, rejected.body.message]).toEqual([401, "Bad credentials"]);
    const answer = await world.get("/user", { token: null, headers });
    expect(answer.status).toBe(400);
    expect(answer.body).toEqual({
      message: "Bad Request",
      errors:
        'The version you specified in the "X-GitHub-API-Version" request header, "v3", is not a supported version. The following versions are currently supported: "2026-03-10" (most recent) and "2022-11-28".',
      documentation_url: "https://docs.github.com/rest",
      status: "400",
    });
    const unnamed = await world.get(`/repos/${repo}`, { headers: { "x-github-api-version": "" } });
    expect([unnamed.status, unnamed.headers.get("x-github-api-version-selected")]).toEqual([200, "2022-11-28"]);
  });

  const heads = ({ headers }: Answered) => ({
    figures: headers.has("x-ratelimit-limit"),
    selected: headers.get("x-github-api-version-selected"),
  });

  test("who is refused for the version has figures, and no version is named", async () => {
    const used = async () => Number((await world.get("/rate_limit")).body.rate.used);
    const before = await used();
    const answer = await world.get(`/repos/${repo}`, { headers: { "x-github-api-version": "v3" } });
    expect({ status: answer.status, ...heads(answer) }).toEqual({ status: 400, figures: true, selected: null });
    expect(await used()).toBe(before + 1);
    const rejected = await world.get(`/repos/${repo}`, { token: "bad" });
    expect({ status: rejected.status, ...heads(rejected) }).toEqual({ status: 401, figures: false, selected: null });
  });

  test("what the service has no route for is 404 before all else", async () => {
    const used = async () => Number((await world.get("/rate_limit")).body.rate.used);
    const before = await used();
    for (const path of ["/nothing", `/repos/${repo}/no-such-thing`, `/repos/${repo}/`])
      for (const version of ["2022-11-28", "v3"])
        for (const token of [world.token, "bad", null]) {
          const answer = await world.get(path, { token, headers: { "x-github-api-version": version } });
          expect({ status: answer.status, ...heads(answer) }, `${path} ${token}`).toEqual({
            status: 404,
            figures: token === null,
            selected: null,
          });
        }
    // No answer shows it, but refusals are not free: six were asked for with this token.
    expect(await used()).toBe(before + 6);
  });

  test("an anonymous question for the quota is answered in every version", async () => {
    const headers = { "x-github-api-version": "v3" };
    const answer = await world.get("/rate_limit", { token: null, headers });
    expect([answer.status, heads(answer).selected]).toEqual([200, null]);
    expect((await world.get("/rate_limit", { headers })).status).toBe(400);
  });

  test.each([
    ["a scheme that is none", "Digest abc"],
    ["a token without a scheme", "ghp_abc"],
  ])("%s shows no credential: the caller is anonymous", async (_what, authorization) => {
    const publicRepo = world.repositories.find((one) => !one.private)?.fullName;
    const answer = await world.get(`/repos/${publicRepo}`, { token: null, headers: { authorization } });
    const { text } = await world.get(`/repos/${publicRepo}`, { token: null });
    expect([answer.status, answer.text]).toEqual([200, text]);
    const user = await world.get("/user", { token: null, headers: { authorization } });
    expect([user.status, user.body.message]).toEqual([401, "Requires authentication"]);
    const asked = { token: null, headers: { authorization }, body: '{"query":"{viewer{login}}"}' };
    expect((await world.send("POST", "/graphql", asked)).status).toBe(401);
  });

  test.each([
    ["an unknown token", "Bearer tain_0000000000000000000000000000000000000000"],
    ["nothing behind the scheme", "Bearer"],
    ["a Basic without a password of ours", `Basic ${Buffer.from("someone:secret").toString("base64")}`],
  ])("%s: 401 Bad credentials", async (_what, authorization) => {
    const answer = await world.get(`/repos/${repo}`, { token: null, headers: { authorization } });
    expect(answer.status).toBe(401);
    expect(answer.body).toEqual(fault(401, "Bad credentials", "rest"));
  });

  test("an anonymous request for what needs a user: 401", async () => {
    for (const path of ["/user", "/user/repos"]) {
      const answer = await world.get(path, { token: null });
      expect([answer.status, answer.body.message]).toEqual([401, "Requires authentication"]);
    }
  });

  test("a route that nobody serves says so, whatever repository it names", async () => {
    const paths = [
      "/nothing",
      `/repos/${repo}/no-such-thing`,
      "/repos/no/body/no-such-thing",
      `/repos/${repo}/`,
      `/repos/${repo}/issues/`,
      "/repos/x",
    ];
    const bodies = new Set<string>();
    for (const path of paths) {
      const answer = await world.get(path);
      expect(answer.status, path).toBe(404);
      expect(answer.headers.get("x-tain-hint"), path).toContain("does not serve GET on this route");
      bodies.add(answer.text);
    }
    // Libraries choose the error that they raise by these words.
    expect([...bodies]).toEqual([JSON.stringify(fault(404, "Not Found", "rest"))]);
    expect((await world.send("DELETE", `/repos/${repo}`)).body.message).toContain("does not serve DELETE");
  });

  test.each([
    ["/issues/99999", 404, "Not Found", "rest/issues/issues#get-an-issue"],
    ["/issues/one", 404, "Not Found", "rest/issues/issues#get-an-issue"],
    ["/issues/99999999999999999999", 404, "Not Found", "rest/issues/issues#get-an-issue"],
    ["/pulls/99999", 404, "Not Found", "rest/pulls/pulls#get-a-pull-request"],
    ["/labels/no%2Flabel", 404, "Not Found", "rest/issues/labels#get-a-label"],
    ["/milestones/77", 404, "Not Found", "rest/issues/milestones#get-a-milestone"],
    ["/issues/comments/1", 404, "Not Found", "rest/issues/comments#get-an-issue-comment"],
    ["/issues/99999/comments", 404, "Not Found", "rest/issues/comments#list-issue-comments"],
    ["/pulls/99999/reviews", 404, "Not Found", "rest/pulls/reviews#list-reviews-for-a-pull-request"],
  ])("%s: %i %s", async (path, status, message, docs) => {
    const answer = await world.get(`/repos/${repo}${path}`);
    expect(answer.status).toBe(status);
    expect(answer.body).toEqual(fault(status, message, docs));
  });

  test.each([
    ["/issues?state=ajar", "Issue", "state", "ajar"],
    ["/issues?state=", "Issue", "state", ""],
    ["/issues?milestone=999", "Issue", "milestone", "999"],
    ["/issues?milestone=soon", "Issue", "milestone", "soon"],
    ["/issues?after=nonsense", "Issue", "after", "nonsense"],
  ])("%s: 422", async (path, resource, field, value) => {
    const answer = await world.get(`/repos/${repo}${path}`);
    expect(answer.status).toBe(422);
    expect(answer.body).toMatchObject({
      message: "Validation Failed",
      errors: [{ resource, field, code: "invalid", value }],
      status: "422",
    });
    if (field === "after") return;
    expect(answer.body.documentation_url).toBe("https://docs.github.com/v3/issues/#list-issues");
  });

  test.each(["/issues?since=yesterday", "/issues/comments?since=2026-13-45", "/pulls/comments?since=5"])(
    "%s: 422, in the words about times",
    async (path) => {
      const answer = await world.get(`/repos/${repo}${path}`);
      const message = "The since parameter needs to be in ISO 8601 format: YYYY-MM-DDTHH:MM:SSZ";
      expect(answer.body).toEqual({ message, documentation_url: expect.any(String), status: "422" });
      expect((await world.getUpstream(`/repos/${repo}${path}`)).body.message).toBe(message);
    },
  );

  test("times are read in any form of ISO 8601, and are UTC's where no zone is named", async () => {
    const usual = await world.get(`/repos/${repo}/issues?state=all&since=2025-01-15T10:00:00Z`);
    for (const since of [
      "2025-01-15T10:00:00",
      "2025-01-15%2010:00",
      "2025-01-15T12:00:00%2B0200",
      "2025-01-15T11:00:00+01:00",
    ]) {
      const { status, body } = await world.get(`/repos/${repo}/issues?state=all&since=${since}`);
      expect([since, status, body]).toEqual([since, 200, usual.body]);
    }
  });

  test.each([
    ["/issues?sort=age&direction=asc", "/issues"],
    ["/issues?direction=up&sort=updated", "/issues"],
    ["/pulls?state=merged&sort=age", "/pulls?state=open&sort=created&direction=asc"],
    ["/pulls?state=all&sort=long-running", "/pulls?state=all&sort=created&direction=asc"],
    ["/pulls?state=all&sort=created&direction=up", "/pulls?state=all"],
    ["/milestones?sort=title&state=late", "/milestones"],
    ["/issues/comments?sort=bogus&direction=up", "/issues/comments"],
  ])("%s: a word outside the set counts as the default", async (path, same) => {
    const [odd, usual] = [await world.get(`/repos/${repo}${path}`), await world.get(`/repos/${repo}${same}`)];
    expect([odd.status, odd.body]).toEqual([200, usual.body]);
    const theirs = await world.getUpstream(`/repos/${repo}${path}`);
    const numbers = (rows: { id: number }[]) => rows.map(({ id }) => id);
    expect([theirs.status, numbers(theirs.body)]).toEqual([200, numbers(odd.body)]);
  });

  test("a deleted issue: 410, and gone from lists", async () => {
    const before = await world.get(`/repos/${repo}/issues?state=all&per_page=100`);
    const victim = before.body.find(
      (row: { pull_request?: object; comments: number }) => !row.pull_request && row.comments > 0,
    );
    const [comment] = (await world.get(`/repos/${repo}/issues/${victim.number}/comments`)).body;
    const { text } = await world.getUpstream(`/repos/${repo}/issues/${victim.number}`);
    await store(
      world.ctx,
      world.upstream,
      "issue",
      JSON.parse(text),
      { id: repoId, fullName: repo, htmlUrl: null },
      { deleted: true },
    );
    const answer = await world.get(`/repos/${repo}/issues/${victim.number}`);
    expect(answer.status).toBe(410);
    expect(answer.body).toEqual(fault(410, "This issue was deleted", "rest/issues/issues#get-an-issue"));
    expect((await world.get(`/repos/${repo}/issues/${victim.number}/comments`)).status).toBe(410);
    expect((await world.get(`/repos/${repo}/issues/comments/${comment.id}`)).status).toBe(404);
    const comments = await world.get(`/repos/${repo}/issues/comments?per_page=100`);
    expect(comments.body.length).toBeGreaterThan(0);
    expect(
      comments.body.filter((row: { issue_url: string }) => row.issue_url.endsWith(`/issues/${victim.number}`)),
    ).toEqual([]);
    const node = await world.send("POST", "/graphql", {
      body: JSON.stringify({ query: "query($id: ID!) { node(id: $id) { id } }", variables: { id: comment.node_id } }),
    });
    expect(node.body.errors[0].type).toBe("NOT_FOUND");
    const after = await world.get(`/repos/${repo}/issues?state=all&per_page=100`);
    expect(after.body.map((row: { number: number }) => row.number)).toEqual(
      before.body.map((row: { number: number }) => row.number).filter((number: number) => number !== victim.number),
    );
  });

  test("a Host that is none: 400", async () => {
    const { request } = await import("node:http");
    const status = await new Promise<number>((resolve, reject) => {
      const { hostname, port } = new URL(world.url);
      request(
        { hostname, port, path: "/versions", headers: { host: 'evil"><script>', "user-agent": "test" } },
        (answer) => {
          answer.resume();
          resolve(answer.statusCode ?? 0);
        },
      )
        .on("error", reject)
        .end();
    });
    expect(status).toBe(400);
  });
});

describe("quota over HTTP", () => {
  test("when it is spent: 403 with the service's words, for users and for anonymous callers", async () => {
    const url = await world.openSibling({
      RATE_LIMIT_USER: "2",
      RATE_LIMIT_ANONYMOUS: "1",
      REDIS_PREFIX: testRedis().prefix,
    });
    const asked = async (token?: string) => {
      const answers = [];
      for (let at = 0; at < 4; at++) answers.push(await askAt(url, "GET", "/versions", token ? { token } : {}));
      return { statuses: answers.map(({ status }) => status), last: answers.at(-1) as Answered };
    };
    const mine = await asked(world.token);
    expect(mine.statuses).toEqual([200, 200, 403, 403]);
    expect(mine.last.headers.get("x-ratelimit-remaining")).toBe("0");
    expect(mine.last.headers.get("x-ratelimit-used")).toBe("2");
    expect(mine.last.body.message).toMatch(
      new RegExp(
        `^API rate limit exceeded for user ID ${world.userId}\\. If you reach out to GitHub Support for help, please include the request ID [0-9A-F:]+ and timestamp [-0-9]+ [:0-9]+ UTC\\. For more on scraping`,
      ),
    );
    expect(mine.last.body).toMatchObject({
      documentation_url: "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api",
      status: "403",
    });
    const nobodys = await asked();
    expect(nobodys.statuses).toEqual([200, 403, 403, 403]);
    expect(nobodys.last.body.message).toBe(
      "API rate limit exceeded for 127.0.0.1. (But here's the good news: Authenticated requests get a higher rate limit. Check out the documentation for more details.)",
    );
    const limits = await askAt(url, "GET", "/rate_limit", { token: world.token });
    expect(limits.status).toBe(200);
    expect(limits.headers.get("etag")).toBeNull();
    expect(limits.headers.get("cache-control")).toBe("no-cache");
    expect(limits.body.resources.core).toMatchObject({ limit: 2, used: 2, remaining: 0 });
  });

  test("switched off, it shows as on an enterprise server without limits", async () => {
    const url = await world.openSibling({
      RATE_LIMIT_USER: "0",
      RATE_LIMIT_GRAPHQL: "0",
      REDIS_PREFIX: testRedis().prefix,
    });
    const answer = await askAt(url, "GET", `/repos/${repo}`, { token: world.token });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-ratelimit-limit")).toBeNull();
    const limits = await askAt(url, "GET", "/rate_limit", { token: world.token });
    expect([limits.status, limits.body.message]).toEqual([404, "Rate limiting is not enabled."]);
    const graphql = await askAt(url, "POST", "/graphql", {
      token: world.token,
      body: '{"query":"{ rateLimit { cost } }"}',
    });
    expect(graphql.body).toEqual({ data: { rateLimit: null } });
  });

  test("a bad credential is shown no figures, and takes nothing of those of its address", async () => {
    const url = await world.openSibling({ RATE_LIMIT_ANONYMOUS: "10", REDIS_PREFIX: testRedis().prefix });
    const answers = [];
    for (let at = 0; at < 2; at++) answers.push(await askAt(url, "GET", "/versions", { token: "tain_unknown" }));
    answers.push(await askAt(url, "GET", "/versions"));
    expect(answers.map(({ status, headers }) => [status, headers.get("x-ratelimit-remaining")])).toEqual([
      [401, null],
      [401, null],
      [200, "9"],
    ]);
  });
});

test("without its database it says so: 503, in the service's shape", async () => {
  const url = await world.openSibling({
    DATABASE_URL: "postgres://tain:tain@127.0.0.1:1/tain",
    REDIS_PREFIX: testRedis().prefix,
  });
  const [rest, graphql] = [
    await askAt(url, "GET", `/repos/${repo}`),
    await askAt(url, "POST", "/graphql", { token: world.token, body: '{"query":"{ viewer { login } }"}' }),
  ];
  for (const answer of [rest, graphql]) {
    expect(answer.status).toBe(503);
    expect(answer.body).toMatchObject({
      message: "Service Unavailable: the mirror's database cannot be reached",
      status: "503",
    });
    expect(answer.headers.get("retry-after")).toBe("5");
  }
});
