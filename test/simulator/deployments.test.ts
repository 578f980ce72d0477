import { expect, test } from "vitest";
import { createDeployment, createDeploymentStatus, deleteDeployment } from "../../src/simulator/changes/deployments.ts";
import { createTags } from "../../src/simulator/changes/refs.ts";
import { deleteRepository } from "../../src/simulator/changes/repositories.ts";
import { openAccessWorld } from "./access-world.ts";
import { openAppWorld } from "./app-world.ts";
import { settledHook } from "./hooked.ts";
import { openReceiver, openSimulated, rels } from "./simulated.ts";

const DEPLOYMENTS = "/repos/octo/demo/deployments";

async function open() {
  const it = await openSimulated({ webhooks: { concurrency: 1 } });
  const main = it.repository.branches.get("main") ?? "";
  /** Answers the deployment. */
  const deploy = async (given: object = {}) => {
    it.clock.advance(1_000);
    const reply = await it.ask("POST", DEPLOYMENTS, { body: { ref: "main", ...given } });
    expect(reply.status, reply.text).toBe(201);
    return reply.body;
  };
  /** Answers the status. */
  const say = async ({ id }: { id: number }, state: string, given: object = {}) => {
    it.clock.advance(1_000);
    const reply = await it.ask("POST", `${DEPLOYMENTS}/${id}/statuses`, { body: { state, ...given } });
    expect(reply.status, reply.text).toBe(201);
    return reply.body;
  };
  const states = async ({ id }: { id: number }) =>
    (await it.get(`${DEPLOYMENTS}/${id}/statuses`)).body.map(({ state }: { state: string }) => state);
  const one = async ({ id }: { id: number }) => (await it.get(`${DEPLOYMENTS}/${id}`)).body;
  return { ...it, main, deploy, say, states, one };
}

test("a deployment is of a branch, a tag or a commit, and has defaults; anything else is refused", async () => {
  await using it = await open();
  const { world } = it.simulator;
  const made = await it.ask("POST", DEPLOYMENTS, { body: { ref: "main", auto_merge: false, required_contexts: [] } });
  const url = `${it.simulator.url}/repos/octo/demo/deployments/${made.body.id}`;
  expect([made.status, made.headers.get("location")]).toEqual([201, url]);
  expect(made.body).toMatchObject({
    ...{ url, sha: it.main, ref: "main", task: "deploy", payload: {}, description: null },
    ...{ environment: "production", original_environment: "production" },
    ...{ transient_environment: false, production_environment: true, performed_via_github_app: null },
    ...{ statuses_url: `${url}/statuses`, repository_url: `${it.simulator.url}/repos/octo/demo` },
    ...{ creator: { login: "octo" }, created_at: "2026-10-01T12:00:00Z", updated_at: "2026-10-01T12:00:00Z" },
  });
  expect((await it.get(`/repositories/${it.repository.id}/deployments/${made.body.id}`)).body).toEqual(made.body);
  createTags(world, it.owner.id, it.repository, [{ name: "v1", sha: it.main }]);
  for (const ref of ["v1", it.main]) expect(await it.deploy({ ref })).toMatchObject({ ref, sha: it.main });
  const given = { task: "deploy:migrations", payload: { a: [1] }, environment: "qa", description: "d" };
  const flags = { transient_environment: true, production_environment: true };
  expect(await it.deploy({ ...given, ...flags })).toMatchObject({ ...given, ...flags, original_environment: "qa" });
  expect(await it.deploy({ payload: '{"a":1}', environment: "qa" })).toMatchObject({
    ...{ payload: '{"a":1}', production_environment: false },
  });
  const refused = async (body: object) => {
    const reply = await it.ask("POST", DEPLOYMENTS, { body });
    return [reply.status, reply.body.message];
  };
  expect(await refused({})).toEqual([422, 'Invalid request.\n\n"ref" wasn\'t supplied.']);
  expect(await refused({ ref: "none" })).toEqual([422, "No ref found for: none"]);
  expect(await refused({ ref: "f".repeat(40) })).toEqual([422, `No ref found for: ${"f".repeat(40)}`]);
  for (const wrong of [{ auto_merge: "no" }, { required_contexts: "ci" }, { payload: 1 }, { transient_environment: 1 }])
    expect((await refused({ ref: "main", ...wrong }))[0]).toBe(422);
  expect(world.code.of(it.repository).deployments.size).toBe(5);
});

