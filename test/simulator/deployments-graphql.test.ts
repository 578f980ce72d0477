import { expect, test } from "vitest";
import {
  createDeployment,
  createDeploymentStatus,
  type DeploymentInput,
  deleteDeployment,
} from "../../src/simulator/changes/deployments.ts";
import { deleteBranch } from "../../src/simulator/changes/refs.ts";
import { deleteUser } from "../../src/simulator/changes/users.ts";
import type { Deployment, DeploymentStatusState } from "../../src/simulator/world/records-code.ts";
import { openAccessWorld } from "./access-world.ts";
import { openSimulated } from "./simulated.ts";

const HALF_AN_HOUR_MS = 1_800_000;

async function open() {
  const it = await openSimulated();
  const { world } = it.simulator;
  const { repository, owner } = it;
  const deploy = (given: Partial<DeploymentInput> = {}) => {
    it.clock.advance(1_000);
    return createDeployment(world, owner.id, { repository, ref: "main", ...given });
  };
  const say = (deployment: Deployment, state: DeploymentStatusState, given: object = {}) => {
    it.clock.advance(1_000);
    return createDeploymentStatus(world, owner.id, deployment, { state, autoInactive: false, ...given });
  };
  const graphql = async (query: string) => {
    const { body } = await it.ask("POST", "/graphql", { body: { query } });
    expect(body.errors).toBeUndefined();
    return body.data;
  };
  /** The repository's fields. */
  const inDemo = async (fields: string) =>
    (await graphql(`{ repository(owner: "octo", name: "demo") { ${fields} } }`)).repository;
  return { ...it, deploy, say, graphql, inDemo };
}

test("a deployment and its statuses have each of their fields, alone and in their lists", async () => {
  await using it = await open();
  const made = it.deploy({ environment: "qa", payload: { a: 1 }, description: "d" });
  const addresses = { logUrl: "https://ci.example/1", environmentUrl: "https://qa.example" };
  const first = it.say(made, "in_progress", { ...addresses, description: "soon" });
  it.say(made, "success", { environment: "staging" });
  const status = "id state description environment environmentUrl logUrl createdAt updatedAt creator { login }";
  const fields = `id databaseId commitOid commit { oid } createdAt updatedAt creator { login } description environment
    latestEnvironment originalEnvironment payload ref { name prefix } repository { name } state task
    latestStatus { ${status} deployment { id } }
    statuses(first: 1, after: null) { totalCount pageInfo { hasNextPage } nodes { state } edges { node { id } } }`;
  const { deployments } = await it.inDemo(`deployments(first: 5) { totalCount nodes { ${fields} } }`);
  expect(deployments.totalCount).toBe(1);
  const rest = (await it.get(`/repos/octo/demo/deployments/${made.id}`)).body;
  const [last, before] = (await it.get(`/repos/octo/demo/deployments/${made.id}/statuses`)).body;
  const [shown] = deployments.nodes;
  expect(shown).toEqual({
    ...{ id: rest.node_id, databaseId: rest.id, commitOid: rest.sha, commit: { oid: rest.sha } },
    ...{ createdAt: rest.created_at, updatedAt: rest.updated_at, creator: { login: "octo" }, description: "d" },
    ...{ environment: "staging", latestEnvironment: "staging", originalEnvironment: "qa", payload: '{"a":1}' },
    ...{ ref: { name: "main", prefix: "refs/heads/" }, repository: { name: "demo" }, state: "ACTIVE", task: "deploy" },
    latestStatus: {
      ...{ id: last.node_id, state: "SUCCESS", description: "", environment: "staging" },
      ...{ environmentUrl: null, logUrl: null, createdAt: last.created_at, updatedAt: last.updated_at },
      ...{ creator: { login: "octo" }, deployment: { id: rest.node_id } },
    },
    statuses: {
      ...{ totalCount: 2, pageInfo: { hasNextPage: true } },
      ...{ nodes: [{ state: "SUCCESS" }], edges: [{ node: { id: last.node_id } }] },
    },
  });
  const { one, other } = await it.graphql(`{
    one: node(id: "${rest.node_id}") { __typename ... on Deployment { ${fields} } }
    other: node(id: "${before.node_id}") { __typename ... on DeploymentStatus { ${status} } } }`);
  expect(one).toEqual({ __typename: "Deployment", ...shown });
  expect(other).toEqual({
    ...{ __typename: "DeploymentStatus", id: before.node_id, state: "IN_PROGRESS", description: "soon" },
    ...{ environment: "qa", ...addresses, creator: { login: "octo" } },
    ...{ createdAt: before.created_at, updatedAt: before.updated_at },
  });
  expect(before.id).toBe(first.id);
  deleteDeployment(it.simulator.world, made);
  const gone = await it.ask("POST", "/graphql", { body: { query: `{ node(id: "${before.node_id}") { id } }` } });
  expect(gone.body.errors).toMatchObject([{ type: "NOT_FOUND" }]);
});

test("node ids are of the service's two forms", async () => {
  await using it = await open();
  const { world } = it.simulator;
  const row = (id: number, createdAt: number) => ({ id, createdAt });
  const now = world.now();
  // As in cli/cli#5541, and in the examples of webhooks.
  expect(world.nodeId("Deployment", row(1_802_230_182, now), 212_613_049)).toBe("DE_kwDODKw3uc5ra9mm");
  expect(world.nodeId("DeploymentStatus", row(4_563_625_673, now), 212_613_049)).toBe("DES_kwDODKw3uc8AAAABEANmyQ");
  expect(world.nodeId("Deployment", row(145_988_746, 0))).toBe("MDEwOkRlcGxveW1lbnQxNDU5ODg3NDY=");
  expect(world.nodeId("DeploymentStatus", row(209_916_254, 0))).toBe("MDE2OkRlcGxveW1lbnRTdGF0dXMyMDk5MTYyNTQ=");
});

