/** A selection means the repository that has the name now. No webhook tells of the change. */
import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { createIssue } from "../../src/simulator/changes/issues.ts";
import { createRepository, deleteRepository, renameRepository } from "../../src/simulator/changes/repositories.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { resolveSelections } from "../../src/sync/following/selection.ts";
import { askAt } from "../support/asking.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

/** A mirror of one repository. */
async function openMirrored() {
  const world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 5, repositories: 1, issues: 3, pulls: 0 }),
  });
  const upstream = world.simulator.world;
  const [former] = [...upstream.repositories.values()].filter(({ fork }) => !fork);
  if (!former) throw new Error("The generated repository is not there");
  await world.mirror(world.first);
  return { world, upstream, former };
}

/** The states of all repositories, once upstream was asked for those in doubt. */
async function statesOnceAsked(world: TestWorld) {
  world.advance(60_000);
  await world.settle();
  await world.settleMarks();
  return await world.ctx.db.query(
    sql`select repository_id::int as id, state from repository_syncs order by repository_id`,
  );
}

test.each(["deleted", "renamed"] as const)(
  "a name whose repository was %s, and that another took, leads to the other",
  async (how) => {
    await using world = await openWorld({
      fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 5, repositories: 1, issues: 3, pulls: 0 }),
    });
    const upstream = world.simulator.world;
    const [owner = "", name = ""] = world.first.split("/");
    const former = upstream.repositoryByName(owner, name)?.repository;
    if (!former) throw new Error("The generated repository is not there");
    await world.mirror(world.first);
    if (how === "deleted") deleteRepository(upstream, former.ownerId, former);
    else renameRepository(upstream, former.ownerId, former, "elsewhere");
    world.advance(3_600_000);
    await world.catchUp();
    const other = createRepository(upstream, former.ownerId, { ownerId: former.ownerId, name });
    world.advance(3_600_000);
    await resolveSelections(world.ctx);
    await world.settle();
    expect((await world.get(`/repos/${world.first}`)).body).toMatchObject({ id: other.id });
    expect((await world.get(`/repos/${world.first}/issues?state=all`)).body).toEqual([]);
    // Upstream is asked for the former one once no replica lags.
    world.advance(60_000);
    await world.settle();
    await world.settleMarks();
    const [row] = await world.ctx.db.query<{ state: string }>(
      sql`select state from repository_syncs where repository_id = ${former.id}`,
    );
    expect(row?.state).toBe(how === "deleted" ? "gone" : "live");
  },
);

test("a name whose repository was deleted is lost to another, though that has moved on before the name was looked up", async () => {
  const { world, upstream, former } = await openMirrored();
  await using _ = world;
  const { name, ownerId } = former;
  deleteRepository(upstream, ownerId, former);
  world.advance(3_600_000);
  await world.catchUp();
  const other = createRepository(upstream, ownerId, { ownerId, name });
  renameRepository(upstream, ownerId, other, "elsewhere");
  await resolveSelections(world.ctx);
  expect(await statesOnceAsked(world)).toEqual([
    { id: former.id, state: "gone" },
    { id: other.id, state: "live" },
  ]);
});

test("a repository that was renamed is followed again, though upstream once did not show it before another took its name", async () => {
  const { world, upstream, former } = await openMirrored();
  await using _ = world;
  const { name, ownerId } = former;
  renameRepository(upstream, ownerId, former, "elsewhere");
  const other = createRepository(upstream, ownerId, { ownerId, name });
  world.advance(3_600_000);
  world.simulator.setFaults({ http: [{ kind: "status", status: 404, match: `GET /repositories/${former.id}` }] });
  await world.catchUp();
  world.simulator.setFaults({});
  await resolveSelections(world.ctx);
  expect(await statesOnceAsked(world)).toEqual([
    { id: former.id, state: "live" },
    { id: other.id, state: "live" },
  ]);
  expect((await world.get(`/repos/${world.first}`)).body).toMatchObject({ id: other.id });
});

