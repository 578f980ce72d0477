import { type IncomingMessage, request } from "node:http";
import { describe, expect, test, vi } from "vitest";
import { sql } from "../../db/sql.ts";
import { isOperator } from "../../src/health/operator.ts";
import { findLacking } from "../../src/health/readiness.ts";
import { openSimulator } from "../../src/simulator/simulator.ts";
import { VERSION } from "../../src/version.ts";
import { NOWHERE } from "../support/config.ts";
import { openTestDatabase, testRedis } from "../support/database.ts";
import { openMirror, type TestMirror } from "../support/mirror.ts";
import { eventually } from "../support/patience.ts";
import { openLink } from "./breakable-link.ts";

const OPERATOR = "the-operators-token";
const AS_OPERATOR = { authorization: `Bearer ${OPERATOR}` };

const openHealth = (env: NodeJS.ProcessEnv = {}) => openMirror({ env: { OPERATOR_TOKEN: OPERATOR, ...env } });

interface Got {
  status: number;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: bodies are compared and picked from, not trusted
  body: any;
}

/** Asks from this machine, under the name `localhost` unless told otherwise. */
async function get(mirror: TestMirror, path: string, headers: Record<string, string> = {}): Promise<Got> {
  const sent = { host: "localhost:8080", "user-agent": "test", ...headers };
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    request(mirror.url + path, { headers: sent, agent: false }, resolve)
      .on("error", reject)
      .end();
  });
  const text = (await answer.toArray()).join("");
  return { status: answer.statusCode ?? 0, text, body: JSON.parse(text) };
}

describe("probes", () => {
  test("all there: live and ready", async () => {
    await using world = await openHealth();
    expect((await get(world, "/-/live")).status).toBe(200);
    expect((await get(world, "/-/ready")).body).toEqual({ ready: true });
  });

  test("both stores away: live, not ready, and it says what is missing", async () => {
    await using world = await openHealth({ DATABASE_URL: NOWHERE.database, REDIS_URL: NOWHERE.redis });
    expect((await get(world, "/-/live")).status).toBe(200);
    const answer = await get(world, "/-/ready", AS_OPERATOR);
    expect(answer.status).toBe(503);
    expect(answer.body).toEqual({
      ready: false,
      missing: [expect.stringMatching(/^postgres: .*ECONNREFUSED/), "redis: cannot be reached"],
    });
  });

  test("strangers hear what is missing, and neither where it was looked for nor what was said there", async () => {
    await using world = await openHealth({ DATABASE_URL: NOWHERE.database, REDIS_URL: NOWHERE.redis });
    for (const headers of [{}, { authorization: "Bearer wrong" }]) {
      const answer = await get(world, "/-/ready", headers);
      expect(answer.status).toBe(503);
      expect(answer.body).toEqual({ ready: false, missing: ["postgres", "redis"] });
    }
  });

  test("the log says why, once for each reason", async () => {
    await using world = await openHealth();
    const warn = vi.spyOn(world.ctx.log, "warn");
    const run = (text: string) => world.ctx.db.query(sql.script(text));
    await get(world, "/-/ready");
    expect(warn).not.toHaveBeenCalled();
    await run("delete from schema_migrations");
    await get(world, "/-/ready");
    await get(world, "/-/ready");
    const missing = ["schema: migrations are missing; run `node db/migrate.ts`"];
    expect(warn.mock.calls).toEqual([[{ missing }, "Not ready"]]);
    await run("insert into schema_migrations (version, name, oldest_tain) values (9999, '9999_future.sql', '99.0.0')");
    await get(world, "/-/ready");
    expect(warn).toHaveBeenCalledTimes(2);
  });

  test("stores that do not answer: told while they do not, and ready again when they do", async () => {
    const database = await openTestDatabase();
    await using postgres = await openLink(database.url);
    await using redis = await openLink(testRedis().url);
    await using world = await openHealth({ DATABASE_URL: postgres.url, REDIS_URL: redis.url });
    await get(world, "/-/ready");
    postgres.freeze();
    redis.freeze();
    const answer = await get(world, "/-/ready");
    expect(answer.body).toMatchObject({
      ready: false,
      missing: ["postgres", "redis"],
    });
    await postgres.mend();
    await redis.mend();
    await eventually(async () => expect((await get(world, "/-/ready")).body).toEqual({ ready: true }));
  });

  test("a schema beside which this version may not work, or migrations that are missing: not ready, and it says what to do", async () => {
    await using world = await openHealth();
    const run = (text: string) => world.ctx.db.query(sql.script(text));
    await run("insert into schema_migrations (version, name, oldest_tain) values (9999, '9999_future.sql', '99.0.0')");
    const answer = await get(world, "/-/ready", AS_OPERATOR);
    expect(answer.status).toBe(503);
    expect(answer.body.missing).toEqual([
      `schema: This is Tain ${VERSION}; the database has been migrated for 99.0.0 and later: start 99.0.0 or later, or restore a backup from before that migration`,
    ]);
    await run("delete from schema_migrations");
    expect((await get(world, "/-/ready", AS_OPERATOR)).body.missing).toEqual([
      expect.stringMatching(/^schema: .*node db\/migrate\.ts/),
    ]);
    await run("drop table schema_migrations");
    expect((await get(world, "/-/ready", AS_OPERATOR)).body.missing).toEqual([expect.stringMatching(/^schema: /)]);
  });

  test("a newer schema beside which this version may work: ready", async () => {
    await using world = await openHealth();
    const name = "9999_future.sql";
    await world.ctx.db.query(
      sql`insert into schema_migrations (version, name, oldest_tain) values (9999, ${name}, ${VERSION})`,
    );
    expect((await get(world, "/-/ready")).body).toEqual({ ready: true });
  });

  test("a Redis that throws keys away when memory is short: not ready", async () => {
    await using world = await openHealth();
    await world.ctx.redis.config("SET", "maxmemory-policy", "allkeys-lru");
    try {
      expect((await get(world, "/-/ready", AS_OPERATOR)).body.missing).toEqual([
        expect.stringContaining("allkeys-lru"),
      ]);
    } finally {
      await world.ctx.redis.config("SET", "maxmemory-policy", "noeviction");
    }
  });
});