test("the state follows the last status; what is pending is given up after half an hour", async () => {
  await using it = await open();
  const lasting = it.deploy({ environment: "qa" });
  const transient = it.deploy({ environment: "review", transientEnvironment: true });
  const states = async () =>
    (await it.inDemo("deployments(first: 5) { nodes { state } }")).deployments.nodes.map(
      ({ state }: { state: string }) => state,
    );
  expect(await states()).toEqual(["PENDING", "PENDING"]);
  it.clock.advance(HALF_AN_HOUR_MS);
  expect(await states()).toEqual(["ABANDONED", "PENDING"]);
  for (const [said, shown] of [
    ["pending", "PENDING"],
    ["queued", "QUEUED"],
    ["in_progress", "IN_PROGRESS"],
    ["error", "ERROR"],
    ["failure", "FAILURE"],
    ["success", "ACTIVE"],
    ["inactive", "INACTIVE"],
  ] as const) {
    it.say(lasting, said);
    it.say(transient, said);
    expect(await states()).toEqual([shown, shown === "INACTIVE" ? "DESTROYED" : shown]);
  }
  it.say(lasting, "queued");
  it.say(transient, "pending");
  it.clock.advance(HALF_AN_HOUR_MS + 1_000);
  expect(await states()).toEqual(["QUEUED", "ABANDONED"]);
});

test("deployments are listed oldest first or newest first, by environments, page by page", async () => {
  await using it = await open();
  const [a, b, c] = [it.deploy({ environment: "qa" }), it.deploy(), it.deploy({ environment: "staging" })];
  const ids = async (args: string) =>
    (await it.inDemo(`deployments(${args}) { nodes { databaseId } }`)).deployments.nodes.map(
      ({ databaseId }: { databaseId: number }) => databaseId,
    );
  expect(await ids("first: 5")).toEqual([a.id, b.id, c.id]);
  expect(await ids("first: 2, orderBy: { field: CREATED_AT, direction: DESC }")).toEqual([c.id, b.id]);
  expect(await ids("last: 1")).toEqual([c.id]);
  expect(await ids('first: 5, environments: ["qa", "production"]')).toEqual([a.id, b.id]);
  expect(await ids("first: 5, environments: []")).toEqual([]);
  it.say(a, "queued", { environment: "staging" });
  expect(await ids('first: 5, environments: ["qa"]')).toEqual([]);
  const { deployments } = await it.inDemo("deployments(first: 1) { totalCount pageInfo { endCursor hasNextPage } }");
  expect(deployments).toMatchObject({ totalCount: 3, pageInfo: { hasNextPage: true } });
  expect(await ids(`first: 5, after: "${deployments.pageInfo.endCursor}"`)).toEqual([b.id, c.id]);
});

test("what a deployment names may be gone or unnamed: its ref, its creator, its payload", async () => {
  await using it = await open();
  const { world } = it.simulator;
  const eve = world.addUser({ login: "eve" });
  it.repository.branches.set("topic", "b".repeat(40));
  const made = createDeployment(world, eve.id, { repository: it.repository, ref: "topic" });
  it.deploy({ ref: made.sha, payload: "text" });
  deleteUser(world, it.owner.id, eve);
  deleteBranch(world, it.owner.id, it.repository, "topic");
  const { deployments } = await it.inDemo(
    "deployments(first: 5) { nodes { commitOid ref { name } payload latestStatus { id } creator { login } } }",
  );
  const common = { commitOid: made.sha, ref: null, latestStatus: null };
  expect(deployments.nodes).toEqual([
    { ...common, payload: null, creator: { login: "ghost" } },
    { ...common, payload: '"text"', creator: { login: "octo" } },
  ]);
});

test("GraphQL takes the permission that REST takes, and that for contents for the commit", async () => {
  await using it = await openAccessWorld();
  const { world } = it.simulator;
  const { repository } = it.places["acme/closed"];
  repository.branches.set("main", "a".repeat(40));
  const made = createDeployment(world, it.owner.id, { repository, ref: "main" });
  const status = createDeploymentStatus(world, it.owner.id, made, { state: "queued" });
  const ids = [
    world.nodeId("Deployment", made, repository.id),
    world.nodeId("DeploymentStatus", status, repository.id),
  ];
  const query = `query ($ids: [ID!]!) {
    listed: repository(owner: "acme", name: "closed") { deployments(first: 1) { nodes { commitOid } } }
    nodes(ids: $ids) { __typename ... on Deployment { commit { oid } } } }`;
  const asked = async (permissions: object) => {
    const token = await it.token({ kind: "fine-grained", owner: "acme", permissions: { ...permissions } });
    const { data, errors = [] } = await it.graphql(token, query, { ids });
    return [data, errors.map(({ type, path }) => `${type} ${path?.join(".")}`)];
  };
  const { sha } = made;
  const listed = { deployments: { nodes: [{ commitOid: sha }] } };
  const [deployment, said] = [{ __typename: "Deployment", commit: { oid: sha } }, { __typename: "DeploymentStatus" }];
  expect(await asked({ deployments: "read", contents: "read" })).toEqual([{ listed, nodes: [deployment, said] }, []]);
  expect(await asked({ deployments: "read" })).toEqual([
    { listed, nodes: [{ ...deployment, commit: null }, said] },
    ["FORBIDDEN nodes.0.commit"],
  ]);
  expect(await asked({ contents: "read" })).toEqual([
    { listed: null, nodes: [null, null] },
    ["FORBIDDEN listed.deployments", "FORBIDDEN nodes.0", "FORBIDDEN nodes.1"],
  ]);
});