test("names that change owners in a row lead to who has them now, some intervals later", async () => {
  await using world = await openWorld({
    env: { CATCH_UP_INTERVAL: "30s" },
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 5, repositories: 1, issues: 3, pulls: 0 }),
  });
  const upstream = world.simulator.world;
  const [one] = upstream.repositories.values();
  if (!one) throw new Error("The generated repository is not there");
  const { ownerId } = one;
  const [owner, name] = [upstream.user(ownerId).login, one.name];
  const two = createRepository(upstream, ownerId, { ownerId, name: "two" });
  await world.mirror(`${owner}/${name}`, `${owner}/two`);
  renameRepository(upstream, ownerId, one, "elsewhere");
  renameRepository(upstream, ownerId, two, name);
  const three = createRepository(upstream, ownerId, { ownerId, name: "two" });
  for (let times = 0; times < 3; times++) {
    world.advance(30_000);
    await world.catchUp();
    await resolveSelections(world.ctx);
    await world.settle();
  }
  const shownAs = async (each: string) => (await world.get(`/repos/${owner}/${each}`)).body;
  expect(await Promise.all(["elsewhere", name, "two"].map(shownAs))).toMatchObject([
    { id: one.id },
    { id: two.id },
    { id: three.id },
  ]);
});

test("no write by a reused name reaches the repository that has it now, and none is sent while the old one is paused", async () => {
  await using world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 5, repositories: 1, issues: 3, pulls: 0 }),
  });
  const upstream = world.simulator.world;
  const [owner = "", name = ""] = world.first.split("/");
  const former = upstream.repositoryByName(owner, name)?.repository;
  if (!former) throw new Error("The generated repository is not there");
  await world.mirror(world.first);
  const numbers = (await world.ctx.db.query<{ number: number }>(sql`select number from issues order by number`)).map(
    (row) => row.number,
  );
  const shown = async () =>
    await world.ctx.db.query(sql`select number, id::text, node_id, title, state from issues order by number`);
  const before = await shown();
  const [{ node_id: nodeId } = { node_id: "" }] = before as { node_id: string }[];

  // The mirror has not heard of it.
  deleteRepository(upstream, former.ownerId, former);
  const other = createRepository(upstream, former.ownerId, { ownerId: former.ownerId, name });
  for (const number of numbers)
    createIssue(upstream, former.ownerId, { repository: other, title: `the other's ${number}` });
  const others = () => [...other.rows.issuesByCreated.ascending()].map((one) => [one.number, one.title, one.state]);
  const untouched = others();
  const ask = async (method: string, path: string, body: object) =>
    (await askAt(world.url, method, path, { token: world.token, body: JSON.stringify(body) })).status;
  const writes = () => [
    ...numbers.map((number) => ask("PATCH", `/repos/${world.first}/issues/${number}`, { state: "closed", title: "x" })),
    ask("POST", `/repos/${world.first}/issues`, { title: "for the old one" }),
    ask("POST", `/repos/${world.first}/issues/${numbers[0]}/comments`, { body: "for the old one" }),
    ask("POST", `/repos/${world.first}/labels`, { name: "for the old one", color: "ffffff" }),
  ];
  for (const status of await Promise.all(writes())) expect(status).toBeGreaterThanOrEqual(400);
  const mutation = `mutation { closeIssue(input: { issueId: ${JSON.stringify(nodeId)} }) { issue { state } } }`;
  const closed = await askAt(world.url, "POST", "/graphql", {
    token: world.token,
    body: JSON.stringify({ query: mutation }),
  });
  expect(closed.body).toMatchObject({ errors: [expect.anything()] });
  await world.settle();
  expect(others()).toEqual(untouched);
  expect(await shown()).toEqual(before);

  world.advance(3_600_000);
  await world.catchUp();
  expect(await world.ctx.db.query(sql`select state from repository_syncs where repository_id = ${former.id}`)).toEqual([
    { state: "paused" },
  ]);
  world.simulator.meter.reset();
  for (const status of await Promise.all(writes())) expect(status).toBe(503);
  const { routes } = world.simulator.meter.read();
  expect(Object.keys(routes).filter((route) => /^(PATCH|POST) \/rep/.test(route))).toEqual([]);
  expect(others()).toEqual(untouched);
});
