import { once } from "node:events";
import { Worker } from "bullmq";
import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { installationFindings } from "../../src/cli/doctor/app.ts";
import { clockFinding, type Finding, upstreamAway } from "../../src/cli/doctor/finding.ts";
import { examinePostgres, postgresFindings } from "../../src/cli/doctor/postgres.ts";
import { redisFindings } from "../../src/cli/doctor/redis.ts";
import { examineSettings } from "../../src/cli/doctor/settings.ts";
import { tokenFindings } from "../../src/cli/doctor/token.ts";
import { redisFacts } from "../../src/inbox/redis-disk.ts";
import { QUEUE_NAMES } from "../../src/queues/queues.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { addSelections, resolveSelections } from "../../src/sync/following/selection.ts";
import { UpstreamUnavailableError } from "../../src/upstream/protocol/errors.ts";
import { VERSION } from "../../src/version.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { openWorld, type TestWorld } from "../support/world.ts";
import { tainOn, tainProcessOn } from "./tain-on.ts";

async function openMirror(options: { workers?: boolean } = {}): Promise<TestWorld> {
  const world = await openWorld({
    workers: false,
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 1, issues: 5, pulls: 1 }),
    ...options,
  });
  await addSelections(world.ctx, [world.first]);
  await resolveSelections(world.ctx);
  return world;
}

/** What is amiss. test/docs/operations.test.ts sees that each check is found by a test, under this name. */
const worse = (findings: readonly Finding[]) =>
  findings.filter(({ level }) => level !== "ok").map(({ check, level }) => `${level} ${check}`);
const said = (findings: Finding[], part: string) =>
  findings.filter((finding) => finding.part === part).map(({ says }) => says);

test("where all is well there is no problem: versions, settings, the token's user, scopes and quota, hooks, clocks", async () => {
  await using world = await openMirror({ workers: true });
  expect((await tainOn(world, ["hooks", "register"])).code).toBe(0);
  await world.simulator.quiet();
  const { code, json, stdout } = await tainProcessOn(world, ["doctor", "--json"]);
  const findings = json.findings as Finding[];
  expect(findings.filter(({ level }) => level === "problem")).toEqual([]);
  expect({ code, problems: json.problems }).toEqual({ code: 0, problems: 0 });
  expect(said(findings, "postgres")).toEqual(
    expect.arrayContaining([expect.stringMatching(/^Postgres \d/), "The schema is this version's"]),
  );
  expect(said(findings, "redis")).toContain("maxmemory-policy is noeviction");
  expect(said(findings, "upstream")).toEqual([
    `${world.simulator.url} answers`,
    expect.stringMatching(
      /^Token [0-9a-f]{16} is mirror-owner's; its scopes: repo and user; left: core 4,9\d\d of 5,000, graphql /,
    ),
  ]);
  expect(said(findings, "clock")).toHaveLength(3);
  expect(said(findings, "repositories")).toEqual(["1 mirrored repository is seen by the token"]);
  expect(said(findings, "hooks")).toEqual(["Well: 1 of 1"]);
  expect(said(findings, "processes")).toEqual([
    expect.stringMatching(/^No scheduler is running: nothing starts catch-ups, sweeps and audits, since /),
    "1 worker process is running",
    "1 web process is running",
    `${world.url} answers`,
  ]);
  for (const secret of [UPSTREAM_TOKEN, "test-webhook-secret"]) expect(stdout).not.toContain(secret);
});