test("deployments are listed newest first, in pages, by sha, ref, task and environment", async () => {
  await using it = await open();
  const { world } = it.simulator;
  createTags(world, it.owner.id, it.repository, [{ name: "v1", sha: it.main }]);
  const a = await it.deploy({ environment: "qa" });
  const b = await it.deploy({ ref: "v1", task: "migrate" });
  const c = await it.deploy();
  await it.say(a, "pending", { environment: "staging" });
  const ids = async (query: string) =>
    (await it.get(`${DEPLOYMENTS}?${query}`)).body.map(({ id }: { id: number }) => id);
  expect(await ids("")).toEqual([c.id, b.id, a.id]);
  expect(await ids("ref=v1")).toEqual([b.id]);
  expect(await ids("task=deploy")).toEqual([c.id, a.id]);
  expect(await ids(`sha=${it.main}`)).toEqual([c.id, b.id, a.id]);
  expect(await ids("sha=main")).toEqual([]);
  expect(await ids("environment=staging")).toEqual([a.id]);
  expect(await ids("environment=qa")).toEqual([]);
  expect(await ids("environment=production&task=migrate")).toEqual([b.id]);
  const page = await it.get(`${DEPLOYMENTS}?per_page=1&page=2`);
  expect([page.body[0].id, rels(page)]).toEqual([b.id, ["prev", "next", "last", "first"]]);
  expect(page.headers.get("link")).toContain(`/repositories/${it.repository.id}/deployments?per_page=1&page=3`);
  const etag = page.headers.get("etag") ?? "";
  const again = () => it.get(`${DEPLOYMENTS}?per_page=1&page=2`, { headers: { "if-none-match": etag } });
  expect((await again()).status).toBe(304);
  await it.say(b, "queued");
  expect((await again()).status).toBe(200);
});

test("a status moves its deployment's time, and may move its environment; later ones stay there", async () => {
  await using it = await open();
  const made = await it.deploy({ environment: "qa" });
  const first = await it.say(made, "in_progress", { target_url: "https://ci.example/1" });
  const url = `${made.url}/statuses/${first.id}`;
  expect(first).toMatchObject({
    ...{ url, state: "in_progress", environment: "qa", description: "", environment_url: "" },
    ...{ target_url: "https://ci.example/1", log_url: "https://ci.example/1", creator: { login: "octo" } },
    ...{ deployment_url: made.url, repository_url: made.repository_url, performed_via_github_app: null },
    ...{ created_at: "2026-10-01T12:00:02Z", updated_at: "2026-10-01T12:00:02Z" },
  });
  expect(await it.one(made)).toEqual({ ...made, updated_at: first.created_at });
  const second = { log_url: "https://ci.example/2", target_url: "https://ci.example/old", environment: "staging" };
  expect(await it.say(made, "queued", { ...second, environment_url: "https://staging.example" })).toMatchObject({
    ...{ log_url: "https://ci.example/2", target_url: "https://ci.example/2", environment: "staging" },
    environment_url: "https://staging.example",
  });
  const last = await it.say(made, "success", { description: "d".repeat(140) });
  expect(last.environment).toBe("staging");
  expect(await it.one(made)).toMatchObject({ environment: "staging", original_environment: "qa" });
  const list = await it.get(`${DEPLOYMENTS}/${made.id}/statuses?per_page=2`);
  expect([list.body[0], list.body.length, rels(list)]).toEqual([last, 2, ["next", "last"]]);
  expect((await it.get(`${DEPLOYMENTS}/${made.id}/statuses/${first.id}`)).body).toEqual(first);
  const other = await it.deploy();
  for (const path of [`${made.id}/statuses/1`, `${other.id}/statuses/${first.id}`, "1", "1/statuses", "x"])
    expect((await it.get(`${DEPLOYMENTS}/${path}`)).status, path).toBe(404);
});

