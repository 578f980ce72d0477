import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { objectOf, wholeOf } from "../../src/json.ts";
import { createRepository, renameRepository } from "../../src/simulator/changes/repositories.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { removeSelection } from "../../src/sync/following/removal.ts";
import { addSelections, resolveSelections } from "../../src/sync/following/selection.ts";
import { tryAgain } from "../../src/sync/problems/problems.ts";
import { withUpstream } from "../support/changed-upstream.ts";
import { OWNER } from "../support/config.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

const open = () =>
  openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 5, repositories: 4, issues: 12, pulls: 4 }),
  });

const states = async ({ ctx }: TestWorld) => {
  const rows = await ctx.db.query<{ name: string; state: string }>(sql`
    select full_name as name, state from repositories join repository_syncs on repository_id = id order by 1`);
  return Object.fromEntries(rows.map(({ name, state }) => [name, state]));
};

test("owner/* mirrors every repository of an owner, and asking again costs nothing", async () => {
  await using world = await open();
  const [owner] = world.first.split("/");
  await world.mirror(`${owner}/*`);
  expect(Object.keys(await states(world)).length).toBeGreaterThan(0);
  await world.settle();
  await resolveSelections(world.ctx);
  const { charged } = world.simulator.meter.read();
  await resolveSelections(world.ctx);
  expect(world.simulator.meter.read().charged).toBe(charged);
});

test("told to stop, it leaves the selections to the next time", async () => {
  await using world = await open();
  await addSelections(world.ctx, [world.first]);
  const { requests } = world.simulator.meter.read();
  await resolveSelections(world.ctx, AbortSignal.abort());
  expect([world.simulator.meter.read().requests, await states(world)]).toEqual([requests, {}]);
  await resolveSelections(world.ctx);
  expect(Object.keys(await states(world))).toEqual([world.first]);
});

test("a name that upstream does not know keeps its problem in words, and the others go on", async () => {
  await using world = await open();
  await addSelections(world.ctx, ["nobody/nothing", world.first]);
  await resolveSelections(world.ctx);
  const rows = await world.ctx.db.query(sql`select key as pattern, problem from problems where task = 'select'`);
  expect(rows).toEqual([
    {
      pattern: "nobody/nothing",
      problem: "upstream answers 404 (Not Found): check the name, and that the token may see it",
    },
  ]);
  expect(Object.keys(await states(world))).toEqual([world.first]);
});

test("a repository that is removed stays away although owner/* is selected, and comes back when it is named", async () => {
  await using world = await open();
  const [owner] = world.first.split("/");
  await world.mirror(`${owner}/*`);
  expect(await removeSelection(world.ctx, world.first, { purge: false })).toEqual([world.first]);
  await resolveSelections(world.ctx);
  expect((await states(world))[world.first]).toBe("gone");
  // The list of the owner's repositories has changed, so Tain reads it and not only confirms it.
  const { world: upstream } = world.simulator;
  const { ownerId = 0 } =
    [...upstream.repositories.values()].find((one) => upstream.fullName(one) === world.first) ?? {};
  createRepository(upstream, ownerId, { ownerId, name: "made-later" });
  await resolveSelections(world.ctx);
  expect(await states(world)).toMatchObject({ [`${owner}/made-later`]: expect.any(String), [world.first]: "gone" });
  expect((await world.get(`/repos/${world.first}`)).status).toBe(404);
  await world.mirror(world.first);
  expect((await states(world))[world.first]).toBe("live");
});

test("an exception from owner/* is never asked for by itself, stops what is mirrored, and ends when it is taken back or the name is added", async () => {
  await using world = await open();
  const [owner] = world.first.split("/");
  const excepted = `!${world.first.toUpperCase()}`;
  await addSelections(world.ctx, [`${owner}/*`, excepted]);
  await resolveSelections(world.ctx);
  const others = Object.keys(await states(world));
  expect(others.length).toBeGreaterThan(0);
  expect(others).not.toContain(world.first);
  expect(await world.ctx.db.count(sql`select from problems where task = 'select'`)).toBe(0);
  await world.mirror(world.first);
  expect((await states(world))[world.first]).toBe("live");
  await addSelections(world.ctx, [excepted]);
  await resolveSelections(world.ctx);
  expect((await states(world))[world.first]).toBe("gone");
  expect((await world.get(`/repos/${world.first}`)).status).toBe(404);
  expect(await removeSelection(world.ctx, excepted, { purge: false })).toEqual([]);
  await resolveSelections(world.ctx);
  expect(["backfilling", "live"]).toContain((await states(world))[world.first]);
});

test("an exception stays with its repository, whatever upstream calls it, and with the name", async () => {
  await using world = await open();
  const [owner] = world.first.split("/");
  const { world: upstream } = world.simulator;
  const secret = [...upstream.repositories.values()].find((one) => upstream.fullName(one) === world.first);
  if (!secret) throw new Error("The repository is not in the world");
  await addSelections(world.ctx, [`!${world.first}`, `${owner}/*`]);
  await resolveSelections(world.ctx);
  const before = Object.keys(await states(world));
  expect(before).not.toContain(world.first);
  renameRepository(upstream, secret.ownerId, secret, "harmless");
  createRepository(upstream, secret.ownerId, { ownerId: secret.ownerId, name: String(world.first.split("/")[1]) });
  createRepository(upstream, secret.ownerId, { ownerId: secret.ownerId, name: "another" });
  await resolveSelections(world.ctx);
  expect(Object.keys(await states(world)).sort()).toEqual([...before, `${owner}/another`].sort());
  // Named by what it is called now, it is excepted no more.
  await world.mirror(`${owner}/harmless`);
  expect((await states(world))[`${owner}/harmless`]).toBe("live");
});

