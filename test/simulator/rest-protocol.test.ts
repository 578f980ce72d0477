import { createHash } from "node:crypto";
import { request } from "node:http";
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { createComment } from "../../src/simulator/changes/comments.ts";
import { editIssue } from "../../src/simulator/changes/issues.ts";
import { editLabel } from "../../src/simulator/changes/labels.ts";
import { renameRepository, setVisibility } from "../../src/simulator/changes/repositories.ts";
import { openSimulated, START, TOKEN } from "./simulated.ts";

/** The answer as it is on the wire. `fetch` would hide encodings and set headers of its own. */
async function raw(url: string, headers: Record<string, string>, method = "GET") {
  return await new Promise<{
    status: number;
    headers: NodeJS.Dict<string | string[]>;
    rawHeaders: string[];
    body: Buffer;
  }>((resolve, reject) => {
    const sent = request(url, { method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          rawHeaders: response.rawHeaders,
          body: Buffer.concat(chunks),
        }),
      );
    });
    sent.on("error", reject);
    sent.end();
  });
}

test("without a user agent the answer is 403 in plain text, before anything else", async () => {
  await using it = await openSimulated();
  const reply = await raw(`${it.simulator.url}/nothing/here`, { "x-github-api-version": "v3" });
  expect(reply.status).toBe(403);
  expect(reply.headers["content-type"]).toBe("text/html");
  expect(reply.body.toString().trim()).toMatch(/^Request forbidden by administrative rules/);
});

test("an unsupported version is 400 before all else but a token that is none", async () => {
  await using it = await openSimulated();
  const headers = { "x-github-api-version": "v3" };
  expect((await it.get("/repos/octo/demo", { headers, token: "wrong" })).status).toBe(401);
  const reply = await it.get("/user", { headers, token: null });
  expect(reply.status).toBe(400);
  expect(reply.body.errors).toBe(
    'The version you specified in the "X-GitHub-API-Version" request header, "v3", is not a supported version. The following versions are currently supported: "2026-03-10" (most recent) and "2022-11-28".',
  );
  expect((await it.get("/versions")).body).toEqual(["2022-11-28", "2026-03-10"]);
});

test("a route that there is not is 404 before a credential that is none, and before the version", async () => {
  await using it = await openSimulated();
  const headers = { "x-github-api-version": "v3" };
  for (const token of ["wrong", null]) {
    const reply = await it.get("/nothing/here", { headers, token });
    expect(reply.status).toBe(404);
    expect(reply.headers.has("x-github-api-version-selected")).toBe(false);
    expect(reply.headers.has("x-ratelimit-limit")).toBe(token === null);
  }
  expect((await it.get("/rate_limit", { headers, token: null })).status).toBe(200);
  expect((await it.get("/rate_limit", { headers })).status).toBe(400);
});

test("the new version drops assignee, merge_commit_sha, has_downloads and rate", async () => {
  await using it = await openSimulated();
  it.issue();
  await it.control("POST", "/-/mutate", {
    op: "createPull",
    repository: "octo/demo",
    head: "topic",
    title: "A pull request",
  });
  const headers = { "x-github-api-version": "2026-03-10" };
  for (const [path, key] of [
    ["/repos/octo/demo/issues/1", "assignee"],
    ["/repos/octo/demo/pulls/2", "assignee"],
    ["/repos/octo/demo/pulls/2", "merge_commit_sha"],
    ["/repos/octo/demo", "has_downloads"],
    ["/rate_limit", "rate"],
    ["/", "hub_url"],
  ] as const) {
    expect((await it.get(path)).body, path).toHaveProperty(key);
    const newer = await it.get(path, { headers });
    expect(newer.body, path).not.toHaveProperty(key);
    expect(newer.headers.get("x-github-api-version-selected")).toBe("2026-03-10");
  }
});