test("stores that are away, and an upstream that is, are problems each; what can still be examined is", async () => {
  await using world = await openMirror();
  const away = await tainOn(world, ["doctor", "--json"], {
    DATABASE_URL: "postgres://me:s3cret-word@127.0.0.1:1/x",
    REDIS_URL: "redis://:s3cret-word@127.0.0.1:1",
  });
  expect(away.code).toBe(1);
  expect(worse(away.json.findings)).toEqual(["problem postgres-away", "problem redis-away"]);
  expect(said(away.json.findings, "upstream")[0]).toBe(`${world.simulator.url} answers`);
  expect(away.stdout + away.stderr).not.toContain("s3cret-word");

  const nowhere = { UPSTREAM_URL: "http://127.0.0.1:1" };
  expect(worse((await tainOn(world, ["doctor", "--json"], nowhere)).json.findings)).toContain("problem upstream-away");
  const alone = await tainOn(world, ["doctor"], nowhere);
  expect(alone.code).toBe(1);
  expect(alone.stdout).toMatch(
    /^problem +upstream +http:\/\/127.0.0.1:1 does not answer as it should: GET .*cannot be reached \(.*ECONNREFUSED.*\)$/m,
  );
  expect(alone.stdout).toMatch(/^ok +postgres +Postgres \d/m);
  expect(alone.stdout).toMatch(/^1 problem, \d+ warnings?$/m);
});

test("a token that is rejected, and one that does not see a mirrored repository, are named by fingerprint", async () => {
  await using world = await openMirror();
  const [repository] = [...world.simulator.world.repositories.values()];
  if (repository) repository.visibility = "private";
  world.simulator.tokens.create({ token: "ghp_seesNothing", login: "a-stranger", scopes: ["read:user"] });
  const tokens = [UPSTREAM_TOKEN, "ghp_seesNothing", "ghp_wasRevoked"];
  const { code, json, stdout } = await tainOn(world, ["doctor", "--json"], { UPSTREAM_TOKEN: tokens.join(",") });
  expect(code).toBe(1);
  const problems = (json.findings as Finding[]).filter(({ level }) => level === "problem").map(({ says }) => says);
  expect(problems.slice(0, 2)).toEqual([
    expect.stringMatching(new RegExp(`^Token [0-9a-f]{16} does not see ${world.first}: `)),
    expect.stringMatching(/^Token [0-9a-f]{16} is rejected: it is revoked, expired or wrong$/),
  ]);
  expect(worse(json.findings)).toEqual(
    expect.arrayContaining(["problem token-sight", "problem token-rejected", "warning token-scope"]),
  );
  for (const token of tokens) expect(stdout).not.toContain(token);
});

test("what waits for a person is told: failed deliveries, paused repositories, a missing hook, no worker, no address", async () => {
  await using world = await openMirror();
  const { db } = world.ctx;
  await db.query(sql`
    insert into deliveries (hook_id, guid, event, payload, status, received_at)
      values (1, 'guid-of-a-failure', 'star', '{}', 'failed', now()),
        (1, 'guid-that-waits', 'star', '{}', 'pending', now() - interval '1 hour')`);
  await db.query(sql`update repository_syncs set state = 'paused', problem = 'upstream answers 404'`);
  await db.query(sql`
    insert into selections (pattern, added_at) values ('octo/gone', now());
    insert into problems (task, key, cause, problem, failures, since, failed_at, next_at, credentials)
      values ('select', 'octo/gone', 'absent', 'upstream answers 404', 1, now(), now(), now(), '')`);
  const { code, json } = await tainOn(world, ["doctor", "--json"]);
  expect(code).toBe(1);
  const findings = (json.findings as Finding[]).filter(({ part }) => part !== "postgres" && part !== "redis");
  expect(worse(findings)).toEqual([
    "problem repository-paused",
    "warning repository-wish",
    "warning delivery-failed",
    "warning delivery-waits",
    "problem hook",
    "warning worker",
    "warning scheduler",
  ]);
  // A delivery that Postgres refused to store exists in its queue only.
  await world.ctx.queues.inbox.add("store", {} as never, { attempts: 1 });
  const inbox = new Worker(QUEUE_NAMES.inbox, () => Promise.reject(new Error("the moon was full")), {
    connection: { url: world.ctx.config.redisUrl },
    prefix: world.ctx.config.redisPrefix,
  });
  await once(inbox, "failed");
  await inbox.close();
  await db.query(sql`insert into origin (upstream, claimed_at) values ('https://git.example.com/api/v3', now())`);
  const more = await tainOn(world, ["doctor", "--json"], { PUBLIC_URL: "https://tain.example.com" });
  expect(worse(more.json.findings)).toEqual(
    expect.arrayContaining(["problem origin", "warning proxy", "problem job-failed"]),
  );
  expect(said(more.json.findings, "settings")[0]).toContain("The database mirrors https://git.example.com/api/v3");
  const open = { ...world.ctx.config, upstreamUrl: "http://git.example.com" };
  expect(worse(await examineSettings({ config: open, db: null }))).toEqual(["warning plain-text"]);
  const unreachable = await tainOn(world, ["doctor", "--json"], { PUBLIC_URL: "" });
  expect(worse(unreachable.json.findings)).toContain("warning hook-address");
});

