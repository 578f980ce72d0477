/** Deployments and their statuses, from the webhook to the answer. Each answer must equal upstream's. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import type { Permission } from "../../src/api/callers/permissions.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import {
  addDeployment,
  addDeploymentStatus,
  createDeployment,
  createDeploymentStatus,
  deleteDeployment,
} from "../../src/simulator/changes/deployments.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { addCode } from "../../src/simulator/generate/generate-code.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import type { Repository } from "../../src/simulator/world/records.ts";
import type { Deployment } from "../../src/simulator/world/records-code.ts";
import { makeEvents } from "../../src/sync/found/make.ts";
import { askAt, rebased } from "../support/asking.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { markResourceListsDue } from "../support/due.ts";
import { passRound } from "../support/rounds.ts";
import { countStatements } from "../support/statements.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

let world: TestWorld;
let repository: Repository;
const PUSHER = "ghp_pusher";
const HOUR = 3_600_000;

beforeAll(async () => {
  world = await openWorld({
    env: { MIRROR: "deployments" },
    fill: ({ world: filled }) => {
      generateWorld(filled, { seed: 7, repositories: 1, issues: 3, pulls: 2 });
      for (const one of filled.repositories.values()) {
        one.visibility = "private";
        addCode(filled, one, { deployments: 7 }, 7, filled.now());
      }
    },
  });
  const { simulator } = world;
  const [owner = "", name = ""] = world.first.split("/");
  const found = simulator.world.repositoryByName(owner, name)?.repository;
  if (!found) throw new Error("The generated repository is not there");
  repository = found;
  const { userId } = simulator.tokens.create({ token: PUSHER, login: "pusher" });
  repository.collaborators.set(userId, "push");
  await world.mirror(world.first);
  await world.listen(world.first);
  await pass(60_000);
});
afterAll(() => world?.[Symbol.asyncDispose]());

const pass = (ms: number) => passRound(world, ms, markResourceListsDue);
const tick = () => (world.simulator.world.clock as SettableClock).advance(2_000);
const at = (path: string) => `/repos/${world.first}${path}`;
const get = (path: string, token: string | null = world.token) => askAt(world.url, "GET", at(path), { token });
const upstreams = (path: string) => askAt(world.simulator.url, "GET", at(path), { token: UPSTREAM_TOKEN });
const isPassed = ({ headers }: { headers: Headers }) => headers.has("x-tain-passed-through");
const all = () => [...world.simulator.world.code.of(repository).deployments.values()].filter(({ deleted }) => !deleted);

function deploy(more: Partial<Parameters<typeof createDeployment>[2]> = {}, by = createDeployment): Deployment {
  tick();
  return by(world.simulator.world, repository.ownerId, { repository, ref: repository.defaultBranch, ...more });
}

type Input = Parameters<typeof createDeploymentStatus>[3];
function say(
  deployment: Deployment,
  state: Input["state"],
  more: Partial<Input> = {},
  by = createDeploymentStatus,
): void {
  tick();
  by(world.simulator.world, repository.ownerId, deployment, { state, ...more });
}

/** Expects the mirror to answer from its own rows, as upstream does. */
async function expectHeld(paths: readonly string[]): Promise<void> {
  for (const path of paths) {
    const [ours, theirs] = [await get(path), await upstreams(path)];
    expect([path, isPassed(ours), ours.status]).toEqual([path, false, theirs.status]);
    if (theirs.status === 200) expect(ours.body, path).toEqual(rebased(theirs.text, world.simulator.url, world.url));
  }
}

const everyPath = () => [
  "/deployments",
  "/deployments?per_page=3&page=2",
  "/deployments?environment=production",
  "/deployments?task=deploy&per_page=1",
  ...all().flatMap(({ id, statuses }) => [
    `/deployments/${id}`,
    `/deployments/${id}/statuses`,
    ...statuses.map((one) => `/deployments/${id}/statuses/${one.id}`),
  ]),
];

test("deployments and their statuses are copied, and answered as upstream answers them", async () => {
  expect(all().length).toBeGreaterThan(5);
  await expectHeld(everyPath());
  const absent = await get("/deployments/1");
  expect([absent.status, isPassed(absent)]).toEqual([404, false]);
});

test("what webhooks tell is there at once, and costs nothing", async () => {
  world.simulator.meter.reset();
  const deployment = deploy({ environment: "review", payload: { note: "hand made" } });
  say(deployment, "in_progress", { logUrl: "https://ci.example/1" });
  say(deployment, "success", { environmentUrl: "https://review.example" });
  await world.settle();
  const { charged } = world.simulator.meter.read();
  await expectHeld([`/deployments/${deployment.id}`, `/deployments/${deployment.id}/statuses`, "/deployments"]);
  expect(charged).toBe(0);
});

test("deployments that a success made inactive are found, though no webhook tells of it", async () => {
  const [older, newer] = [deploy({ environment: "staging" }), deploy({ environment: "staging" })];
  say(older, "success");
  await world.settle();
  say(newer, "success");
  await world.settle();
  for (let round = 0; round < 3; round++) await pass(5 * 60_000);
  expect((await get(`/deployments/${older.id}/statuses`)).body[0].state).toBe("inactive");
  await expectHeld(everyPath());
});