test("a mistake of ours does not pass for a store that is away", async () => {
  await using mirror = await openHealth();
  const db = Object.create(mirror.ctx.db, {
    query: {
      value: async () => {
        throw new TypeError("a mistake");
      },
    },
  });
  await expect(findLacking({ ...mirror.ctx, db })).rejects.toThrow("a mistake");
});

describe("who may see the status", () => {
  test("the operator's token, also through a proxy", async () => {
    await using world = await openHealth();
    for (const more of [{}, { "x-forwarded-for": "203.0.113.9", host: "tain.example.com" }])
      expect((await get(world, "/-/status", { ...AS_OPERATOR, ...more })).status, JSON.stringify(more)).toBe(200);
  });

  test("nobody else, however near: to them there is no such page", async () => {
    await using world = await openHealth();
    const others: Record<string, string>[] = [
      {},
      { host: "tain.example.com" },
      { "x-forwarded-for": "127.0.0.1" },
      ...["Bearer wrong", `Bearer ${OPERATOR}x`, `Basic ${OPERATOR}`, "Bearer ", OPERATOR].map((authorization) => ({
        authorization,
      })),
    ];
    for (const headers of others) {
      const unknown = await get(world, "/-/nothing", headers);
      const answer = await get(world, "/-/status", headers);
      expect([answer.status, answer.text], JSON.stringify(headers)).toEqual([unknown.status, unknown.text]);
      expect(answer.status).not.toBe(200);
    }
  });

  test("a stranger behind a proxy of this machine that says nothing of them", async () => {
    await using world = await openHealth();
    // nginx sends these headers by default: the Host of its `proxy_pass`, and nothing about the caller.
    expect((await get(world, "/-/status", { host: new URL(world.url).host, connection: "close" })).status).toBe(404);
  });

  test("no token is set: nothing opens it", async () => {
    await using world = await openHealth({ OPERATOR_TOKEN: "" });
    expect((await get(world, "/-/status")).status).toBe(404);
    for (const authorization of ["Bearer ", "Bearer null", "Bearer undefined"])
      expect(isOperator({ headers: { authorization } }, null)).toBe(false);
  });
});

test("the status lists repositories with their progress, wishes without one, queues and quota", async () => {
  await using upstream = await openSimulator({ tokens: [{ token: "test-upstream-token", login: "mirror-owner" }] });
  await using world = await openHealth({ UPSTREAM_URL: upstream.url });
  await world.ctx.upstream.get("/user", { priority: "caller" });
  await world.ctx.db.query(sql`
    insert into repositories (id, name, full_name, private, document, seen_at, seen_by_read) values
      (1, 'live', 'octo/live', false, '{}', now(), true), (2, 'Young', 'octo/Young', true, '{}', now(), true), (3, 'gone', 'hub/gone', false, '{}', now(), true);
    insert into repository_syncs (repository_id, state, added_at, confirmed_at, problem) values
      (1, 'live', now(), now() - interval '90 seconds', null), (2, 'backfilling', now(), null, null), (3, 'gone', now(), null, 'deleted');
    insert into backfill_phases (repository_id, phase, pages, resources, expected_pages, started_at, finished_at) values
      (1, 'issues', 2, 150, 3, now(), now()), (1, 'comments', 1, 9, 1, now(), now()),
      (2, 'issues', 3, 300, 12, now(), null), (2, 'comments', 0, 0, null, null, null);
    insert into selections (pattern, added_at) values
      ('octo/live', now()), ('octo/young', now()), ('octo/*', now()), ('lost/lost', now()), ('new/*', now());
    insert into problems (task, key, cause, problem, failures, since, failed_at, next_at, credentials) values
      ('select', 'lost/lost', 'absent', 'There is no such repository', 1, now(), now(), now(), ''),
      ('installation', '7', 'refused', 'Upstream refuses with 403', 1, now(), now(), now(), '');`);
  await world.ctx.queues.backfill.add("backfill", { repositoryId: 2 });
  const status = (await get(world, "/-/status", AS_OPERATOR)).body;
  expect(status).toMatchObject({
    version: expect.stringMatching(/^\d+\.\d+\.\d+/),
    upstream: upstream.url,
    problems: ["installation 7 of the App cannot be read: Upstream refuses with 403"],
    queues: { backfill: { waiting: 1, active: 0, delayed: 0, failed: 0 }, deliveries: { waiting: 0 } },
    quota: expect.arrayContaining([expect.objectContaining({ bucket: "core", remaining: 4_999 })]),
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
  await using world = await openHealth({ REDIS_URL: NOWHERE.redis });
  expect((await get(world, "/-/status", AS_OPERATOR)).body).toMatchObject({ repositories: [], queues: null });
});