test("what fails by itself is told: a repository, an installation, late confirmations, a target, a replica, a wrong address", async () => {
  await using world = await openMirror();
  await world.ctx.db.query(sql`update repository_syncs set state = 'live', confirmed_at = now() - interval '1 hour'`);
  await world.ctx.db.query(sql`
    insert into problems (task, key, repository_id, cause, problem, failures, since, failed_at, next_at, credentials)
      select 'catch-up', repository_id::text, repository_id, 'refused', 'upstream answers 403', 1, now(), now(), now(), ''
        from repository_syncs
      union all select 'installation', '7', null, 'refused', 'upstream answers 500', 1, now(), now(), now(), ''`);
  const added = await tainOn(world, ["targets", "add", "http://127.0.0.1:9/", "--json"], {
    TARGETS_ALLOWED: "127.0.0.1",
  });
  const replica = "postgres://tain@127.0.0.1:1/tain";
  const told = await tainOn(world, ["doctor", "--json"], {
    DATABASE_REPLICA_URLS: replica,
    PUBLIC_URL: "http://127.0.0.1:1",
  });
  expect(worse(told.json.findings)).toEqual(
    expect.arrayContaining([
      ...["warning repository-fails", "warning repository-late", "warning upstream-fails"],
      ...["warning target", "warning replica", "warning public-url"],
    ]),
  );
  const says = (told.json.findings as Finding[]).filter(({ level }) => level === "warning").map((one) => one.says);
  expect(says).toEqual(
    expect.arrayContaining([
      `Something fails of ${world.first} (its catch-ups fail: upstream answers 403)`,
      `Upstream has confirmed nothing for more than 15m of ${world.first}`,
      "installation 7 of the App cannot be read: upstream answers 500",
      expect.stringMatching(new RegExp(`^Target ${added.json.id}, http://127.0.0.1:9/: Its address is not on`)),
      expect.stringMatching(/^The replica 127\.0\.0\.1:1\S* is left out: /),
      expect.stringMatching(/^http:\/\/127\.0\.0\.1:1 cannot be reached from here: /),
    ]),
  );
});

test("missing migrations are a problem, and no stack", async () => {
  await using world = await openMirror();
  await world.ctx.db.query(sql`delete from schema_migrations where version > 46`);
  const { code, stdout, stderr } = await tainOn(world, ["doctor"]);
  expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
  expect(worse(await examinePostgres(world.ctx))).toContain("problem schema-missing");
  expect(stdout).toMatch(/^problem +postgres +Migrations are missing\n +Run `node db\/migrate.ts`$/m);
});

test("a schema of a Tain before 0.3.0 is a problem that says which Tain migrates it", async () => {
  await using world = await openMirror();
  await world.ctx.db.query(sql`delete from schema_migrations where version > 12`);
  const { code, stdout, stderr } = await tainOn(world, ["doctor"]);
  expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
  expect(worse(await examinePostgres(world.ctx))).toContain("problem schema-older");
  expect(stdout).toContain("A Tain before 0.3.0 migrated the database, up to migration 12\n");
  expect(stdout).toMatch(/^ +Migrate it with Tain 0\.3\.0 first, then with this one/m);
});

