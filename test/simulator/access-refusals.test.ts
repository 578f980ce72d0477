import { expect, test } from "vitest";
import { openAccessWorld } from "./access-world.ts";

const INTEGRATION = "Resource not accessible by integration";
const PERSONAL = "Resource not accessible by personal access token";

test("a refusal names the kind of token, and the permission that would have done", async () => {
  await using it = await openAccessWorld();
  const fine = { kind: "fine-grained", owner: "acme", permissions: {} } as const;
  const actions = {
    kind: "actions",
    login: "github-actions[bot]",
    permissions: {},
    repositories: ["acme/closed"],
  } as const;
  for (const [token, message] of [
    [await it.token(fine), PERSONAL],
    [await it.token(actions), INTEGRATION],
    [it.installed({ metadata: "read" }), INTEGRATION],
    [await it.ofUser("octo", {}), INTEGRATION],
  ] as const) {
    for (const [path, permission] of [
      ["/issues", "issues=read"],
      ["/issues/1", "issues=read"],
      ["/pulls/2", "pull_requests=read"],
      ["/issues/comments", "issues=read; pull_requests=read"],
      ["/labels", "issues=read; pull_requests=read"],
      ["/hooks", "repository_hooks=read"],
      ["/git/ref/heads/main", "contents=read"],
    ]) {
      const { status, body, headers } = await it.get(`/repos/acme/closed${path}`, { token });
      expect([status, body.message, body.status], path).toEqual([403, message, "403"]);
      expect(headers.get("x-accepted-github-permissions"), path).toBe(permission);
      expect(headers.get("x-oauth-scopes") || null, path).toBeNull();
    }
    expect((await it.get("/repos/eve/closed/issues", { token })).body.message).toBe("Not Found");
  }
});

test("fine-grained tokens hear what a route takes with every answer, classic ones their scopes, Apps neither", async () => {
  await using it = await openAccessWorld();
  const told = async (token: string | null, path: string) => {
    const { headers } = await it.get(path, { token });
    return ["x-accepted-github-permissions", "x-oauth-scopes", "x-accepted-oauth-scopes"].map((name) =>
      headers.get(name),
    );
  };
  const fine = await it.token({ kind: "fine-grained", owner: "acme", permissions: { issues: "read" } });
  expect(await told(fine, "/repos/acme/closed")).toEqual(["metadata=read", null, null]);
  expect(await told(fine, "/repos/acme/closed/issues")).toEqual(["issues=read", null, null]);
  expect(await told(fine, "/repos/eve/closed/pulls/2")).toEqual(["pull_requests=read", null, null]);
  expect(await told(fine, "/user")).toEqual(["allows_permissionless_access=true", null, null]);
  expect(await told(fine, "/orgs/acme/repos")).toEqual(["metadata=read", null, null]);
  const classic = await it.token({ scopes: ["public_repo", "read:org"] });
  expect(await told(classic, "/repos/acme/open/issues")).toEqual([null, "public_repo, read:org", "repo"]);
  expect(await told(classic, "/repos/acme/open/pulls")).toEqual([null, "public_repo, read:org", ""]);
  expect(await told(classic, "/repos/acme/open/hooks")).toEqual([
    null,
    "public_repo, read:org",
    "admin:repo_hook, public_repo, read:repo_hook, repo, write:repo_hook",
  ]);
  expect(await told(await it.ofUser("octo", {}), "/repos/acme/open/issues")).toEqual([null, "", ""]);
  const none = [null, null, null];
  expect(await told(it.installed({ issues: "read" }), "/repos/acme/closed/issues")).toEqual(none);
  expect(await told(null, "/repos/acme/open/issues")).toEqual(none);
  expect(await told("ghp_unknown", "/repos/acme/open/issues")).toEqual(none);
});

test("a refused GraphQL field is null with its path; a non-null one takes its repository along", async () => {
  await using it = await openAccessWorld();
  const query = `{
    counted: repository(owner: "acme", name: "closed") { name issues(first: 0) { totalCount } }
    single: repository(owner: "acme", name: "closed") { name pullRequest(number: 2) { id } milestones { totalCount } }
  }`;
  const fine = await it.token({ kind: "fine-grained", owner: "acme", permissions: {} });
  for (const [token, message] of [
    [fine, PERSONAL],
    [it.installed({ metadata: "read" }), INTEGRATION],
  ] as const) {
    const { data, errors = [] } = await it.graphql(token, query);
    expect(data).toEqual({ counted: null, single: { name: "closed", pullRequest: null, milestones: null } });
    const refused = { type: "FORBIDDEN", extensions: { saml_failure: false }, message };
    expect(errors).toEqual(
      expect.arrayContaining([
        { ...refused, path: ["counted", "issues"], locations: [expect.anything()] },
        { ...refused, path: ["single", "pullRequest"], locations: [expect.anything()] },
        { ...refused, path: ["single", "milestones"], locations: [expect.anything()] },
      ]),
    );
    expect(errors).toHaveLength(3);
  }
});

