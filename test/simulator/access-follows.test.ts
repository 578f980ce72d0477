import { expect, test } from "vitest";
import { transferIssue } from "../../src/simulator/changes/issues.ts";
import {
  deleteRepository,
  renameRepository,
  setVisibility,
  transferRepository,
} from "../../src/simulator/changes/repositories.ts";
import { type AccessWorld, openAccessWorld } from "./access-world.ts";

const CODE = {
  checks: "none",
  statuses: "none",
  contents: "none",
  deployments: "none",
  actions: "none",
  drafts: false,
};
const NOTHING = { ...CODE, metadata: false, issues: "none", pulls: "none" };
const ISSUES = { ...CODE, metadata: true, issues: "read", pulls: "none" };
const ALL_READ = {
  metadata: true,
  issues: "read",
  pulls: "read",
  checks: "read",
  statuses: "read",
  contents: "read",
  deployments: "read",
  actions: "read",
  drafts: false,
};

/**
 * What each way of asking tells about the repository that is now at `name`: the oracle, REST, GraphQL by name and by
 * id, and search.
 */
async function seen(it: AccessWorld, token: string, name: string, nodeId = "") {
  const [owner, repository] = name.split("/");
  const query = `query ($owner: String!, $name: String!, $id: ID!, $text: String!) {
    repository(owner: $owner, name: $name, followRenames: false) { issue(number: 1) { number } }
    node(id: $id) { __typename }
    search(type: ISSUE, query: $text) { issueCount }
  }`;
  const variables = { owner, name: repository, id: nodeId, text: `repo:${name}` };
  const { data } = await it.graphql(token, query, variables);
  const status = async (path: string) => (await it.get(`/repos/${name}${path}`, { token })).status;
  return {
    access: (await it.control("GET", `/-/access?repository=${name}&token=${token}`)).body,
    rest: [await status("/issues/1"), await status("/pulls/2")],
    graphql: [data.repository?.issue?.number ?? null, data.node?.__typename ?? null, data.search.issueCount],
  };
}

const GONE = { access: NOTHING, rest: [404, 404], graphql: [null, null, 0] };

test("a repository made private closes at once, also where a lagging replica still shows it as public", async () => {
  await using it = await openAccessWorld();
  const { repository, nodeIds } = it.places["eve/open"];
  const token = await it.token({ kind: "fine-grained", owner: "acme", permissions: { issues: "read" } });
  const open = { access: ALL_READ, rest: [200, 200], graphql: [1, "Issue", 2] };
  expect(await seen(it, token, "eve/open", nodeIds[0])).toEqual(open);
  it.simulator.setFaults({ lagMs: 60_000 });
  setVisibility(it.simulator.world, repository.ownerId, repository, "private");
  expect(await seen(it, token, "eve/open", nodeIds[0])).toEqual(GONE);
  setVisibility(it.simulator.world, repository.ownerId, repository, "internal");
  expect(await seen(it, token, "eve/open", nodeIds[0])).toEqual(GONE);
  it.simulator.setFaults({});
  setVisibility(it.simulator.world, repository.ownerId, repository, "public");
  expect(await seen(it, token, "eve/open", nodeIds[0])).toEqual(open);
});

test("made private, a repository leaves an App what its permissions allow", async () => {
  await using it = await openAccessWorld();
  const { repository, nodeIds } = it.places["acme/open"];
  const token = it.installed({ issues: "read" });
  expect((await seen(it, token, "acme/open", nodeIds[1])).access).toEqual(ALL_READ);
  setVisibility(it.simulator.world, it.owner.id, repository, "private");
  expect(await seen(it, token, "acme/open", nodeIds[1])).toEqual({
    access: ISSUES,
    rest: [200, 403],
    graphql: [1, null, 1],
  });
});

test("a transferred repository leaves its old owner's tokens, and joins the new owner's", async () => {
  await using it = await openAccessWorld();
  const { world } = it.simulator;
  const { repository, nodeIds } = it.places["acme/closed"];
  const permissions = { issues: "read" } as const;
  const old = [
    await it.token({ kind: "fine-grained", owner: "acme", permissions }),
    await it.token({ kind: "fine-grained", permissions, repositories: ["acme/closed"] }),
    it.installed(permissions),
  ];
  const eves = await it.token({ kind: "fine-grained", login: "eve", permissions });
  renameRepository(world, it.owner.id, repository, "moved");
  transferRepository(world, it.owner.id, repository, world.user(it.places["eve/open"].repository.ownerId));
  for (const token of old) expect(await seen(it, token, "eve/moved", nodeIds[0])).toEqual(GONE);
  const here = { access: ISSUES, rest: [200, 403], graphql: [1, "Issue", 1] };
  expect(await seen(it, eves, "eve/moved", nodeIds[0])).toEqual(here);
  // The old name leads to the repository, but only for callers who may see it.
  expect((await it.get("/repos/acme/closed", { token: eves })).status).toBe(301);
  expect((await it.get("/repos/acme/closed", { token: old[0] ?? "" })).status).toBe(404);
  deleteRepository(world, it.owner.id, repository);
  expect(await seen(it, eves, "eve/moved", nodeIds[0])).toEqual(GONE);
  expect(it.simulator.accessOf(eves, repository)).toEqual(NOTHING);
});

test("a transferred issue is redirected to where the token may read it, and is not found elsewhere", async () => {
  await using it = await openAccessWorld();
  const { places } = it;
  transferIssue(it.simulator.world, it.owner.id, places["acme/open"].issue, places["acme/closed"].repository);
  const status = async (token: string | null) => (await it.get("/repos/acme/open/issues/1", { token })).status;
  expect(await status(it.installed({ issues: "read" }))).toBe(301);
  expect(await status(it.installed({ pull_requests: "read" }))).toBe(404);
  expect(await status(null)).toBe(404);
});