test("a newer schema is well where this version may work beside it, and otherwise a problem that names the version to start", async () => {
  await using world = await openMirror();
  const migrated = (version: number, oldest: string) =>
    world.ctx.db.query(
      sql`insert into schema_migrations (version, name, oldest_tain) values (${version}, 'x', ${oldest})`,
    );
  await migrated(9_998, VERSION);
  const beside = await tainOn(world, ["doctor", "--json"]);
  expect(said(beside.json.findings, "postgres")).toContain(
    `The schema is a newer version's; Tain ${VERSION} may work beside it`,
  );
  await migrated(9_999, "99.0.0");
  const { code, stdout, stderr } = await tainOn(world, ["doctor"]);
  expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
  expect(worse(await examinePostgres(world.ctx))).toContain("problem schema-newer");
  expect(stdout).toContain(`This is Tain ${VERSION}; the database has been migrated for 99.0.0 and later\n`);
  expect(stdout).toMatch(/^ +Start 99\.0\.0 or later, or restore a backup from before that migration$/m);
});

const info =
  "redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\nmaxmemory:0\r\nused_memory:10\r\naof_enabled:1\r\n";

test.each([
  [info, []],
  [info.replace("noeviction", "allkeys-lru"), ["problem redis-policy"]],
  [info.replace("maxmemory_policy", "x"), ["warning redis-policy"]],
  [info.replace("7.0.15", "6.0.16"), ["problem redis-version"]],
  [info.replace("maxmemory:0", "maxmemory:11"), ["warning redis-memory"]],
  [info.replace("aof_enabled:1", "aof_enabled:0"), ["warning redis-disk"]],
  [`${info}aof_last_write_status:err\r\n`, ["problem redis-disk"]],
])("Redis that says %j is judged %j", (text, expected) => {
  expect(worse(redisFindings(redisFacts(text), { save: "", fsync: "always" }))).toEqual(expected);
});

test.each([
  [info, "everysec", ["warning redis-disk"]],
  [info, null, ["warning redis-disk"]],
  [info.replace("7.0.15", "7.2.4"), "everysec", []],
  [info.replace("7.0.15", "8.0.0"), null, []],
])("Redis that says %j and puts writes on disk %s: %j", (text, fsync, expected) => {
  expect(worse(redisFindings(redisFacts(text), { save: "", fsync }))).toEqual(expected);
});

const postgres = {
  version: "18.1",
  versionNumber: 180_001,
  isStandby: false,
  fsync: "on",
  synchronousCommit: "on",
  maxConnections: 100,
  connections: 10,
};

test.each([
  [{}, []],
  [{ versionNumber: 150_018 }, []],
  [{ versionNumber: 140_019 }, ["problem postgres-version"]],
  [{ isStandby: true }, ["problem postgres-standby"]],
  [{ fsync: "off", synchronousCommit: "off" }, ["warning postgres-durability", "warning postgres-durability"]],
  [{ connections: 95 }, ["warning postgres-connections"]],
])("Postgres with %j is judged %j", (facts, expected) => {
  expect(worse(postgresFindings({ ...postgres, ...facts }))).toEqual(expected);
});

test("a certificate that does not hold is said to be one, and who else may vouch for it", () => {
  const cause = Object.assign(new Error("self-signed certificate"), { code: "DEPTH_ZERO_SELF_SIGNED_CERT" });
  const error = new UpstreamUnavailableError("GET /user: upstream cannot be reached", "unreachable", { cause });
  expect(upstreamAway("It does not answer", error, "See that UPSTREAM_URL is right")).toMatchObject({
    says: "It does not answer: GET /user: upstream cannot be reached (self-signed certificate)",
    todo: expect.stringContaining("NODE_EXTRA_CA_CERTS"),
  });
});

test("clocks that differ by seconds are a warning, by half a minute a problem, and it is said which is ahead", () => {
  expect(clockFinding("Redis", 1_900).level).toBe("ok");
  expect(clockFinding("upstream", -2_900, 1_000).level).toBe("ok");
  expect(worse([clockFinding("Redis", -4_000), clockFinding("Redis", 61_000)])).toEqual([
    "warning clock",
    "problem clock",
  ]);
  expect(clockFinding("Redis", -4_000)).toMatchObject({
    says: "The clock of Redis is 4.0 s behind this machine's",
  });
  expect(clockFinding("Postgres", 61_000)).toMatchObject({
    says: "The clock of Postgres is 61.0 s ahead of this machine's",
  });
});