test("a status needs a state that exists, a short description and an address", async () => {
  await using it = await open();
  const made = await it.deploy();
  const refused = async (body: object) => {
    const reply = await it.ask("POST", `${DEPLOYMENTS}/${made.id}/statuses`, { body });
    expect(reply.status).toBe(422);
    return reply.body.errors?.[0].message ?? reply.body.message;
  };
  expect(await refused({})).toMatch('"state" wasn\'t supplied.');
  expect(await refused({ state: "waiting" })).toMatch("is not a member of");
  const long = { state: "success", description: "d".repeat(141) };
  expect(await refused(long)).toBe("description is too long (maximum is 140 characters)");
  const address = { state: "success", environment_url: "staging.example" };
  expect(await refused(address)).toBe("environment_url must use http(s) scheme");
  expect(await it.one(made)).toEqual(made);
});

test("a success takes the place of earlier ones in its environment, unless production, transient or told not to", async () => {
  await using it = await open();
  const deployed = async (given: object, state = "success") => {
    const made = await it.deploy(given);
    await it.say(made, state, { auto_inactive: false });
    return made;
  };
  const qa = { environment: "qa" };
  const earlier = await deployed(qa);
  const failed = await deployed(qa, "failure");
  const transient = await deployed({ ...qa, transient_environment: true });
  const forUsers = await deployed({ ...qa, production_environment: true });
  const elsewhere = await deployed({ environment: "staging" });
  const made = await it.deploy(qa);
  const later = await deployed(qa);
  await it.say(made, "failure");
  await it.say(made, "success", { auto_inactive: false });
  expect(await it.states(earlier)).toEqual(["success"]);
  const { created_at } = await it.say(made, "success");
  expect(await it.states(earlier)).toEqual(["inactive", "success"]);
  expect(await it.states(failed)).toEqual(["failure"]);
  for (const one of [transient, forUsers, elsewhere, later]) expect(await it.states(one)).toEqual(["success"]);
  expect((await it.one(earlier)).updated_at).toBe(created_at);
  const [inactive] = (await it.get(`${DEPLOYMENTS}/${earlier.id}/statuses`)).body;
  expect(inactive).toMatchObject({ created_at, environment: "qa", description: "", log_url: "" });
  await it.say(made, "success");
  expect(await it.states(earlier)).toEqual(["inactive", "success"]);
});

test("an active deployment is deleted only if it is alone in its environment; its statuses go with it", async () => {
  await using it = await open();
  const { code } = it.simulator.world;
  const remove = async ({ id }: { id: number }) => await it.ask("DELETE", `${DEPLOYMENTS}/${id}`);
  const alone = await it.deploy({ environment: "alone" });
  await it.say(alone, "success");
  const a = await it.deploy({ environment: "qa" });
  const status = await it.say(a, "success");
  const waiting = await it.deploy({ environment: "qa" });
  const refused = await remove(a);
  expect([refused.status, refused.body.message, refused.body.errors]).toEqual([
    422,
    "Validation Failed",
    ["We cannot delete an active deployment unless it is the only deployment in a given environment."],
  ]);
  expect((await remove(waiting)).status).toBe(204);
  const b = await it.deploy({ environment: "qa" });
  await it.say(a, "inactive");
  expect((await remove(a)).status).toBe(204);
  for (const path of [`${a.id}`, `${a.id}/statuses`, `${a.id}/statuses/${status.id}`])
    expect((await it.get(`${DEPLOYMENTS}/${path}`)).status).toBe(404);
  expect((await remove(a)).status).toBe(404);
  expect((await remove(alone)).status).toBe(204);
  expect([...code.deployments.keys()]).toEqual([b.id]);
  expect(code.deploymentStatuses.size).toBe(0);
  await it.say(b, "queued");
  deleteRepository(it.simulator.world, it.owner.id, it.repository);
  expect([code.deployments.size, code.deploymentStatuses.size]).toEqual([0, 0]);
});

