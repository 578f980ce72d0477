import examples from "@octokit/webhooks-examples" with { type: "json" };
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { stepsOf } from "../../db/apply.ts";
import { MIGRATIONS, readMigration } from "../../db/migrations.ts";
import { sql } from "../../db/sql.ts";
import { apiTokenId, createApiToken, revokeApiTokens } from "../../src/api/callers/tokens.ts";
import { EVENT_NAMES } from "../../src/events/event-names.ts";
import { wakeDue } from "../../src/events/log.ts";
import { findTarget, listTargets, removeTarget } from "../../src/events/target.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { tainOn } from "../cli/tain-on.ts";
import { askAt } from "../support/asking.ts";
import { openWorld, type TestWorld } from "../support/world.ts";
import { openTargetServer, type TargetServer } from "./target-server.ts";
import { type ToldRepository, tell } from "./tell.ts";

// Hooks are bounded in number and size, are somebody's, and end with the right of whom they belong to.

// biome-ignore lint/suspicious/noExplicitAny: answers are picked from, not trusted
type Body = any;

let world: TestWorld;
let server: TargetServer;
let path: string;
let repository: ToldRepository;
let userId: number;
/** Of ours, and may register hooks. */
let ours: string;

const ADMIN = "ghp_admin";

beforeAll(async () => {
  world = await openWorld({
    fill: (simulator) => {
      generateWorld(simulator.world, { seed: 7, repositories: 1, issues: 2, pulls: 0 });
      simulator.tokens.create({ token: ADMIN, login: "an-admin", repositories: "all" });
    },
    env: { TARGETS_ALLOWED: "127.0.0.1", AUTH_MODE: "both", RATE_LIMIT_USER: "0" },
  });
  await world.mirror(world.first);
  path = `/repos/${world.first}/hooks`;
  repository = (await world.get(`/repos/${world.first}`)).body as ToldRepository;
  userId = ((await world.get("/user")).body as Body).id;
  server = await openTargetServer();
  ours = await hooksToken();
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  await world?.[Symbol.asyncDispose]();
});
beforeEach(async () => {
  for (const { id } of await listTargets(world.ctx)) await removeTarget(world.ctx, id);
  server.heard.length = 0;
});

const hooksToken = (more: object = {}) =>
  createApiToken(world.ctx, { userId, canWrite: false, permissions: ["hooks:write"], ...more });

const ask = (method: string, at: string, body?: object | string, token: string = ours) =>
  askAt(world.url, method, at, {
    token,
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });

const hook = (config: object = {}, more: object = {}) => ({
  config: { url: "https://ci.example/hook", ...config },
  ...more,
});

const messages = ({ body }: Body): string[] => body.errors?.map((one: Body) => one.message ?? one.code);