test("writes of issues in the old version announce their end, with a Link that is no page", async () => {
  await using it = await openSimulated();
  const old = await it.ask("POST", "/repos/octo/demo/issues", { body: { title: "t" } });
  expect(old.headers.get("deprecation")).toBe("Tue, 10 Mar 2026 00:00:00 GMT");
  expect(old.headers.get("sunset")).toBe("Fri, 10 Mar 2028 00:00:00 GMT");
  expect(old.headers.get("link")).toBe(
    '<https://docs.github.com/en/rest/about-the-rest-api/api-versions>; rel="deprecation"; type="text/html"',
  );
  const headers = { "x-github-api-version": "2026-03-10" };
  expect(
    (await it.ask("POST", "/repos/octo/demo/issues", { body: { title: "t" }, headers })).headers.has("deprecation"),
  ).toBe(false);
  expect((await it.get("/repos/octo/demo")).headers.has("deprecation")).toBe(false);
});

test("every form of a credential is accepted, a wrong one is 401, none is anonymous", async () => {
  await using it = await openSimulated();
  const basic = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`;
  for (const authorization of [
    `Bearer ${TOKEN}`,
    `token ${TOKEN}`,
    `bearer ${TOKEN}`,
    basic(`octo:${TOKEN}`),
    basic(`${TOKEN}:x-oauth-basic`),
  ]) {
    const reply = await it.get("/user", { headers: { authorization }, token: null });
    expect([authorization, reply.status, reply.body.login]).toEqual([authorization, 200, "octo"]);
  }
  for (const authorization of ["Bearer nobodys", basic("octo:password"), "Bearer"]) {
    const reply = await it.get("/repos/octo/demo", { headers: { authorization }, token: null });
    expect(reply).toMatchObject({ status: 401, body: { message: "Bad credentials", status: "401" } });
  }
  expect(await it.get("/user", { token: null })).toMatchObject({
    status: 401,
    body: { message: "Requires authentication" },
  });
  expect((await it.get("/repos/octo/demo", { token: null })).status).toBe(200);
  for (const authorization of ["Digest x", "ghp_without-a-scheme"]) {
    const headers = { authorization };
    expect((await it.get("/repos/octo/demo", { headers, token: null })).status).toBe(200);
    expect((await it.get("/user", { headers, token: null })).body.message).toBe("Requires authentication");
  }
});

test("an expired token is as good as none", async () => {
  await using it = await openSimulated();
  await it.control("POST", "/-/tokens", { token: "ghp_short", login: "octo", expiresAt: START + 1_000 });
  expect((await it.get("/user", { token: "ghp_short" })).headers.get("github-authentication-token-expiration")).toBe(
    "2026-10-01 12:00:01 UTC",
  );
  it.clock.advance(1_000);
  expect((await it.get("/user", { token: "ghp_short" })).status).toBe(401);
});

test("what a token may not see is 404, what it may not do is 403", async () => {
  await using it = await openSimulated();
  const { world } = it.simulator;
  setVisibility(world, it.owner.id, it.repository, "private");
  it.issue();
  await it.control("POST", "/-/tokens", { token: "stranger", login: "eve" });
  await it.control("POST", "/-/tokens", {
    token: "reader",
    login: "bob",
    repositories: ["octo/demo"],
    write: false,
    kind: "fine-grained",
  });
  for (const path of [
    "/repos/octo/demo",
    "/repos/octo/demo/issues",
    "/repos/octo/demo/issues/1",
    `/repositories/${it.repository.id}`,
  ]) {
    for (const token of ["stranger", null]) {
      expect(await it.get(path, { token })).toMatchObject({
        status: 404,
        body: { message: "Not Found", status: "404" },
      });
    }
    expect((await it.get(path, { token: "reader" })).status).toBe(200);
  }
  const refused = await it.ask("POST", "/repos/octo/demo/issues", { token: "reader", body: { title: "t" } });
  expect(refused).toMatchObject({ status: 403, body: { message: "Resource not accessible by personal access token" } });
  expect((await it.ask("POST", "/repos/octo/demo/labels", { token: "stranger", body: { name: "x" } })).status).toBe(
    404,
  );
});

test("unknown routes and trailing slashes are 404", async () => {
  await using it = await openSimulated();
  expect((await it.get("/nothing")).body).toEqual({
    message: "Not Found",
    documentation_url: "https://docs.github.com/rest",
    status: "404",
  });
  expect((await it.get("/repos/octo/demo/")).status).toBe(404);
  expect((await it.get("/repos/octo/demo/issues/abc")).status).toBe(404);
  expect((await it.get("/repos/octo/demo/issues/7")).body.documentation_url).toBe(
    "https://docs.github.com/rest/issues/issues#get-an-issue",
  );
});

test("bodies that are no JSON objects are 400", async () => {
  await using it = await openSimulated();
  const post = (body: string) => it.ask("POST", "/repos/octo/demo/issues", { body });
  expect(await post('{"title":')).toMatchObject({ status: 400, body: { message: "Problems parsing JSON" } });
  expect(await post('["title"]')).toMatchObject({ status: 400, body: { message: "Body should be a JSON object" } });
  expect(await post('{"body":"b"}')).toMatchObject({
    status: 422,
    body: { message: 'Invalid request.\n\n"title" wasn\'t supplied.' },
  });
});

test("the ETag is the SHA-256 of the signed headers and the body, weak when compressed", async () => {
  await using it = await openSimulated();
  it.issue();
  const url = `${it.simulator.url}/repos/octo/demo/issues/1`;
  const headers = { "user-agent": "tests", accept: "application/vnd.github+json", authorization: `token ${TOKEN}` };
  const plain = await raw(url, headers);
  const expected = createHash("sha256")
    .update(`${headers.accept}:${headers.authorization}:`)
    .update(plain.body)
    .digest("hex");
  expect(plain.headers.etag).toBe(`"${expected}"`);
  const zipped = await raw(url, { ...headers, "accept-encoding": "gzip" });
  expect(zipped.headers.etag).toBe(`W/"${expected}"`);
  expect(gunzipSync(zipped.body)).toEqual(plain.body);
  const anonymous = await raw(url, { "user-agent": "tests", accept: headers.accept });
  expect(anonymous.headers.etag).toBe(
    `"${createHash("sha256").update(`${headers.accept}:`).update(anonymous.body).digest("hex")}"`,
  );
  const pretty = await raw(url, { ...headers, "user-agent": "curl/8" });
  expect(pretty.headers.etag).toBe(`"${expected}"`);
  expect(pretty.body.length).toBeGreaterThan(plain.body.length);
});

test("an empty list is never compressed, so its tag is strong", async () => {
  await using it = await openSimulated();
  const reply = await raw(`${it.simulator.url}/repos/octo/demo/labels`, {
    "user-agent": "t",
    "accept-encoding": "gzip",
  });
  expect(reply.body.toString()).toBe("[]");
  expect(reply.headers.etag).toMatch(/^"/);
});

test("a 304 is free for a token and costs without one; the tag of one token is no good for another", async () => {
  await using it = await openSimulated();
  it.issue();
  await it.control("POST", "/-/tokens", { token: "second", login: "octo" });
  const path = "/repos/octo/demo/issues";
  const first = await it.get(path);
  const etag = first.headers.get("etag") ?? "";
  for (const tag of [etag, etag.replace("W/", ""), `"other", ${etag}`]) {
    const again = await it.get(path, { headers: { "if-none-match": tag } });
    expect([again.status, again.text]).toEqual([304, ""]);
    expect(again.headers.get("x-ratelimit-used")).toBe(first.headers.get("x-ratelimit-used"));
  }
  expect((await it.get(path, { token: "second", headers: { "if-none-match": etag } })).status).toBe(200);

  const open = await it.get(path, { token: null });
  const again = await it.get(path, { token: null, headers: { "if-none-match": open.headers.get("etag") ?? "" } });
  expect(again.status).toBe(304);
  expect(Number(again.headers.get("x-ratelimit-used"))).toBe(Number(open.headers.get("x-ratelimit-used")) + 1);
});

test("Last-Modified stands on single resources only, and answers If-Modified-Since", async () => {
  await using it = await openSimulated();
  const { world } = it.simulator;
  const issue = it.issue();
  createComment(world, it.owner.id, issue, "a comment");
  await it.control("POST", "/-/mutate", { op: "createLabel", repository: "octo/demo", name: "bug" });
  const single = await it.get("/repos/octo/demo/issues/1");
  expect(single.headers.get("last-modified")).toBe("Thu, 01 Oct 2026 12:00:00 GMT");
  for (const path of ["/repos/octo/demo", "/user", "/users/octo", "/repos/octo/demo/labels/bug"]) {
    expect((await it.get(path)).headers.has("last-modified"), path).toBe(true);
  }
  for (const path of [
    "/repos/octo/demo/issues",
    "/repos/octo/demo/issues/1/comments",
    "/repos/octo/demo/labels",
    "/user/repos",
  ]) {
    expect((await it.get(path)).headers.has("last-modified"), path).toBe(false);
  }
  const since = { "if-modified-since": "Thu, 01 Oct 2026 12:00:00 GMT" };
  expect((await it.get("/repos/octo/demo/issues/1", { headers: since })).status).toBe(304);
  expect((await it.get("/repos/octo/demo/issues", { headers: since })).status).toBe(200);
  // With `If-None-Match` the date does not count.
  expect((await it.get("/repos/octo/demo/issues/1", { headers: { ...since, "if-none-match": '"x"' } })).status).toBe(
    200,
  );
  it.clock.advance(1_000);
  editIssue(world, it.owner.id, issue, { title: "new" });
  expect((await it.get("/repos/octo/demo/issues/1", { headers: since })).status).toBe(200);
});

test("a nested label that changes later moves Last-Modified, not updated_at", async () => {
  await using it = await openSimulated();
  await it.ask("POST", "/repos/octo/demo/issues", { body: { title: "t", labels: ["bug"] } });
  const { world } = it.simulator;
  const label = world.labelByName(it.repository, "bug");
  it.clock.advance(5_000);
  if (label) editLabel(world, it.owner.id, label, { color: "ff0000" });
  const reply = await it.get("/repos/octo/demo/issues/1");
  expect(reply.body.updated_at).toBe("2026-10-01T12:00:00Z");
  expect(reply.body.labels[0].color).toBe("ff0000");
  expect(reply.headers.get("last-modified")).toBe("Thu, 01 Oct 2026 12:00:05 GMT");
});

test("answers carry the service's headers, fewer when they are errors or empty", async () => {
  await using it = await openSimulated();
  const reply = await raw(`${it.simulator.url}/repos/octo/demo`, {
    "user-agent": "t",
    authorization: `token ${TOKEN}`,
  });
  expect(reply.headers).toMatchObject({
    server: "github.com",
    date: "Thu, 01 Oct 2026 12:00:00 GMT",
    "content-type": "application/json; charset=utf-8",
    "cache-control": "private, max-age=60, s-maxage=60",
    "x-github-media-type": "github.v3; format=json",
    "x-oauth-scopes": "repo, user",
    "x-ratelimit-limit": "5000",
    "x-ratelimit-resource": "core",
    "access-control-allow-origin": "*",
    "x-frame-options": "deny",
  });
  const varies = reply.rawHeaders.filter((_, at, all) => all[at - 1]?.toLowerCase() === "vary");
  expect(varies).toEqual(["Accept, Authorization, Cookie, X-GitHub-OTP", "Accept-Encoding, Accept, X-Requested-With"]);
  const missing = await it.get("/repos/octo/nope");
  expect([missing.headers.has("etag"), missing.headers.has("cache-control")]).toEqual([false, false]);
  expect(missing.headers.get("vary")).toBe("Accept-Encoding, Accept, X-Requested-With");
  expect(missing.headers.has("x-ratelimit-remaining")).toBe(true);
  const made = await it.ask("POST", "/repos/octo/demo/issues", { body: { title: "t" } });
  expect(made.headers.get("location")).toBe(made.body.url);
  expect(made.headers.has("etag")).toBe(true);
});

test("HEAD is GET without a body; OPTIONS is a preflight", async () => {
  await using it = await openSimulated();
  const head = await it.ask("HEAD", "/user");
  const get = await it.get("/user");
  expect([head.status, head.text, head.headers.get("etag")]).toEqual([200, "", get.headers.get("etag")]);
  const options = await it.ask("OPTIONS", "/repos/octo/demo");
  expect(options.status).toBe(204);
  expect(options.headers.get("access-control-allow-methods")).toBe("GET, POST, PATCH, PUT, DELETE");
});

test("the interface also stands below /api/v3, with addresses that stay there", async () => {
  await using it = await openSimulated();
  it.issue();
  const reply = await it.get("/api/v3/repos/octo/demo/issues?per_page=1");
  expect(reply.body[0].url).toBe(`${it.simulator.url}/api/v3/repos/octo/demo/issues/1`);
  const graphql = await it.ask("POST", "/api/graphql", { body: { query: "{ viewer { login } }" } });
  expect(graphql.body).toEqual({ data: { viewer: { login: "octo" } } });
});

test("media types choose the fields of bodies", async () => {
  await using it = await openSimulated();
  await it.ask("POST", "/repos/octo/demo/issues", { body: { title: "t", body: "**bold** <b>" } });
  const get = (kind: string) =>
    it.get("/repos/octo/demo/issues/1", { headers: { accept: `application/vnd.github.${kind}+json` } });
  expect((await get("raw")).body).toMatchObject({ body: "**bold** <b>" });
  const html = (await get("html")).body;
  expect(html).not.toHaveProperty("body");
  expect(html.body_html).toBe('<p dir="auto">**bold** &lt;b&gt;</p>');
  expect(
    Object.keys((await get("full")).body)
      .filter((key) => key.startsWith("body"))
      .sort(),
  ).toEqual(["body", "body_html", "body_text"]);
});

test("old names redirect to the numeric id: 301 for reads, 307 for writes", async () => {
  await using it = await openSimulated();
  const { world, url } = it.simulator;
  const issue = it.issue();
  renameRepository(world, it.owner.id, it.repository, "renamed");
  const read = await it.get("/repos/octo/demo/issues/1");
  const location = `${url}/repositories/${it.repository.id}/issues/${issue.number}`;
  expect(read.status).toBe(301);
  expect(read.headers.get("location")).toBe(location);
  expect(read.headers.has("etag")).toBe(false);
  expect(read.body).toEqual({
    message: "Moved Permanently",
    url: location,
    documentation_url: "https://docs.github.com/rest/guides/best-practices-for-using-the-rest-api#follow-redirects",
  });
  const write = await it.ask("PATCH", "/repos/octo/demo/issues/1", { body: { title: "new" } });
  expect([write.status, write.headers.get("location")]).toEqual([307, location]);
  expect((await it.get(location)).body.url).toBe(`${url}/repos/octo/renamed/issues/1`);
  world.addRepository({ ownerId: it.owner.id, name: "demo" });
  expect((await it.get("/repos/octo/demo")).status).toBe(200);
});

test("a repository that was taken down says so: 451 for copyright, 403 for the terms", async () => {
  await using it = await openSimulated();
  it.issue();
  for (const [reason, status] of [
    ["dmca", 451],
    ["tos", 403],
  ] as const) {
    await it.control("POST", "/-/mutate", { op: "blockRepository", repository: "octo/demo", reason });
    for (const path of ["/repos/octo/demo", "/repos/octo/demo/issues/1"]) {
      expect(await it.get(path)).toMatchObject({
        status,
        body: { message: "Repository access blocked", block: { reason } },
      });
    }
  }
  await it.control("POST", "/-/mutate", { op: "blockRepository", repository: "octo/demo" });
  expect((await it.get("/repos/octo/demo")).status).toBe(200);
});

test("a repository that became private does not give away its new name", async () => {
  await using it = await openSimulated();
  renameRepository(it.simulator.world, it.owner.id, it.repository, "secret");
  setVisibility(it.simulator.world, it.owner.id, it.repository, "private");
  expect((await it.get("/repos/octo/demo", { token: null })).status).toBe(404);
});
