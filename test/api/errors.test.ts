import { afterAll, beforeAll, expect, test } from "vitest";
import { type Asking, askAt } from "../support/asking.ts";
import { store } from "../support/mirrored.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

// Each error of the service's that the mirror can give, with its whole body and its headers.

let world: ApiWorld;
let spent: string;
let cut: string;
let closed: string;
let repo: string;
let deleted: number;
beforeAll(async () => {
  world = await openApiWorld({ repositories: 1, issues: 20 });
  const [first] = world.repositories;
  repo = `/repos/${first?.fullName}`;
  const at = { id: first?.id as number, fullName: first?.fullName as string, htmlUrl: null };
  const { body } = await world.getUpstream(`${repo}/issues?state=all`);
  deleted = body[0].number;
  await store(world.ctx, world.upstream, "issue", body[0], at, { deleted: true });
  spent = await world.openSibling({ RATE_LIMIT_USER: "1", REDIS_PREFIX: "{spent}" });
  await askAt(spent, "GET", "/versions", { token: world.token });
  cut = await world.openSibling({ DATABASE_URL: "postgres://tain:tain@127.0.0.1:1/tain", REDIS_PREFIX: "{cut}" });
  closed = await world.openSibling({ PASS_THROUGH: "off", REDIS_PREFIX: "{closed}" });
});
afterAll(() => world?.[Symbol.asyncDispose]());

interface Case {
  method?: string;
  path: string | (() => string);
  asking?: () => Asking & { body?: string };
  at?: () => string;
  status: number;
  message: string | RegExp;
  docs: string;
  errors?: unknown;
  headers?: Record<string, string | null>;
}

const AT = "https://docs.github.com/rest";

const cases: Record<string, Case> = {
  "JSON that is none": {
    method: "POST",
    path: () => `${repo}/issues`,
    asking: () => ({ body: "{" }),
    status: 400,
    message: "Problems parsing JSON",
    docs: `${AT}/issues/issues#create-an-issue`,
  },
  "JSON that is no object": {
    method: "POST",
    path: () => `${repo}/issues`,
    asking: () => ({ body: "[]" }),
    status: 400,
    message: "Body should be a JSON object",
    docs: `${AT}/issues/issues#create-an-issue`,
  },
  "a version that is not supported, before whether a user is needed": {
    path: "/user",
    asking: () => ({ token: null, headers: { "x-github-api-version": "v3" } }),
    status: 400,
    message: "Bad Request",
    docs: AT,
    errors:
      'The version you specified in the "X-GitHub-API-Version" request header, "v3", is not a supported version. The following versions are currently supported: "2026-03-10" (most recent) and "2022-11-28".',
    headers: { "x-ratelimit-limit": "60", "x-github-api-version-selected": null },
  },
  "a credential that is none": {
    path: () => repo,
    asking: () => ({ token: "tain_unknown" }),
    status: 401,
    message: "Bad credentials",
    docs: AT,
    headers: { "x-ratelimit-limit": null },
  },
  "an anonymous caller where a user is needed": {
    path: "/user",
    asking: () => ({ token: null }),
    status: 401,
    message: "Requires authentication",
    docs: `${AT}/users/users#get-the-authenticated-user`,
  },
  "a token that only reads": {
    method: "POST",
    path: () => `${repo}/issues`,
    asking: () => ({ token: world.readToken, body: '{"title":"t"}' }),
    status: 403,
    message: "Resource not accessible by personal access token",
    docs: `${AT}/issues/issues#create-an-issue`,
  },
  "a quota that is spent": {
    path: "/versions",
    at: () => spent,
    status: 403,
    message: /^API rate limit exceeded for user ID \d+\. If you reach out to GitHub Support/,
    docs: `${AT}/overview/rate-limits-for-the-rest-api`,
    headers: { "x-ratelimit-remaining": "0", "x-ratelimit-resource": "core" },
  },
  "what does not exist": {
    path: () => `${repo}/issues/99999`,
    status: 404,
    message: "Not Found",
    docs: `${AT}/issues/issues#get-an-issue`,
  },
  "a repository that nobody knows": {
    path: "/repos/no/body",
    status: 404,
    message: "Not Found",
    docs: `${AT}/repos/repos#get-a-repository`,
  },
  "a route that is not mirrored": {
    path: "/gists",
    status: 403,
    message:
      "Forbidden: this mirror does not serve GET on this route, and so cannot say what is there. It asks the service for those who show a token of the service's own.",
    docs: AT,
  },
  "a diff, where nothing is forwarded": {
    at: () => closed,
    path: () => `${repo}/pulls/1`,
    asking: () => ({ headers: { accept: "application/vnd.github.diff" } }),
    status: 406,
    message: "This mirror holds no commits, and so serves no diff of a pull request",
    docs: `${AT}/pulls/pulls#get-a-pull-request`,
  },
  "an issue that was deleted": {
    path: () => `${repo}/issues/${deleted}`,
    status: 410,
    message: "This issue was deleted",
    docs: `${AT}/issues/issues#get-an-issue`,
  },
  "a body beyond all bounds": {
    method: "POST",
    path: () => `${repo}/issues`,
    asking: () => ({ body: JSON.stringify({ title: "x".repeat(5 * 1024 * 1024) }) }),
    status: 413,
    message: "Request body is too large",
    docs: AT,
    headers: { "x-ratelimit-limit": null },
  },
  "a media type that is not ours": {
    path: () => repo,
    asking: () => ({ headers: { accept: "text/csv" } }),
    status: 415,
    message: "Unsupported 'Accept' header: 'text/csv'. Must accept 'application/json'.",
    docs: `${AT}/using-the-rest-api/getting-started-with-the-rest-api#media-types`,
  },
  "a value that is none of those allowed": {
    path: () => `${repo}/issues?state=ajar`,
    status: 422,
    message: "Validation Failed",
    docs: "https://docs.github.com/v3/issues/#list-issues",
    errors: [{ value: "ajar", resource: "Issue", field: "state", code: "invalid" }],
  },
  "parameters that exclude each other": {
    path: "/user/repos?type=owner&visibility=public",
    status: 422,
    message: "If you specify visibility or affiliation, you cannot specify type.",
    docs: `${AT}/repos/repos#list-repositories-for-the-authenticated-user`,
  },
  "a page too deep": {
    path: () => `${repo}/issues?per_page=100&page=100`,
    status: 422,
    message:
      "Pagination with the page parameter is not supported for large datasets, please use cursor based pagination (after/before)",
    docs: `${AT}/issues/issues#list-repository-issues`,
  },
  "a database that is away": {
    path: () => repo,
    at: () => cut,
    status: 503,
    message: "Service Unavailable: the mirror's database cannot be reached",
    docs: AT,
    headers: { "retry-after": "5", "x-ratelimit-limit": null },
  },
};