test("viewerPermission is the account's role, and null for Apps and Actions", async () => {
  await using it = await openAccessWorld();
  const asked = async (token: string) => {
    const { data } = await it.graphql(token, '{ repository(owner: "acme", name: "closed") { viewerPermission } }');
    return data.repository.viewerPermission;
  };
  const permissions = { contents: "read" } as const;
  expect(await asked(await it.token({}))).toBe("ADMIN");
  expect(await asked(await it.token({ kind: "fine-grained", owner: "acme", permissions }))).toBe("ADMIN");
  const actions = {
    kind: "actions",
    login: "github-actions[bot]",
    permissions,
    repositories: ["acme/closed"],
  } as const;
  expect(await asked(await it.token(actions))).toBeNull();
  expect(await asked(it.installed({ contents: "write" }))).toBeNull();
  expect(await asked(await it.ofUser("octo", permissions))).toBe("ADMIN");
});

test("with issues alone a pull request takes no comment, in REST or GraphQL; an issue does", async () => {
  await using it = await openAccessWorld();
  const fine = { kind: "fine-grained", owner: "acme", permissions: { issues: "write", metadata: "read" } } as const;
  const addComment = 'mutation ($id: ID!) { addComment(input: { subjectId: $id, body: "b" }) { subject { id } } }';
  const [issue, pull] = it.places["acme/closed"].nodeIds;
  for (const [token, message] of [
    [await it.token(fine), PERSONAL],
    [it.installed({ issues: "write" }), INTEGRATION],
  ] as const) {
    const comment = (number: number) =>
      it.ask("POST", `/repos/acme/closed/issues/${number}/comments`, { token, body: { body: "b" } });
    expect((await comment(1)).status).toBe(201);
    const refused = await comment(2);
    expect([refused.status, refused.body.message]).toEqual([403, message]);
    expect(refused.headers.get("x-accepted-github-permissions")).toBe("issues=write; pull_requests=write");
    expect((await it.graphql(token, addComment, { id: issue })).errors).toBeUndefined();
    expect((await it.graphql(token, addComment, { id: pull })).errors).toMatchObject([{ type: "FORBIDDEN", message }]);
  }
  expect(it.places["acme/closed"].pull.thread).toHaveLength(1);
});

test("a token writes within its scopes and permissions, however much its account may do", async () => {
  await using it = await openAccessWorld();
  const post = async (token: string, name: string) =>
    (await it.ask("POST", `/repos/${name}/issues`, { token, body: { title: "t" } })).status;
  const publicly = await it.token({ scopes: ["public_repo"] });
  expect([await post(publicly, "acme/open"), await post(publicly, "acme/closed")]).toEqual([201, 404]);
  const reader = await it.token({ scopes: [] });
  expect([await post(reader, "acme/open"), await post(reader, "acme/closed")]).toEqual([404, 404]);
  const fine = await it.token({ kind: "fine-grained", owner: "acme", permissions: { issues: "write" } });
  // A token may only read public repositories of other accounts.
  expect([await post(fine, "acme/closed"), await post(fine, "eve/open")]).toEqual([201, 403]);
  const outside = await it.token({
    kind: "fine-grained",
    permissions: { issues: "write" },
    repositories: ["acme/closed"],
  });
  expect([await post(outside, "acme/closed"), await post(outside, "acme/open")]).toEqual([201, 403]);
  const made = await it.ask("POST", "/user/repos", { token: fine, body: { name: "n" } });
  expect([made.status, made.body.message]).toEqual([403, PERSONAL]);
});

test("an Actions token is nobody's", async () => {
  await using it = await openAccessWorld();
  const permissions = { issues: "write" } as const;
  const token = await it.token({ kind: "actions", login: "bot", permissions, repositories: ["acme/closed"] });
  expect(token).toMatch(/^ghs_/);
  for (const path of ["/user", "/user/repos"]) {
    const { status, body } = await it.get(path, { token });
    expect([status, body.message], path).toEqual([403, INTEGRATION]);
  }
});

test.each([
  ["an Actions token without permissions", { kind: "actions", repositories: ["acme/open"] }],
  [
    "an Actions token for two repositories",
    { kind: "actions", permissions: {}, repositories: ["acme/open", "acme/closed"] },
  ],
  ["permissions of a classic token", { permissions: { issues: "read" } }],
  ["a level that nobody has", { kind: "fine-grained", permissions: { issues: "some" } }],
  ["a permission as workflows write it", { kind: "fine-grained", permissions: { "pull-requests": "read" } }],
  ["repositories of two owners", { kind: "fine-grained", permissions: {}, repositories: ["acme/open", "eve/open"] }],
  ["a user's token of no App", { kind: "app-user" }],
  ["an owner that does not exist", { kind: "fine-grained", owner: "nobody-here", permissions: {} }],
])("the control interface refuses to make %s", async (_what, input) => {
  await using it = await openAccessWorld();
  expect((await it.control("POST", "/-/tokens", { login: "octo", ...input })).status).toBe(400);
});