describe("a repository's hooks are bounded", () => {
  test("in number, for each event and in all, also where all are made at once", async () => {
    const make = (at: number, events: string[]) =>
      ask("POST", path, hook({ url: `https://ci.example/${at}` }, { events }));
    const pushes = await Promise.all(Array.from({ length: 24 }, (_, at) => make(at, ["push"])));
    expect(pushes.filter(({ status }) => status === 201)).toHaveLength(20);
    for (const refused of pushes.filter(({ status }) => status !== 201))
      expect([refused.status, messages(refused)]).toEqual([422, ['The "push" event cannot have more than 20 hooks']]);
    expect((await make(30, ["*"])).status).toBe(422);
    const others = [...EVENT_NAMES].filter((name) => name !== "push").slice(0, 30);
    for (const [at, event] of others.entries()) expect((await make(100 + at, [event])).status).toBe(201);
    const beyond = await make(200, ["watch"]);
    expect([beyond.status, messages(beyond)]).toEqual([422, ["This repository cannot have more than 50 hooks"]]);
    const [{ id }] = (await ask("GET", path)).body;
    const widened = await ask("PATCH", `${path}/${id}`, { events: ["push", "*"] });
    expect(widened.status).toBe(422);
    // What there is can be ended.
    expect((await ask("PATCH", `${path}/${id}`, { active: false })).body.active).toBe(false);
    expect((await ask("DELETE", `${path}/${id}`)).status).toBe(204);
  });

  test.each<[string, object | string, number]>([
    ["an event that there is not", hook({}, { events: ["push", "anything_else"] }), 422],
    ["half a million events", JSON.stringify(hook({}, { events: Array(515_238).fill("push") })), 413],
    ["invented events", hook({}, { events: Array.from({ length: 2_000 }, (_, at) => `event_${at}`) }), 422],
    ["a long address", hook({ url: `https://ci.example/${"x".repeat(2_048)}` }), 422],
    ["a secret of megabytes", hook({ secret: "x".repeat(2_000_000) }), 413],
    ["a secret of kilobytes", hook({ secret: "x".repeat(4_000) }), 422],
    ["events that are a long text", hook({}, { events: "x".repeat(20_000) }), 422],
  ])("in size: %s is refused, and the answer is short", async (_what, body, status) => {
    const refused = await ask("POST", path, body);
    expect(refused.status).toBe(status);
    expect(refused.text.length).toBeLessThan(1_000);
    expect(await listTargets(world.ctx)).toEqual([]);
  });

  test("those of before are cut and paused by the migration, so that the list stays quick", async () => {
    const { ctx } = world;
    await ctx.db.query(sql`
      insert into targets (scope, scope_id, made_by, url, content_type, insecure_ssl, secret, events, active, created_at, updated_at)
        select 'repository', ${repository.id}, made_by, 'https://ci.example/' || repeat('x', url), 'json', false,
            decode(repeat('00', secret), 'hex'), array(select 'event_' || e from generate_series(1, events) e), true, now(), now()
          from (values (1, 'api', 10, 48, 515238), (2, 'api', 10, 2000000, 1), (3, 'api', 5000, 48, 1), (4, 'api', 10, 48, 75),
            (5, 'operator', 10, 48, 500)) t(n, made_by, url, secret, events) order by n`);
    const made = MIGRATIONS.find(({ name }) => name === "0049_makers_of_targets.sql");
    if (!made) throw new Error("There is no such migration");
    const step = stepsOf((await readMigration(made)).statements).find((one) => one.includes("update targets"));
    await ctx.db.query(sql.script(step ?? ""));
    const found = await listTargets(ctx);
    const why = "It was larger than hooks may be: set its URL, events and secret again";
    expect(found.map((one) => [one.pausedWhy, one.active, one.events.length, one.url.length > 2_048])).toEqual([
      [why, false, 200, false],
      [why, false, 1, false],
      [why, false, 1, false],
      [null, true, 75, false],
      [null, true, 500, false],
    ]);
    expect(found.map(({ sealedSecret }) => sealedSecret?.length ?? null)).toEqual([48, null, 48, 48, 48]);
  });

  test("and their events are all that the service documents", () => {
    // Its types say nothing of the published list.
    const names = (examples as unknown as { name: string }[]).map(({ name }) => name);
    expect(names.length).toBeGreaterThan(50);
    expect(names.filter((name) => !EVENT_NAMES.has(name))).toEqual([]);
  });
});

describe("a hook is somebody's", () => {
  test("the record of writes, the list of targets and its row name who made it, and no token", async () => {
    const { ctx } = world;
    const made = await ask("POST", path, hook());
    const byAdmin = await ask("POST", path, hook({ url: "https://ci.example/other" }), ADMIN);
    await ask("PATCH", `${path}/${made.body.id}`, { events: ["nothing"] });
    await ask("DELETE", `${path}/${byAdmin.body.id}`, undefined, ADMIN);
    const rows = await ctx.db.query(sql`select token_of, token, method, route, path, status, repository_id::float8 as of
      from writes where route like '%hooks%' order by id`);
    const form = "/repos/{owner}/{repo}/hooks";
    const written = { of: repository.id, token_of: "own", token: apiTokenId(ours) };
    const theirs = { of: repository.id, token_of: "upstream", token: expect.not.stringContaining(ADMIN) };
    expect(rows.slice(-4)).toEqual([
      { ...written, method: "POST", route: form, path: expect.stringContaining("/hooks"), status: 201 },
      { ...theirs, method: "POST", route: form, path: expect.stringContaining("/hooks"), status: 201 },
      { ...written, method: "PATCH", route: `${form}/{hook_id}`, path: expect.any(String), status: 422 },
      { ...theirs, method: "DELETE", route: `${form}/{hook_id}`, path: expect.any(String), status: 204 },
    ]);
    const { json, stdout } = await tainOn(world, ["targets", "list", "--json"], { TARGETS_ALLOWED: "127.0.0.1" });
    expect(json.targets).toMatchObject([{ maker: { userId, tokenOf: "own", token: apiTokenId(ours) }, state: "on" }]);
    expect(stdout).not.toContain(ours);
  });

  test("hundreds of them are listed at once", async () => {
    await world.ctx.db.query(sql`
      insert into targets (scope, scope_id, made_by, url, content_type, insecure_ssl, events, active, created_at, updated_at)
        select 'repository', ${repository.id}, 'api', 'https://ci.example/' || n, 'json', false,
            array(select 'event_' || e from generate_series(1, 150) e), true, now(), now()
          from generate_series(1, 400) n`);
    const env = { TARGETS_ALLOWED: "127.0.0.1" };
    const listed = await tainOn(world, ["targets", "list", "--json"], env);
    expect([listed.code, listed.json.targets.length]).toEqual([0, 400]);
    const table = await tainOn(world, ["targets", "list"], env);
    expect(table.code).toBe(0);
    expect(table.stdout).toContain("150 events");
    expect((await ask("GET", `${path}?per_page=100`)).body).toHaveLength(100);
  });
});