test("a replica that is behind shows deployments, statuses and deletions late", async () => {
  await using it = await open();
  const { world } = it.simulator;
  const { repository, owner } = it;
  const old = createDeployment(world, owner.id, { repository, ref: "main" });
  it.simulator.setFaults({ lagMs: 10_000 });
  const status = createDeploymentStatus(world, owner.id, old, { state: "queued", environment: "qa" });
  const fresh = createDeployment(world, owner.id, { repository, ref: "main" });
  const shown = async () => (await it.get(DEPLOYMENTS)).body.map((row: { id: number }) => row.id);
  const statuses = async () => (await it.get(`${DEPLOYMENTS}/${old.id}/statuses`)).body.length;
  expect([await shown(), await statuses(), (await it.one(old)).environment]).toEqual([[old.id], 0, "production"]);
  expect((await it.get(`${DEPLOYMENTS}/${fresh.id}`)).status).toBe(404);
  it.clock.advance(10_000);
  expect([await shown(), await statuses(), (await it.one(old)).environment]).toEqual([[fresh.id, old.id], 1, "qa"]);
  deleteDeployment(world, old);
  expect([await shown(), await statuses(), (await it.one(old)).id]).toEqual([[fresh.id, old.id], 1, old.id]);
  const node = async () => {
    const query = `{ node(id: "${world.nodeId("DeploymentStatus", status, repository.id)}") { __typename } }`;
    return (await it.ask("POST", "/graphql", { body: { query } })).body.data.node;
  };
  expect(await node()).toEqual({ __typename: "DeploymentStatus" });
  it.clock.advance(10_000);
  expect([await shown(), (await it.get(`${DEPLOYMENTS}/${old.id}`)).status, await node()]).toEqual([
    [fresh.id],
    404,
    null,
  ]);
});

test("hooks that name the events hear of deployments and statuses, and of nothing that became inactive or was deleted", async () => {
  await using it = await open();
  await using receiver = await openReceiver();
  await using other = await openReceiver();
  const config = (url: string) => ({ url, content_type: "json" });
  await settledHook(it, config(receiver.url), ["deployment", "deployment_status"]);
  await settledHook(it, config(other.url), ["push", "status", "deployment"]);
  receiver.heard.length = 0;
  other.heard.length = 0;
  const first = await it.deploy({ environment: "qa" });
  await it.say(first, "success");
  const second = await it.deploy({ environment: "qa" });
  const status = await it.say(second, "success");
  await it.say(second, "inactive");
  const now = await it.one(first);
  expect((await it.ask("DELETE", `${DEPLOYMENTS}/${first.id}`)).status).toBe(204);
  await it.simulator.quiet();
  const told = ["deployment.created", "deployment_status.created"];
  expect(receiver.names()).toEqual([...told, ...told]);
  expect(other.names()).toEqual([told[0], told[0]]);
  expect(now.updated_at).toBe(status.created_at);
  const [made, , , said] = receiver.heard.map(({ payload }) => payload);
  const { repository, sender, ...deployment } = made;
  expect(deployment).toEqual({ action: "created", deployment: first, workflow: null, workflow_run: null });
  expect([repository.full_name, sender.login]).toEqual(["octo/demo", "octo"]);
  expect(Object.keys(said)).toEqual(["action", "deployment_status", "deployment", "repository", "sender"]);
  expect(said).toMatchObject({ deployment_status: status, deployment: { ...second, updated_at: status.created_at } });
});

test.each([
  [{ deployments: "read" }, ["deployment.created", "deployment_status.created"]],
  [{ contents: "read", statuses: "read" }, []],
] as const)("an App with %j hears %j", async (permissions, told) => {
  await using receiver = await openReceiver();
  const events = ["deployment", "deployment_status"];
  const webhook = { url: receiver.url, secret: "the App's" };
  await using it = await openAppWorld({ permissions, events, webhook }, { webhooks: { concurrency: 1 } });
  const { world } = it.simulator;
  const made = createDeployment(world, it.owner.id, { repository: it.repository, ref: "main" });
  createDeploymentStatus(world, it.owner.id, made, { state: "queued" });
  await it.simulator.quiet();
  expect(receiver.names().filter((name) => name.startsWith("deployment"))).toEqual(told);
});

