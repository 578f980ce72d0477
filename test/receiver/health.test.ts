import { request } from "node:http";
import Fastify, { type FastifyInstance } from "fastify";
import { describe, expect, test } from "vitest";
import { type Local, openLocal } from "../../src/context.ts";
import { health } from "../../src/health/routes.ts";
import { openTestDatabase, testRedis } from "../support/database.ts";
import { eventually } from "../support/patience.ts";
import { openLink } from "./breakable-link.ts";
import { NOWHERE, testConfig } from "./receiver-world.ts";

const OPERATOR = "the-operators-token";

async function openHealth(
  env: NodeJS.ProcessEnv = {},
): Promise<{ app: FastifyInstance; ctx: Local } & AsyncDisposable> {
  const resources = new AsyncDisposableStack();
  const databaseUrl = env.DATABASE_URL ?? resources.use(await openTestDatabase()).url;
  const redis = testRedis();
  const ctx = await openLocal(
    testConfig({
      DATABASE_URL: databaseUrl,
      REDIS_URL: redis.url,
      REDIS_PREFIX: redis.prefix,
      OPERATOR_TOKEN: OPERATOR,
      ...env,
    }),
    resources,
    { name: "test" },
  );
  resources.defer(async () => {
    if (ctx.redis.status === "ready")
      await Promise.all(Object.values(ctx.queues).map((queue) => queue.obliterate({ force: true })));
  });
  const app = Fastify();
  // As the API does: whatever path no other route has taken.
  app.all("/*", async (request, reply) => reply.code(404).send({ message: "Not Found", path: request.url }));
  await app.register(health(ctx, { quota: async () => [{ bucket: "core", remaining: 4_999 }] }));
  resources.defer(() => app.close());
  return { app, ctx, [Symbol.asyncDispose]: () => resources.disposeAsync() };
}

const get = async (app: FastifyInstance, url: string, headers = {}, remoteAddress = "127.0.0.1") =>
  await app.inject({ url, headers: { host: "localhost:8080", ...headers }, remoteAddress });

describe("probes", () => {
  test("all there: live and ready", async () => {
    await using world = await openHealth();
    expect((await get(world.app, "/-/live")).statusCode).toBe(200);
    expect((await get(world.app, "/-/ready")).json()).toEqual({ ready: true });
  });

  test("both stores away: live, not ready, and it says what is missing", async () => {
    await using world = await openHealth({ DATABASE_URL: NOWHERE.databaseUrl, REDIS_URL: NOWHERE.redisUrl });
    expect((await get(world.app, "/-/live")).statusCode).toBe(200);
    const answer = await get(world.app, "/-/ready");
    expect(answer.statusCode).toBe(503);
    expect(answer.json()).toEqual({
      ready: false,
      missing: [expect.stringMatching(/^postgres: .*ECONNREFUSED/), "redis: cannot be reached"],
    });
  });

  test("stores that do not answer: told while they do not, and ready again when they do", async () => {
    const database = await openTestDatabase();
    await using postgres = await openLink(database.url);
    await using redis = await openLink(testRedis().url);
    await using world = await openHealth({ DATABASE_URL: postgres.url, REDIS_URL: redis.url });
    await get(world.app, "/-/ready");
    postgres.freeze();
    redis.freeze();
    const answer = await get(world.app, "/-/ready");
    expect(answer.json()).toMatchObject({
      ready: false,
      missing: [expect.stringMatching(/^postgres: /), expect.stringMatching(/^redis: /)],
    });
    await postgres.mend();
    await redis.mend();
    await eventually(async () => expect((await get(world.app, "/-/ready")).json()).toEqual({ ready: true }));
  });

  test("a schema that is older or newer than the code: not ready, and it says what to do", async () => {
    await using world = await openHealth();
    const sql = (text: string) => world.ctx.db.$client.query(text);
    await sql("insert into schema_migrations (version, name) values (9999, '9999_future.sql')");
    expect((await get(world.app, "/-/ready")).json().missing).toEqual([expect.stringMatching(/^schema: a newer Tain/)]);
    await sql("delete from schema_migrations");
    expect((await get(world.app, "/-/ready")).json().missing).toEqual([
      expect.stringMatching(/^schema: .*node db\/migrate\.ts/),
    ]);
    await sql("drop table schema_migrations");
    expect((await get(world.app, "/-/ready")).json().missing).toEqual([expect.stringMatching(/^schema: /)]);
  });

  test("a Redis that throws keys away when memory is short: not ready", async () => {
    await using world = await openHealth();
    await world.ctx.redis.config("SET", "maxmemory-policy", "allkeys-lru");
    try {
      expect((await get(world.app, "/-/ready")).json().missing).toEqual([expect.stringContaining("allkeys-lru")]);
    } finally {
      await world.ctx.redis.config("SET", "maxmemory-policy", "noeviction");
    }
  });
});