test.each(Object.entries(cases))("%s", async (_name, wanted) => {
  const path = typeof wanted.path === "string" ? wanted.path : wanted.path();
  const asking = { token: world.token, ...wanted.asking?.() };
  const answer = await askAt(wanted.at?.() ?? world.url, wanted.method ?? "GET", path, asking);
  expect(answer.status, answer.text).toBe(wanted.status);
  const { message, ...rest } = answer.body;
  if (typeof wanted.message === "string") expect(message).toBe(wanted.message);
  else expect(message).toMatch(wanted.message);
  expect(rest).toEqual({
    ...(wanted.errors === undefined ? {} : { errors: wanted.errors }),
    documentation_url: wanted.docs,
    status: String(wanted.status),
  });
  const expected: Record<string, string | null | undefined> = {
    "content-type": "application/json; charset=utf-8",
    vary: "Accept-Encoding, Accept, X-Requested-With",
    etag: null,
    "cache-control": null,
    "last-modified": null,
    "access-control-allow-origin": "*",
    "x-content-type-options": "nosniff",
    ...wanted.headers,
  };
  for (const [name, value] of Object.entries(expected)) expect(answer.headers.get(name), name).toBe(value);
  expect(answer.headers.get("x-github-request-id")).toMatch(/^[0-9A-F:]{30,}$/);
  if (wanted.headers?.["x-ratelimit-limit"] !== null)
    expect(answer.headers.get("x-ratelimit-remaining")).toMatch(/^\d+$/);
});

test("without a User-Agent nothing is looked at: 403 in plain words", async () => {
  const answer = await world.get("/user", { token: null, headers: { "user-agent": "" } });
  expect(answer.status).toBe(403);
  expect(answer.text).toMatch(/^Request forbidden by administrative rules\./);
  expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
});