test("deployments take their own permission, or the scope for them; writes take push access as well", async () => {
  await using it = await openAccessWorld();
  const { world } = it.simulator;
  for (const { repository } of Object.values(it.places)) repository.branches.set("main", "a".repeat(40));
  const { repository } = it.places["acme/closed"];
  const made = createDeployment(world, it.owner.id, { repository, ref: "main" });
  const { id: statusId } = createDeploymentStatus(world, it.owner.id, made, { state: "queued" });
  const reads = async (token: string) => {
    const at = `/repos/acme/closed/deployments`;
    const paths = [at, `${at}/${made.id}`, `${at}/${made.id}/statuses`, `${at}/${made.id}/statuses/${statusId}`];
    const replies = await Promise.all(paths.map((path) => it.get(path, { token })));
    const [first] = replies;
    expect(new Set(replies.map(({ status }) => status)).size, first?.text).toBe(1);
    return first?.status;
  };
  const writes = async (token: string, name = "acme/closed") => {
    const body = { ref: "main", environment: "qa" };
    const posted = await it.ask("POST", `/repos/${name}/deployments`, { token, body });
    if (posted.status !== 201) return posted.status;
    const at = `/repos/${name}/deployments/${posted.body.id}`;
    expect((await it.ask("POST", `${at}/statuses`, { token, body: { state: "error" } })).status).toBe(201);
    return (await it.ask("DELETE", at, { token })).status;
  };
  const fine = (permissions: object) =>
    it.token({ kind: "fine-grained", owner: "acme", permissions: { ...permissions } });
  const reader = await fine({ deployments: "read" });
  expect([await reads(reader), await writes(reader)]).toEqual([200, 403]);
  const refused = await it.get("/repos/acme/closed/deployments", { token: await fine({ contents: "write" }) });
  expect([refused.status, refused.headers.get("x-accepted-github-permissions")]).toEqual([403, "deployments=read"]);
  const writer = await fine({ deployments: "write" });
  expect([await reads(writer), await writes(writer)]).toEqual([200, 204]);
  const app = it.installed({ deployments: "write" });
  expect([await reads(app), await writes(app)]).toEqual([200, 204]);
  expect(it.simulator.accessOf(reader, repository)).toMatchObject({ deployments: "read", contents: "none" });

  const classic = await it.token({ scopes: ["repo"] });
  expect([await reads(classic), await writes(classic)]).toEqual([200, 204]);
  const narrow = await it.token({ scopes: ["repo_deployment"] });
  expect([await reads(narrow), await writes(narrow), await writes(narrow, "acme/open")]).toEqual([200, 204, 204]);
  expect((await it.get("/repos/acme/open/deployments", { token: narrow })).headers.get("x-accepted-oauth-scopes")).toBe(
    "repo, repo_deployment",
  );
  for (const path of ["", "/statuses/main", "/issues", "/releases"])
    expect((await it.get(`/repos/acme/closed${path}`, { token: narrow })).status, path).toBe(404);
  expect((await it.ask("POST", "/repos/acme/open/issues", { token: narrow, body: { title: "t" } })).status).toBe(404);
  for (const scopes of [["repo:status"], ["public_repo"], []])
    expect([await reads(await it.token({ scopes })), await writes(await it.token({ scopes }))]).toEqual([404, 404]);
  // Who may only read the repository may not deploy it, whatever the scope.
  const stranger = await it.token({ login: "stranger", scopes: ["repo"] });
  expect([await reads(stranger), await writes(stranger, "acme/open")]).toEqual([404, 403]);
  expect((await it.get("/repos/acme/open/deployments", { token: null })).body).toEqual([]);
});