test("what no webhook told is found within the hour, and told to targets", async () => {
  const unheard = deploy({ environment: "unheard" }, addDeployment);
  say(unheard, "failure", {}, addDeploymentStatus);
  const known = all()[0];
  if (!known) throw new Error("There is no deployment");
  say(known, "queued", { description: "again" }, addDeploymentStatus);
  for (let round = 0; round < 3; round++) await pass(HOUR / 2);
  await expectHeld(everyPath());
  await makeEvents(world.ctx);
  const events = await world.ctx.db.query<{ event: string }>(sql`
    select event from events where event like 'deployment%' and is_made order by id`);
  expect(events.map(({ event }) => event)).toEqual(expect.arrayContaining(["deployment", "deployment_status"]));
});

test("a deployment that upstream deleted, of which nothing tells, is gone within a day with its statuses", async () => {
  const gone = deploy({ environment: "short-lived" });
  say(gone, "inactive");
  await pass(6 * 60_000);
  await expectHeld([`/deployments/${gone.id}/statuses`]);
  deleteDeployment(world.simulator.world, gone);
  for (let round = 0; round < 3; round++) await pass(9 * HOUR);
  await expectHeld([`/deployments/${gone.id}`, `/deployments/${gone.id}/statuses`, "/deployments"]);
  const rows = await world.ctx.db.query(sql`
    select from deployment_statuses where deployment_id = ${gone.id} and deleted_at is null`);
  expect(rows).toEqual([]);
});

test("writes pass through, and the next read shows them", async () => {
  const write = (method: string, path: string, json?: object) =>
    askAt(world.url, method, at(path), { token: PUSHER, ...(json && { body: JSON.stringify(json) }) });
  const made = await write("POST", "/deployments", { ref: repository.defaultBranch, environment: "written" });
  expect(made.status).toBe(201);
  const { id } = made.body;
  await expectHeld([`/deployments/${id}`]);
  expect((await write("POST", `/deployments/${id}/statuses`, { state: "pending" })).status).toBe(201);
  await expectHeld([`/deployments/${id}`, `/deployments/${id}/statuses`]);
  expect((await write("POST", `/deployments/${id}/statuses`, { state: "inactive" })).status).toBe(201);
  expect((await write("DELETE", `/deployments/${id}`)).status).toBe(204);
  await expectHeld([`/deployments/${id}`, "/deployments"]);
});

test("GraphQL shows them as upstream does", async () => {
  const [owner, name] = world.first.split("/");
  const query = `query { repository(owner: "${owner}", name: "${name}") {
    deployments(first: 50, orderBy: { field: CREATED_AT, direction: DESC }) { totalCount nodes {
      id databaseId commitOid createdAt updatedAt creator { login } description environment latestEnvironment originalEnvironment
      payload state task latestStatus { id state environmentUrl logUrl deployment { databaseId } }
      statuses(first: 20) { totalCount nodes { id state createdAt updatedAt creator { login } description environment } } } }
    ofOne: deployments(first: 2, environments: ["production"]) { totalCount nodes { databaseId } } } }`;
  const ask = (url: string, token: string) =>
    askAt(url, "POST", "/graphql", { token, body: JSON.stringify({ query }) });
  const [ours, theirs] = [await ask(world.url, world.token), await ask(world.simulator.url, UPSTREAM_TOKEN)];
  expect(isPassed(ours)).toBe(false);
  expect(ours.body).toEqual(theirs.body);
  expect(ours.body.data.repository.deployments.totalCount).toBeGreaterThan(5);
});

test("few statements read the deployments of statuses, however many places of a document show them", async () => {
  const [owner, name] = world.first.split("/");
  const read = async (places: number) => {
    const shown = Array.from({ length: places }, (_, one) => `d${one}: deployment { databaseId }`).join(" ");
    const query = `{ repository(owner: "${owner}", name: "${name}") { deployments(first: 50) { nodes { latestStatus { ${shown} } } } } }`;
    using statements = countStatements();
    const { body } = await askAt(world.url, "POST", "/graphql", {
      token: world.token,
      body: JSON.stringify({ query }),
    });
    expect(body.errors).toBeUndefined();
    return statements.texts().filter((text) => /join deployments t on t.repository_id/.test(text)).length;
  };
  // On a busy machine a level may give way, and the rest of it asks by itself. Of each place there were hundreds.
  expect(await read(40)).toBeLessThan(10);
});

test("a payload is its maker's own: what looks like a person, a repository or an address there is neither", async () => {
  const victim = world.simulator.world.user(repository.ownerId);
  const forged = {
    login: "forged",
    id: victim.id,
    type: "User",
    followers_url: "x",
    url: `${world.simulator.url}/users/x`,
  };
  const deployment = deploy({ payload: { forged, mark: "\u0005u1:0", secret_key_of_theirs: [1, { deep: true }] } });
  await world.settle();
  const shown = await get(`/deployments/${deployment.id}`);
  expect([isPassed(shown), shown.body.payload]).toEqual([false, deployment.payload]);
  const [person] = await world.ctx.db.query<{ login: string }>(sql`select login from users where id = ${victim.id}`);
  expect(person?.login).toBe(victim.login);
});

test("a token without the right to deployments is refused them, and one with it is not", async () => {
  const of = (permissions: readonly Permission[]) =>
    createApiToken(world.ctx, { userId: repository.ownerId, canWrite: false, permissions });
  const [without, having] = [await of(["contents:read"]), await of(["deployments:read"])];
  expect((await get("/deployments", without)).status).toBe(403);
  const shown = await get("/deployments", having);
  expect([isPassed(shown), shown.status]).toEqual([false, 200]);
});
