import { createHmac } from "node:crypto";

/** One request of the fixed set. */
export interface Asked {
  method: string;
  path: string;
  headers?: Record<string, string>;
  body?: string;
  /** Instead of all this: what is written to the socket. */
  raw?: string;
}

/** What the set needs to know of the mirrored world. */
export interface Place {
  repository: { id: number; fullName: string };
  hidden: string;
  issue: number;
  pull: number;
  label: string;
  login: string;
  userId: number;
  tokens: { own: string; reading: string; upstreams: string };
  webhookSecret: string;
  operatorToken: string;
}

/** The host name of all requests, so that bodies and tags are the same wherever the server listens. */
export const HOST = "mirror.example";

/** Some five hundred requests, always the same. Those that change something come last. */
export function exchangeRequests(place: Place): Asked[] {
  return [
    ...reads(place),
    ...again(place),
    ...refusals(place),
    ...own(place),
    ...malformed(),
    ...queries(place),
    ...deliveries(place),
    ...writes(place),
  ];
}

const AGENT = { "User-Agent": "recorder", Accept: "application/vnd.github+json" };

function readPaths({ repository, issue, pull, label, login, userId }: Place): string[] {
  const repo = `/repos/${repository.fullName}`;
  const below = [
    "",
    "/issues",
    "/issues?state=all&per_page=5&page=2",
    "/issues?state=closed&sort=comments&direction=asc",
    `/issues/${issue}`,
    `/issues/${issue}/comments`,
    `/issues/${issue}/labels`,
    "/issues/comments?per_page=3",
    "/labels?per_page=100",
    `/labels/${encodeURIComponent(label)}`,
    "/milestones?state=all",
    "/pulls?state=all",
    `/pulls/${pull}`,
    `/pulls/${pull}/reviews`,
    "/pulls/comments",
    "/assignees",
    "/topics",
  ];
  return [
    ...["/", "/meta", "/versions", "/user", "/user/repos", `/users/${login}`, `/user/${userId}`],
    ...["/issues?filter=all", "/search/issues?q=is:issue", "/search/repositories?q=o"],
    ...below.map((path) => repo + path),
    ...["/issues", `/issues/${issue}`].map((path) => `/repositories/${repository.id}${path}`),
    ...["", "/", `${repo}/issues`, "/user"].map((path) => `/api/v3${path}`),
  ];
}

