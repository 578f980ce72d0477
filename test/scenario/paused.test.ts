/**
 * When upstream stops showing a repository, its owner may have hidden it. So the mirror shows it to nobody on its own
 * word alone.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { setVisibility } from "../../src/simulator/changes/repositories.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { askAt } from "../support/asking.ts";
import { OWNER, UPSTREAM_TOKEN } from "../support/config.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

async function open(env: NodeJS.ProcessEnv = {}): Promise<TestWorld> {
  const world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 1, issues: 6, pulls: 2 }),
    env: { RATE_LIMIT_ANONYMOUS: "0", ...env },
  });
  await world.mirror(world.first);
  return world;
}

function repositoryOf({ simulator, first }: TestWorld) {
  const [owner = "", name = ""] = first.split("/");
  const found = simulator.world.repositoryByName(owner, name)?.repository;
  if (!found) throw new Error("The generated repository is not there");
  return found;
}

/** The owner makes the repository private, and the mirror's token does not see private ones. */
async function hide(world: TestWorld): Promise<void> {
  const repository = repositoryOf(world);
  setVisibility(world.simulator.world, repository.ownerId, repository, "private");
  mayRead(world, []);
  await world.catchUp();
  const rows = await world.ctx.db.query(sql`select state from repository_syncs`);
  expect(rows).toEqual([{ state: "paused" }]);
}

function mayRead({ simulator }: TestWorld, repositories: "all" | string[]): void {
  simulator.tokens.delete(UPSTREAM_TOKEN);
  simulator.tokens.create({ token: UPSTREAM_TOKEN, login: OWNER, repositories, write: true });
}

const statusAt = async ({ url }: TestWorld, path: string, token?: string) =>
  (await askAt(url, "GET", path, token === undefined ? {} : { token })).status;

describe("a repository that upstream does not show any more", () => {
  let world: TestWorld;
  beforeAll(async () => {
    world = await open();
    // The second answer comes from a kept page.
    for (const _ of [1, 2]) expect(await statusAt(world, `/repos/${world.first}/issues`)).toBe(200);
    await hide(world);
  });
  afterAll(() => world?.[Symbol.asyncDispose]());

  test("is hidden from anonymous callers, in each list and search, and where its page was kept", async () => {
    const [owner = ""] = world.first.split("/");
    expect(await statusAt(world, `/repos/${world.first}/issues`)).toBe(404);
    expect(await statusAt(world, `/repos/${world.first}`)).toBe(404);
    const found = await askAt(world.url, "GET", "/search/issues?q=is:issue", {});
    expect(found.body).toMatchObject({ total_count: 0, items: [] });
    // The service answers a search in a repository that the caller may not see in the same way.
    expect(await statusAt(world, `/search/issues?q=repo:${world.first}`)).toBe(422);
    expect((await askAt(world.url, "GET", `/users/${owner}/repos`, {})).body).toEqual([]);
  });

  test("is shown to our own tokens", async () => {
    expect(await statusAt(world, `/repos/${world.first}/issues`, world.token)).toBe(200);
  });

  test("is shown to those to whom upstream shows it, and to no others", async () => {
    const token = (of: string, repositories: string[]) => {
      world.simulator.tokens.create({ token: `ghp_${of}`, login: of, repositories });
      return `ghp_${of}`;
    };
    expect(await statusAt(world, `/repos/${world.first}/issues`, token("insider", [world.first]))).toBe(200);
    expect(await statusAt(world, `/repos/${world.first}/issues`, token("outsider", []))).toBe(404);
  });

  test("is shown to all again once upstream was read, and is public", async () => {
    const repository = repositoryOf(world);
    mayRead(world, "all");
    await world.catchUp();
    expect(await statusAt(world, `/repos/${world.first}/issues`)).toBe(404);
    setVisibility(world.simulator.world, repository.ownerId, repository, "public");
    world.advance(10 * 60_000);
    await world.catchUp();
    expect(await statusAt(world, `/repos/${world.first}/issues`)).toBe(200);
  });
});

test("one that was public all the while is public again after the next read, though nothing has changed at upstream", async () => {
  await using world = await open();
  const match = `^GET /repositories/${repositoryOf(world).id}$`;
  world.simulator.faults.set({ http: [{ kind: "status", status: 404, match, times: 1 }] });
  await world.catchUp();
  expect(await statusAt(world, `/repos/${world.first}`)).toBe(404);
  world.advance(10 * 60_000);
  await world.catchUp();
  const shown = await askAt(world.url, "GET", `/repos/${world.first}`, {});
  expect(shown.body).toMatchObject({ private: false, visibility: "public" });
});

test("a single false 404 hides it until upstream has been asked once more, and no longer", async () => {
  await using world = await open();
  const match = `^GET /repositories/${repositoryOf(world).id}$`;
  world.simulator.setFaults({ http: [{ kind: "refusal", as: "absent", match, times: 1 }] });
  await world.catchUp();
  expect(world.simulator.faults.struck.get("refusal")).toBe(1);
  expect(await statusAt(world, `/repos/${world.first}`)).toBe(404);
  await world.settleMarks();
  expect(await statusAt(world, `/repos/${world.first}`)).toBe(200);
  const rows = await world.ctx.db.query(sql`select state from repository_syncs`);
  expect(rows).toEqual([{ state: "live" }]);
});

test("with PAUSED_REPOSITORIES=shown it is served as it was", async () => {
  await using world = await open({ PAUSED_REPOSITORIES: "shown" });
  await hide(world);
  expect(await statusAt(world, `/repos/${world.first}/issues`)).toBe(200);
});