test("owner/* that is removed and added again brings its repositories back", async () => {
  await using world = await open();
  const [owner] = world.first.split("/");
  await world.mirror(`${owner}/*`);
  await removeSelection(world.ctx, `${owner}/*`, { purge: false });
  expect(new Set(Object.values(await states(world)))).toEqual(new Set(["gone"]));
  await world.mirror(`${owner}/*`);
  expect(new Set(Object.values(await states(world)))).toEqual(new Set(["live"]));
});

test("purging leaves no row of the repository behind", async () => {
  await using world = await open();
  await world.mirror(world.first);
  await removeSelection(world.ctx, world.first, { purge: true });
  const rows = await world.ctx.db.query(sql`
      select (select count(*)::int from issues) as issues, (select count(*)::int from issue_comments) as comments,
        (select count(*)::int from labels) as labels, (select count(*)::int from validators
        where path like '/repositories/%') as validators, (select count(*)::int from repository_syncs) as syncs`);
  expect(rows).toEqual([{ issues: 0, comments: 0, labels: 0, validators: 0, syncs: 0 }]);
});

test("owner/* of the user whose token mirrors has their private repositories, and asking again costs nothing", async () => {
  await using world = await open();
  const { world: upstream, meter } = world.simulator;
  const me = upstream.userByLogin(OWNER)?.id ?? 0;
  for (const visibility of ["public", "private"] as const)
    createRepository(upstream, me, { ownerId: me, name: `my-${visibility}`, visibility });
  await world.mirror(`${OWNER}/*`);
  expect(Object.keys(await states(world))).toEqual([`${OWNER}/my-private`, `${OWNER}/my-public`]);
  await resolveSelections(world.ctx);
  meter.reset();
  await resolveSelections(world.ctx);
  expect(meter.read()).toMatchObject({ requests: 1, charged: 0 });
});

test("a name that upstream does not know costs twelve requests a day at most, and is asked at once when it is named again", async () => {
  await using world = await open();
  await addSelections(world.ctx, ["nobody/nothing", "nobody/*"]);
  const { meter } = world.simulator;
  const day = async () => {
    meter.reset();
    for (let minutes = 0; minutes < 24 * 60; minutes += 5) {
      await resolveSelections(world.ctx);
      world.advance(5 * 60_000);
    }
    return meter.read().requests;
  };
  await day();
  expect(await day()).toBeLessThanOrEqual(2 * 12);
  meter.reset();
  await tryAgain(world.ctx.db, { task: "select", keys: ["nobody/nothing"] });
  await resolveSelections(world.ctx);
  expect(meter.read().requests).toBeGreaterThan(0);
});

test("a wish that upstream refuses keeps its problem in words, and the others go on", async () => {
  await using world = await open();
  await addSelections(world.ctx, ["a/forbidden", world.first]);
  world.simulator.setFaults({ http: [{ match: "^GET /repos/a/forbidden$", kind: "refusal", as: "saml" }] });
  await resolveSelections(world.ctx);
  expect(Object.keys(await states(world))).toEqual([world.first]);
  const rows = await world.ctx.db.query(sql`select key, cause, problem from problems`);
  expect(rows).toEqual([
    { key: "a/forbidden", cause: "refused", problem: expect.stringContaining("SAML enforcement") },
  ]);
});

test("a repository that moves again and again is asked for twice, and keeps that as its problem", async () => {
  await using world = await open();
  await addSelections(world.ctx, ["goes/round"]);
  let asked = 0;
  const moving = withUpstream(world.ctx, {
    get: async () => {
      asked++;
      if (asked > 9) throw new Error("It is asked for without end");
      return { kind: "moved", location: "/repositories/1" };
    },
  });
  await resolveSelections(moving);
  expect(asked).toBe(2);
  expect(await world.ctx.db.query(sql`select problem from problems where task = 'select'`)).toEqual([
    { problem: "upstream says again and again that goes/round has moved" },
  ]);
});

test("a repository that has moved is followed to its new place, told by id or by name, and to nothing else", async () => {
  await using world = await open();
  const { upstream } = world.ctx;
  const shown = await upstream.get(`/repos/${world.first}`, { priority: "caller" });
  const id = shown.kind === "ok" ? wholeOf(objectOf(shown.body).id) : null;
  const places: Record<string, string> = {
    "/repos/old/by-name": `/repos/${world.first}`,
    "/repos/old/by-id": `/repositories/${id}`,
    "/repos/old/elsewhere": "/users/old",
  };
  await addSelections(world.ctx, ["old/by-name", "old/by-id", "old/elsewhere"]);
  const asked: string[] = [];
  const moving = withUpstream(world.ctx, {
    get: async (path, options) => {
      asked.push(path);
      const location = places[path];
      return location === undefined ? await upstream.get(path, options) : { kind: "moved", location };
    },
  });
  await resolveSelections(moving);
  expect(Object.keys(await states(world))).toEqual([world.first]);
  expect(asked).toEqual(expect.arrayContaining(Object.keys(places)));
  expect(asked).not.toContain("/users/old");
  expect(await world.ctx.db.query(sql`select key, problem from problems where task = 'select'`)).toEqual([
    { key: "old/elsewhere", problem: "upstream says that old/elsewhere has moved, and not where to" },
  ]);
});