function reads(place: Place): Asked[] {
  const { own, reading, upstreams } = place.tokens;
  const bearer = { ...AGENT, Authorization: `Bearer ${own}` };
  const forms: [method: string, headers: Record<string, string>][] = [
    ["GET", bearer],
    ["GET", AGENT],
    ["GET", { ...AGENT, Authorization: `token ${reading}`, "Accept-Encoding": "gzip" }],
    ["GET", { ...AGENT, Authorization: `Bearer ${upstreams}`, "Accept-Encoding": "gzip, deflate, br" }],
    [
      "GET",
      { ...bearer, "X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "a.example" },
    ],
    ["GET", { ...bearer, Accept: "application/vnd.github.html+json", "X-GitHub-Api-Version": "2026-03-10" }],
    ["GET", { ...bearer, "User-Agent": "curl/8.5.0", Accept: "*/*" }],
    ["GET", { ...bearer, "If-None-Match": "*", "Accept-Encoding": "br" }],
    ["GET", { ...bearer, "If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT" }],
    ["HEAD", bearer],
    ["HEAD", { ...bearer, "Accept-Encoding": "gzip" }],
    ["OPTIONS", {}],
  ];
  return readPaths(place).flatMap((path) => forms.map(([method, headers]) => ({ method, path, headers })));
}

/** Requests that come so often that the answer is kept. */
function again(place: Place): Asked[] {
  const bearer = { ...AGENT, Authorization: `Bearer ${place.tokens.own}` };
  const forwarded = { "X-Forwarded-For": "203.0.113.9, 127.0.0.1", "X-Forwarded-Proto": "https" };
  const forms: Record<string, string>[] = [
    bearer,
    { ...bearer, "Accept-Encoding": "br" },
    { ...bearer, ...forwarded },
    { ...AGENT, ...forwarded },
    { ...bearer, "X-No-Compression": "1", "Accept-Encoding": "gzip" },
    { ...bearer, "Cache-Control": "no-cache", "If-None-Match": '"other"' },
  ];
  return [`/repos/${place.repository.fullName}/labels?per_page=50`, `/repos/${place.repository.fullName}/issues?page=1`]
    .flatMap((path) => forms.map((headers) => ({ method: "GET", path, headers })))
    .flatMap((asked) => [
      ...Array.from({ length: 4 }, () => asked),
      { ...asked, headers: { ...asked.headers, "If-None-Match": "*" } },
      { ...asked, method: "HEAD" },
    ]);
}

function refusals({ repository, hidden, tokens }: Place): Asked[] {
  const repo = `/repos/${repository.fullName}`;
  const bearer = { ...AGENT, Authorization: `Bearer ${tokens.own}` };
  const get = (path: string, headers: Record<string, string> = bearer): Asked => ({ method: "GET", path, headers });
  return [
    ...[
      "/nothing",
      "/repos/x",
      `${repo}/`,
      `${repo}/issues/`,
      `${repo}/actions/runs`,
      "/repos/no/body",
      "/api/v3/nope",
    ].map((path) => get(path)),
    ...[`/repos/${hidden}`, `/repos/${hidden}/issues`].map((path) => get(path, AGENT)),
    ...["99999", "one", "99999999999999999999"].map((number) => get(`${repo}/issues/${number}`)),
    ...["state=ajar", "sort=age", "since=yesterday", "milestone=999", "after=nonsense"].map((query) =>
      get(`${repo}/issues?${query}`),
    ),
    get(repo, { ...AGENT, Authorization: "Bearer tain_0000000000000000000000000000000000000000" }),
    get(repo, { ...AGENT, Authorization: "Digest abc" }),
    get(repo, { ...AGENT, Authorization: `Basic ${Buffer.from(`x:${tokens.own}`).toString("base64")}` }),
    get("/user", AGENT),
    get("/user", {}),
    get("/user", { ...bearer, "X-GitHub-Api-Version": "v3" }),
    get("/user", { ...bearer, Accept: "image/png" }),
    get(`${repo}/pulls/1`, { ...bearer, Accept: "application/vnd.github.diff" }),
    get("/user", { ...bearer, Host: 'evil"><script>' }),
    get("/user", { ...bearer, "Accept-Encoding": "rot13" }),
    get("/repos/a%E0/b"),
    get("/%E0%A4%A?x=1"),
    get(`${repo}/labels/%ZZ`),
    { method: "POST", path: `${repo}/labels/%ZZ`, headers: bearer },
    { method: "DELETE", path: repo, headers: bearer },
    { method: "PUT", path: "/zen", headers: bearer, body: "{}" },
    { method: "GET", path: "/graphql", headers: bearer },
    { method: "POST", path: `${repo}/issues`, headers: { ...bearer, "Content-Type": "json" }, body: "{}" },
    { method: "POST", path: `${repo}/issues`, headers: bearer, body: "x".repeat(5 * 1024 * 1024) },
    { method: "POST", path: `${repo}/issues`, headers: bearer, body: "{" },
    { method: "POST", path: `${repo}/issues`, headers: bearer, body: "[]" },
    { method: "POST", path: `${repo}/issues`, headers: AGENT, body: '{"title":"t"}' },
    {
      method: "POST",
      path: `${repo}/issues`,
      headers: { ...AGENT, Authorization: `Bearer ${tokens.reading}` },
      body: '{"title":"t"}',
    },
    // Upstream has it, and is asked with its own token.
    get(`${repo}/git/ref/heads/main`, { ...AGENT, Authorization: `Bearer ${tokens.upstreams}` }),
    get(`${repo}/git/ref/heads/main`),
  ];
}

/** Our own pages. */
function own({ operatorToken }: Place): Asked[] {
  const paths = ["/-/live", "/-/ready", "/-/status", "/-/docs", "/-/openapi.json", "/-/nothing", "/-/"];
  const forms: [method: string, headers: Record<string, string>][] = [
    ["GET", { ...AGENT, Host: "localhost" }],
    ["GET", { ...AGENT, "Accept-Encoding": "gzip" }],
    ["GET", { ...AGENT, Host: "localhost", "X-Forwarded-For": "203.0.113.9" }],
    ["GET", { ...AGENT, Authorization: `Bearer ${operatorToken}`, "X-Forwarded-For": "203.0.113.9" }],
    ["HEAD", AGENT],
    ["POST", AGENT],
    ["GET", { ...AGENT, "If-None-Match": "*" }],
  ];
  return paths.flatMap((path) => forms.map(([method, headers]) => ({ method, path, headers })));
}

/** Requests that break the rules of HTTP. */
function malformed(): Asked[] {
  const lines = [
    "GARBAGE\r\n\r\n",
    "GET / HTTP/9.9\r\nHost: x\r\n\r\n",
    "GET /user HTTP/1.1\r\n\r\n",
    "GET /user HTTP/1.1\r\nHost: x\r\nBad Header: y\r\n\r\n",
    `GET /user HTTP/1.1\r\nHost: x\r\nX-Long: ${"y".repeat(40_000)}\r\n\r\n`,
    "POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Length: many\r\n\r\n",
    "GET /zen HTTP/1.0\r\nUser-Agent: old\r\n\r\n",
    "GET /zen HTTP/1.1\r\nHost: mirror.example\r\nUser-Agent: t\r\nConnection: close\r\n\r\n",
    "TRACE /user HTTP/1.1\r\nHost: mirror.example\r\nUser-Agent: t\r\nConnection: close\r\n\r\n",
    "GET http://mirror.example/zen HTTP/1.1\r\nHost: mirror.example\r\nUser-Agent: t\r\nConnection: close\r\n\r\n",
  ];
  return lines.map((raw) => ({ method: "raw", path: raw.slice(0, 60), raw }));
}

function queries({ tokens, repository }: Place): Asked[] {
  const bearer = { ...AGENT, Authorization: `Bearer ${tokens.own}`, "Content-Type": "application/json" };
  const [owner, name] = repository.fullName.split("/");
  const issues = `query { repository(owner: "${owner}", name: "${name}") { issues(first: 30) { totalCount nodes { number title body } } } }`;
  const post = (body: string, headers: Record<string, string> = bearer, path = "/graphql"): Asked => ({
    method: "POST",
    path,
    headers,
    body,
  });
  const asks = (query: string, more: object = {}) => JSON.stringify({ query, ...more });
  return [
    ...Array.from({ length: 3 }, () => post(asks(issues))),
    post(asks(issues), { ...bearer, "Accept-Encoding": "gzip" }),
    post(asks(issues), { ...bearer, "Accept-Encoding": "br", "X-No-Compression": "1" }),
    post(asks(issues), bearer, "/api/graphql"),
    post(asks(issues), { ...bearer, "X-Forwarded-For": "203.0.113.9", "X-Forwarded-Host": "a.example" }),
    post(asks("{ viewer { login } rateLimit { cost limit nodeCount } }")),
    post(asks("{ rateLimit(dryRun: true) { cost } repository(owner: 1) { id } }")),
    post(asks('{ repository(owner: "no", name: "body") { id } }')),
    post(asks("{ nothing }")),
    post(asks("{")),
    post(asks("query A { viewer { login } } query B { viewer { id } }")),
    post(asks("query($n: Int!) { viewer { login } }", { variables: { n: "x" } })),
    post(asks("{ viewer { login } }", { variables: 1 })),
    post(asks("")),
    post("{"),
    post("[]"),
    post(""),
    post(asks("{ viewer { login } }"), { ...AGENT, "Content-Type": "application/json" }),
    post(asks("{ viewer { login } }"), { ...bearer, Authorization: "Bearer wrong" }),
    post(asks("{ viewer { login } }"), { ...bearer, "User-Agent": "" }),
    post(asks("{ viewer { login } }"), { ...bearer, "Content-Type": "json" }),
    post(asks('subscription { issueChanged(repositoryId: "x") { number } }')),
    post(asks('subscription { issueChanged(repositoryId: "x") { number } }'), {
      ...bearer,
      Accept: "text/event-stream",
    }),
    post(asks("{ __schema { types { name } } }"), { ...bearer, "Accept-Encoding": "gzip" }),
    post("x".repeat(5 * 1024 * 1024)),
  ];
}

function deliveries({ webhookSecret, repository }: Place): Asked[] {
  const payload = JSON.stringify({ action: "opened", issue: { id: 1 }, repository: { id: repository.id } });
  const sign = (body: string) => `sha256=${createHmac("sha256", webhookSecret).update(body).digest("hex")}`;
  const sent = (body: string, headers: Record<string, string | undefined> = {}, more: Partial<Asked> = {}): Asked => {
    const all = {
      "User-Agent": "GitHub-Hookshot/1",
      "Content-Type": "application/json",
      "X-GitHub-Event": "issues",
      "X-GitHub-Delivery": "5f3a9c01-0000-4000-8000-000000000001",
      "X-GitHub-Hook-ID": "1",
      "X-Hub-Signature-256": sign(body),
      ...headers,
    };
    const kept = Object.entries(all).filter((one): one is [string, string] => one[1] !== undefined);
    return { method: "POST", path: "/webhooks", headers: Object.fromEntries(kept), body, ...more };
  };
  const form = new URLSearchParams({ payload }).toString();
  return [
    sent(payload),
    sent(payload),
    sent(payload, { "X-GitHub-Delivery": "5f3a9c01-0000-4000-8000-000000000002" }, { path: "/webhooks?hook=2" }),
    sent(payload, { "X-GitHub-Delivery": "5f3a9c01-0000-4000-8000-000000000003", "X-Forwarded-For": "203.0.113.9" }),
    sent(form, {
      "X-GitHub-Delivery": "5f3a9c01-0000-4000-8000-000000000004",
      "Content-Type": "application/x-www-form-urlencoded",
    }),
    sent(payload, { "X-Hub-Signature-256": undefined }),
    sent(payload, { "X-Hub-Signature-256": "sha1=ab" }),
    sent(payload, { "X-Hub-Signature-256": sign("other") }),
    sent(""),
    sent("[]"),
    sent("{"),
    sent("data={}", { "Content-Type": "application/x-www-form-urlencoded" }),
    sent(payload, { "Content-Type": "text/plain" }),
    sent(payload, { "Content-Type": "json" }),
    sent(payload, { "Content-Type": "application/json; charset=latin1" }),
    sent(payload, { "Content-Encoding": "gzip" }),
    sent(payload, { "X-GitHub-Event": undefined }),
    sent(payload, { "X-GitHub-Event": "Issues!" }),
    sent(payload, { "X-GitHub-Delivery": "short" }),
    sent(payload, { "X-GitHub-Hook-ID": "one" }),
    sent("x".repeat(26 * 1024 * 1024)),
    ...["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"].map((method) => ({
      method,
      path: "/webhooks",
      headers: { "User-Agent": "recorder" },
    })),
    { method: "POST", path: "/webhooks/", headers: AGENT },
  ];
}

function writes({ repository, issue, tokens }: Place): Asked[] {
  const repo = `/repos/${repository.fullName}`;
  const bearer = { ...AGENT, Authorization: `Bearer ${tokens.own}`, "Content-Type": "application/json" };
  const sent = (method: string, path: string, body?: object, headers = bearer): Asked => ({
    method,
    path: repo + path,
    headers,
    ...(body && { body: JSON.stringify(body) }),
  });
  const upstreams = { ...bearer, Authorization: `Bearer ${tokens.upstreams}` };
  return [
    sent("POST", "/issues", { title: "By the recorder", body: "**bold**", labels: [] }),
    sent("POST", "/issues", { title: "By an upstream token" }, upstreams),
    sent("POST", "/issues", {}),
    sent("PATCH", `/issues/${issue}`, { state: "closed" }),
    sent("PATCH", `/issues/${issue}`, { state: "ajar" }),
    sent("POST", `/issues/${issue}/comments`, { body: "A comment" }, { ...bearer, "User-Agent": "curl/8.5.0" }),
    sent("POST", `/issues/${issue}/labels`, { labels: ["bug"] }),
    sent("PUT", `/issues/${issue}/lock`, { lock_reason: "resolved" }),
    sent("DELETE", `/issues/${issue}/lock`),
    sent("POST", "/labels", { name: "recorded", color: "ff0000" }),
    sent("DELETE", "/labels/recorded"),
    sent("GET", `/issues/${issue}/comments`),
    sent("GET", "/issues?state=all&per_page=3"),
  ];
}