/** Has the mirror look for makers that may register hooks no more, as the scheduler does. */
const looked = () => wakeDue(world.ctx);

const starred = () => tell(world, { event: "star", payload: { action: "created", repository } });

describe("a hook is paused, and its owner reads why", () => {
  const REVOKED = "The token that made it was revoked";

  test.each<[string, () => Promise<[string, (token: string) => Promise<unknown>]>, string]>([
    [
      "its token is revoked",
      async () => [await hooksToken(), (token) => revokeApiTokens(world.ctx, [apiTokenId(token)])],
      REVOKED,
    ],
    [
      "its token ends",
      async () => [await hooksToken({ expiresAt: new Date(Date.now() + 3_600_000) }), endToken],
      "The token that made it has ended",
    ],
    [
      "its token loses the permission",
      async () => [
        await hooksToken(),
        (token) => world.ctx.db.query(sql`update api_tokens set permissions = '{}' where id = ${apiTokenId(token)}`),
      ],
      "The token that made it may register no such hook any more",
    ],
    [
      "its token loses the repository",
      async () => [
        await hooksToken({ scope: { repositoryIds: [repository.id], ownerIds: [] } }),
        (token) => world.ctx.db.query(sql`update api_tokens set repository_ids = '{}' where id = ${apiTokenId(token)}`),
      ],
      "The token that made it may register no such hook any more",
    ],
  ])("once %s", async (_what, given, why) => {
    const [token, end] = await given();
    const config = { url: server.url, content_type: "json" };
    const made = await ask("POST", path, hook(config, { events: ["star"] }), token);
    const at = `${path}/${made.body.id}`;
    await starred();
    await server.hears(1);
    await looked();
    expect((await ask("GET", at)).body.active).toBe(true);

    await end(token);
    await looked();
    const shown = await ask("GET", at, undefined, ADMIN);
    expect(shown.body).toMatchObject({ active: false, last_response: { status: "paused", message: why } });
    expect(shown.headers.get("x-tain-paused")).toBe(why);
    const listed = await tainOn(world, ["targets", "list", "--json"], { TARGETS_ALLOWED: "127.0.0.1" });
    expect(listed.json.targets).toMatchObject([{ state: "paused", problem: why }]);
    await starred();
    await world.settle();
    expect(server.heard).toHaveLength(1);

    // Whoever may administer the repository answers for it from now on.
    expect((await ask("PATCH", at, { active: true }, ADMIN)).body.active).toBe(true);
    await looked();
    const guid = await starred();
    await server.hears(2);
    expect(server.heard.map((heard) => heard.guid)[1]).toBe(guid);
    expect((await findTarget(world.ctx, made.body.id))?.maker).toMatchObject({ tokenOf: "upstream" });
    expect((await ask("DELETE", at, undefined, ADMIN)).status).toBe(204);
  });

  async function endToken(token: string): Promise<void> {
    await world.ctx.db.query(
      sql`update api_tokens set expires_at = now() - interval '1 hour' where id = ${apiTokenId(token)}`,
    );
  }

  test("an operator resumes it for good", async () => {
    const token = await hooksToken();
    const { body } = await ask("POST", path, hook(), token);
    await revokeApiTokens(world.ctx, [apiTokenId(token)]);
    await looked();
    const { code } = await tainOn(world, ["targets", "enable", String(body.id)], { TARGETS_ALLOWED: "127.0.0.1" });
    expect(code).toBe(0);
    await looked();
    expect(await findTarget(world.ctx, body.id)).toMatchObject({ active: true, pausedWhy: null, maker: null });
  });

  test("once upstream refuses the token, or takes the right from its owner", async () => {
    const { tokens, world: upstream } = world.simulator;
    const repositoryThere = upstream.repositories.get(repository.id);
    const persons = ["leaves", "falls"].map((login) => {
      const { userId: id } = tokens.create({ token: `ghp_${login}`, login });
      repositoryThere?.collaborators.set(id, "admin");
      return { id, token: `ghp_${login}` };
    });
    const ids: number[] = [];
    for (const [at, { token }] of persons.entries()) {
      const made = await ask("POST", path, hook({ url: `https://ci.example/${at}` }), token);
      expect(made.status, made.text).toBe(201);
      ids.push(made.body.id);
    }
    tokens.delete("ghp_leaves");
    repositoryThere?.collaborators.set(persons[1]?.id ?? 0, "pull");
    world.advance(61_000);
    for (const { token } of persons) await ask("GET", `/repos/${world.first}`, undefined, token);
    const found = await Promise.all(ids.map((id) => findTarget(world.ctx, id)));
    expect(found.map((one) => [one?.active, one?.pausedWhy])).toEqual([
      [false, "Upstream refuses the token that made it"],
      [false, "Who made it may not administer the repository at upstream any more"],
    ]);
  });
});