describe("who may see the status", () => {
  test("a direct caller at this machine, by any of its names", async () => {
    await using world = await openHealth();
    for (const host of ["localhost", "localhost:8080", "127.0.0.1:8080", "[::1]:8080", "github.localhost"]) {
      for (const address of ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"]) {
        expect((await get(world.app, "/-/status", { host }, address)).statusCode, `${host} ${address}`).toBe(200);
      }
    }
  });

  test("the operator's token from anywhere, also through a proxy", async () => {
    await using world = await openHealth();
    const headers = { authorization: `Bearer ${OPERATOR}`, "x-forwarded-for": "203.0.113.9", host: "tain.example.com" };
    expect((await get(world.app, "/-/status", headers, "203.0.113.9")).statusCode).toBe(200);
  });

  test("nobody else: to them there is no such page", async () => {
    await using world = await openHealth();
    const unknown = await get(world.app, "/-/nothing", {}, "203.0.113.9");
    const others: [Record<string, string>, string][] = [
      [{}, "203.0.113.9"],
      [{}, "::ffff:203.0.113.9"],
      [{ "x-forwarded-for": "127.0.0.1" }, "127.0.0.1"],
      [{ forwarded: "for=127.0.0.1" }, "127.0.0.1"],
      [{ "x-real-ip": "127.0.0.1" }, "127.0.0.1"],
      [{ via: "1.1 proxy" }, "127.0.0.1"],
      [{ host: "tain.example.com" }, "127.0.0.1"],
      [{ host: "127.0.0.1.example.com" }, "127.0.0.1"],
      [{ authorization: "Bearer wrong" }, "203.0.113.9"],
      [{ authorization: `Bearer ${OPERATOR}x` }, "203.0.113.9"],
      [{ authorization: `Basic ${OPERATOR}` }, "203.0.113.9"],
      [{ authorization: "Bearer " }, "203.0.113.9"],
    ];
    for (const [headers, address] of others) {
      const answer = await get(world.app, "/-/status", headers, address);
      expect(answer.statusCode, JSON.stringify([headers, address])).toBe(404);
      expect(answer.body.replace("/-/status", "/-/nothing")).toBe(unknown.body);
    }
  });

  test("no token is set: an empty one opens nothing", async () => {
    await using world = await openHealth({ OPERATOR_TOKEN: "" });
    for (const authorization of ["Bearer ", "Bearer null", "Bearer undefined"]) {
      expect((await get(world.app, "/-/status", { authorization }, "203.0.113.9")).statusCode).toBe(404);
    }
  });

  test("over a real connection", async () => {
    await using world = await openHealth();
    const url = await world.app.listen({ host: "127.0.0.1", port: 0 });
    expect((await fetch(`${url}/-/status`)).status).toBe(200);
    const rebound = await new Promise<number | undefined>((resolve, reject) => {
      request(`${url}/-/status`, { headers: { host: "attacker.example" } }, (answer) =>
        resolve(answer.resume().statusCode),
      )
        .on("error", reject)
        .end();
    });
    expect(rebound).toBe(404);
  });
});

test("the status lists repositories with their progress, wishes without one, queues and quota", async () => {
  await using world = await openHealth();
  await world.ctx.db.$client.query(`
    insert into repositories (id, name, full_name, private, document, seen_at, seen_by_read) values
      (1, 'live', 'octo/live', false, '{}', now(), true), (2, 'Young', 'octo/Young', true, '{}', now(), true), (3, 'gone', 'hub/gone', false, '{}', now(), true);
    insert into repository_syncs (repository_id, state, added_at, confirmed_at, problem) values
      (1, 'live', now(), now() - interval '90 seconds', null), (2, 'backfilling', now(), null, null), (3, 'gone', now(), null, 'deleted');
    insert into backfill_phases (repository_id, phase, pages, resources, expected_pages, started_at, finished_at) values
      (1, 'issues', 2, 150, 3, now(), now()), (1, 'comments', 1, 9, 1, now(), now()),
      (2, 'issues', 3, 300, 12, now(), null), (2, 'comments', 0, 0, null, null, null);
    insert into selections (pattern, added_at, problem) values
      ('octo/live', now(), null), ('octo/young', now(), null), ('octo/*', now(), null), ('lost/lost', now(), 'There is no such repository'), ('new/*', now(), null);`);
  await world.ctx.queues.backfill.add("backfill", { repositoryId: 2 });
  const status = (await get(world.app, "/-/status")).json();
  expect(status).toMatchObject({
    version: expect.stringMatching(/^\d+\.\d+\.\d+/),
    upstream: "http://127.0.0.1:1",
    queues: { backfill: { waiting: 1, active: 0, delayed: 0, failed: 0 }, deliveries: { waiting: 0 } },
    quota: [{ bucket: "core", remaining: 4_999 }],
  });
  const untouched = { progress: null, confirmedAt: null, lagSeconds: null };
  expect(status.repositories).toEqual([
    { owner: "hub", name: "gone", state: "gone", problem: "deleted", ...untouched },
    { owner: "lost", name: "lost", state: "backfilling", problem: "There is no such repository", ...untouched },
    { owner: "new", name: "*", state: "backfilling", problem: null, ...untouched },
    {
      owner: "octo",
      name: "live",
      state: "live",
      progress: { phase: null, pages: 3, resources: 159, expectedPages: 3, percent: 100 },
      confirmedAt: expect.stringMatching(/^\d{4}-.*Z$/),
      lagSeconds: expect.closeTo(90, -1),
      problem: null,
    },
    {
      owner: "octo",
      name: "Young",
      state: "backfilling",
      progress: { phase: "issues", pages: 3, resources: 300, expectedPages: null, percent: null },
      confirmedAt: null,
      lagSeconds: null,
      problem: null,
    },
  ]);
});

test("with Redis away the status still says what Postgres knows", async () => {
  await using world = await openHealth({ REDIS_URL: NOWHERE.redisUrl });
  expect((await get(world.app, "/-/status")).json()).toMatchObject({ repositories: [], queues: null });
});