const report = {
  fingerprint: "0123456789abcdef",
  state: "accepted" as const,
  login: null,
  scopes: null,
  quota: [],
  aheadMs: 0,
  unseen: [],
  unseenUnknown: null,
};

test("a token near its limit, one that is held back and one that cannot be asked are warnings; one without limits is well", () => {
  expect(tokenFindings(report, 0)).toMatchObject([
    { level: "ok", says: expect.stringMatching(/is nobody's own \(an app's\); .* left: not limited$/) },
  ]);
  const quota = [{ bucket: "core", limit: 5_000, remaining: 499, resetAt: new Date(60_000) }];
  expect(worse(tokenFindings({ ...report, quota }, 0))).toEqual(["warning token-quota"]);
  expect(tokenFindings({ ...report, quota }, 0)[1]).toMatchObject({
    says: expect.stringMatching(/has 499 of 5,000 left in core, until it is reset in 1m: /),
  });
  expect(worse(tokenFindings({ ...report, state: "spent" }, 0))).toEqual(["warning token-limited"]);
  expect(worse(tokenFindings({ ...report, unseen: null, unseenUnknown: "Timeout" }, 0))).toEqual([
    "warning token-sight",
  ]);
  const unseen = ["o/a", "o/b", "o/c", "o/d", "o/e", "o/f", "o/g"];
  expect(tokenFindings({ ...report, unseen }, 0)[1]?.says).toMatch(/does not see o\/a, .* o\/e and 2 more: /);
});

const installation = {
  ...{ id: 7, account: "octo", accountType: "Organization", repositorySelection: "all", events: [], suspendedAt: null },
  permissions: { metadata: "read", issues: "read", pull_requests: "read" } as Record<string, string>,
};

test.each([
  [[installation], []],
  [[], ["warning app-nowhere"]],
  [[{ ...installation, suspendedAt: new Date(0) }], ["problem app-suspended"]],
  [[installation, { ...installation, permissions: { metadata: "read", issues: "read" } }], ["problem app-permission"]],
])("an App with the installations %j is judged %j", (installations, expected) => {
  expect(worse(installationFindings(installations))).toEqual(expected);
});

test("keys: it says which secrets an older one still needs, when none does, and what no key opens", async () => {
  await using world = await openMirror();
  const doctored = async (env: NodeJS.ProcessEnv) =>
    ((await tainOn(world, ["doctor", "--json"], env)).json.findings as Finding[]).filter(({ part }) => part === "keys");
  const env = { TARGETS_ALLOWED: "127.0.0.1" };
  const before = { ...env, ENCRYPTION_KEY: "" };
  expect((await tainOn(world, ["targets", "add", "http://127.0.0.1:9/"], before)).code).toBe(0);
  expect(worse(await doctored(before))).toEqual(["warning key-shared"]);

  const after = { ...env, ENCRYPTION_KEY: "a-newer-key-of-its-own" };
  expect(worse(await doctored(after))).toEqual(["warning key-older"]);
  expect((await doctored(after))[0]?.says).toBe(
    "1 secret of targets can be decrypted by value 1 of WEBHOOK_SECRET alone",
  );
  expect(worse(await doctored({ ...env, WEBHOOK_SECRET: "another-webhook-secret" }))).toEqual(["problem key-missing"]);
  expect((await tainOn(world, ["targets", "reseal", "--json"], after)).json).toEqual({ resealed: 1 });
  const done = await doctored({ ...after, WEBHOOK_SECRET: "another-webhook-secret" });
  expect(worse(done)).toEqual([]);
  expect(done[0]?.says).toBe("1 secret of targets, all encrypted by value 1 of ENCRYPTION_KEY: no older key is needed");
});