test("who leaves an organization takes the access of fine-grained and classic tokens along", async () => {
  await using it = await openAccessWorld();
  const { nodeIds } = it.places["acme/closed"];
  const fine = await it.token({ kind: "fine-grained", owner: "acme", permissions: { issues: "read" } });
  const classic = await it.token({ scopes: ["repo"] });
  expect((await seen(it, fine, "acme/closed")).access).toEqual(ISSUES);
  it.acme.memberIds = [];
  for (const token of [fine, classic]) expect(await seen(it, token, "acme/closed", nodeIds[0])).toEqual(GONE);
});

test("a token has no more than its installation, whatever it was made with", async () => {
  await using it = await openAccessWorld();
  const users = await it.ofUser("octo", { issues: "read" });
  const [usersInstallation] = it.simulator.apps.installations.keys();
  const { repository } = it.places["acme/closed"];
  expect(it.simulator.accessOf(users, repository)).toEqual(ISSUES);
  await it.control("PATCH", `/-/installations/${usersInstallation}`, { suspended: true });
  expect(it.simulator.accessOf(users, repository)).toEqual(NOTHING);
  await it.control("DELETE", `/-/installations/${usersInstallation}`);
  const token = it.installed({ issues: "write", pull_requests: "read" });
  const access = () => it.simulator.accessOf(token, repository);
  expect(access()).toEqual({ ...CODE, metadata: true, issues: "write", pulls: "read" });
  const [installation] = it.simulator.apps.installations.values();
  const path = `/-/installations/${installation?.id}`;
  await it.control("PATCH", path, { accept: { permissions: { issues: "read" } } });
  expect(access()).toEqual(ISSUES);
  expect((await it.get("/repos/acme/closed/pulls", { token })).status).toBe(403);
  await it.control("PATCH", path, { repositories: ["acme/inner"] });
  expect(access()).toEqual(NOTHING);
  await it.control("PATCH", path, { repositories: "all", suspended: true });
  expect([access(), it.simulator.accessOf(token, it.places["eve/open"].repository)]).toEqual([NOTHING, NOTHING]);
  expect((await it.get("/repos/eve/open", { token })).status).toBe(403);
  await it.control("PATCH", path, { suspended: false });
  expect(access()).toEqual(ISSUES);
  await it.control("DELETE", path);
  expect(access()).toEqual(NOTHING);
});

test("a fine-grained token's permissions may be edited, and count at once", async () => {
  await using it = await openAccessWorld();
  const { nodeIds } = it.places["acme/closed"];
  const token = await it.token({ kind: "fine-grained", owner: "acme", permissions: { issues: "read" } });
  const permit = (permissions: object) => it.control("POST", "/-/tokens/permit", { token, permissions });
  expect((await permit({ pull_requests: "read" })).body).toEqual({
    permissions: { metadata: "read", pull_requests: "read" },
  });
  expect(await seen(it, token, "acme/closed", nodeIds[0])).toEqual({
    access: { ...CODE, metadata: true, issues: "none", pulls: "read" },
    rest: [403, 200],
    graphql: [null, null, 1],
  });
  expect((await permit({ issues: "all" })).status).toBe(400);
});

test("a private fork is shown as a pull request's head, and as a fork's parent, only to who sees it", async () => {
  await using it = await openAccessWorld();
  const { world } = it.simulator;
  const { "acme/closed": from, "acme/inner": into } = it.places;
  const head = { ...into.pull.pull.head, repositoryId: from.repository.id };
  world.addIssue({ repository: into.repository, title: "t", authorId: null, pull: { ...into.pull.pull, id: 1, head } });
  into.repository.parentId = from.repository.id;
  const shown = async (token: string) => {
    const single = (await it.get("/repos/acme/inner/pulls/3", { token })).body;
    const query = `{ repository(owner: "acme", name: "inner") {
      parent { name } pullRequest(number: 3) { headRepository { name } } } }`;
    const { repository } = (await it.graphql(token, query)).data;
    return [
      (await it.get("/repos/acme/inner", { token })).body.parent?.name ?? null,
      single.head.repo?.name ?? null,
      repository.parent?.name ?? null,
      repository.pullRequest.headRepository?.name ?? null,
    ];
  };
  const permissions = { pull_requests: "read" } as const;
  expect(await shown(it.installed(permissions))).toEqual(["closed", "closed", "closed", "closed"]);
  expect(await shown(it.installed(permissions, ["acme/inner"]))).toEqual([null, null, null, null]);
});

test("expired, revoked and unknown tokens have nothing, not even what is public", async () => {
  await using it = await openAccessWorld();
  const { repository } = it.places["acme/open"];
  const permissions = { issues: "read" } as const;
  const token = await it.token({ kind: "fine-grained", permissions, expiresAt: it.clock.now() + 1_000 });
  const revoked = await it.token({ kind: "fine-grained", permissions });
  expect(it.simulator.accessOf(token, repository)).toEqual(ALL_READ);
  it.clock.advance(1_000);
  await it.control("DELETE", `/-/tokens/${revoked}`);
  for (const bad of [token, revoked, "github_pat_unknown"]) {
    expect(it.simulator.accessOf(bad, repository)).toEqual(NOTHING);
    expect((await it.get("/repos/acme/open", { token: bad })).body.message).toBe("Bad credentials");
  }
  expect(it.simulator.accessOf(null, repository)).toEqual(ALL_READ);
});
