import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { sql } from "../../db/sql.ts";
import type { Finding } from "../../src/cli/doctor/finding.ts";
import type { Health } from "../../src/health/health.ts";
import { openHeartbeat } from "../../src/operations/heartbeat.ts";
import { enqueueTask } from "../../src/queues/queues.ts";
import { renameUser } from "../../src/simulator/changes/users.ts";
import { audit } from "../../src/sync/audit/audit.ts";
import { addSelections, resolveSelections } from "../../src/sync/following/selection.ts";
import { checkDeliveries } from "../../src/sync/hook-deliveries/missed.ts";
import { fingerprint } from "../../src/upstream/credentials/credentials.ts";
import {
  CredentialRejectedError,
  QuotaSpentError,
  UpstreamUnavailableError,
} from "../../src/upstream/protocol/errors.ts";
import { tainOn } from "../cli/tain-on.ts";
import { openLink } from "../receiver/breakable-link.ts";
import { deliverTo } from "../receiver/receiver-world.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { administer, openTestDatabase, testRedis } from "../support/database.ts";
import { openOwnStores } from "../support/own-stores.ts";
import { eventually } from "../support/patience.ts";
import { startProgram } from "../support/program.ts";
import { openTinyDisk } from "../support/tiny-disk.ts";
import type { TestWorld } from "../support/world.ts";
import { type HealthWorld, OPERATOR, openHealthWorld } from "./health-world.ts";

const DAY_MS = 86_400_000;
const RECENTLY_MS = 600_000;
const KNOWN_HOOK = 4242;
const { signal } = new AbortController();

/** A moment of this test, in ISO 8601. */
const expectRecent = (since: string | null) =>
  expect(Date.now() - Date.parse(since ?? "never")).toBeLessThan(RECENTLY_MS);

/** What the doctor finds amiss; test/docs/operations.test.ts looks for these names. */
async function examined(world: TestWorld): Promise<string[]> {
  const { json } = await tainOn(world, ["doctor", "--json"]);
  return (json.findings as Finding[])
    .filter(({ level }) => level !== "ok")
    .map(({ check, level }) => `${level} ${check}`);
}

describe("a mirror of which nothing is wrong, until", () => {
  let at: HealthWorld;
  let repositoryId: number;
  beforeAll(async () => {
    at = await openHealthWorld();
    await at.world.mirror(at.world.first);
    const [row] = await at.world.ctx.db.query<{ id: number }>(
      sql`select repository_id::float8 as id from repository_syncs`,
    );
    repositoryId = row?.id ?? 0;
  });
  afterAll(() => at[Symbol.asyncDispose]());
  const ask = () => at.world.ctx.upstream.get("/user", { priority: "caller" });

  test("nothing is", () => at.well());

  test("its token is rejected", async () => {
    at.world.simulator.tokens.expire(UPSTREAM_TOKEN);
    await expect(ask()).rejects.toThrow(CredentialRejectedError);
    const { says, since, line } = await at.worst("token-rejected");
    expect(says).toContain("upstream rejects it: it is revoked, expired or wrong");
    expectRecent(since);
    expect(line).toMatch(/, since \d{4}-\d\d-\d\d \d\d:\d\d UTC\. /);
    // A second rejection does not begin it anew.
    await at.world.ctx.upstream.tryAgain(fingerprint(UPSTREAM_TOKEN));
    await expect(ask()).rejects.toThrow(CredentialRejectedError);
    expect((await at.worst("token-rejected")).since).toBe(since);

    at.world.simulator.tokens.expire(UPSTREAM_TOKEN, Date.now() + DAY_MS);
    await at.world.ctx.upstream.tryAgain(fingerprint(UPSTREAM_TOKEN));
    await ask();
    await at.well();
  });

  test("webhooks are refused", async () => {
    const [secret = ""] = at.world.ctx.config.webhookSecrets;
    expect((await deliverTo(at.world.url, { hookId: KNOWN_HOOK, secret })).status).toBe(202);
    expect((await deliverTo(at.world.url, { hookId: KNOWN_HOOK, secret: "not-the-right-one" })).status).toBe(401);
    const { says, since } = await at.worst("webhook-refused");
    expect(says).toMatch(/X-Hub-Signature-256 does not match the body.* \(from 127\.0\.0\.1\)$/);
    expectRecent(since);
    expect(await examined(at.world)).toContain("warning webhook-refused");
    // It ends after ten minutes without another.
    const key = `${at.world.ctx.config.redisPrefix}:noted:webhooks`;
    expect(await at.world.ctx.redis.pttl(key)).toBeGreaterThan(0);
    await at.world.ctx.redis.pexpire(key, 1);
    await at.well();
  });

  test("what strangers send neither says that webhooks are refused, nor hides why a hook's are", async () => {
    const stranger = async (headers: Record<string, string>) => {
      const sent = { method: "POST", headers: { "X-GitHub-Event": "push", ...headers }, body: "{}" };
      expect((await fetch(`${at.world.url}/webhooks`, sent)).status).toBe(401);
    };
    for (const hook of ["", "0", "7777777", "1e3", "9".repeat(16)]) await stranger({ "X-GitHub-Hook-ID": hook });
    await stranger({});
    await at.well();
  });

  test("deliveries wait", async () => {
    const receivedAt = new Date(Date.now() - 90_000);
    await at.world.ctx.db.query(sql`
      insert into deliveries (hook_id, guid, event, payload, received_at) values (1, 'waits', 'star', '{}', ${receivedAt})`);
    const { says, since } = await at.worst("delivery-waits");
    expect([says, since]).toEqual(["1 delivery waits to be applied", receivedAt.toISOString()]);
    await at.world.ctx.db.query(sql`delete from deliveries where guid = 'waits'`);
    await at.well();
  });

  test("a delivery failed", async () => {
    await at.world.ctx.db.query(sql`
      insert into deliveries (hook_id, guid, event, payload, status, received_at, settled_at)
        values (1, 'failed', 'star', '{}', 'failed', now(), now())`);
    const { says, since } = await at.worst("delivery-failed");
    expect(says).toBe("1 delivery has failed");
    expectRecent(since);
    await at.world.ctx.db.query(sql`delete from deliveries where guid = 'failed'`);
    await at.well();
  });

  test("its hook was deleted at upstream", async () => {
    const { world } = at;
    await world.listen(world.first);
    const hooksAt = `${world.simulator.url}/repos/${world.first}/hooks`;
    const headers = { authorization: `token ${UPSTREAM_TOKEN}`, "user-agent": "test" };
    const [hook] = (await (await fetch(hooksAt, { headers })).json()) as { id: number }[];
    await world.settle();
    await checkDeliveries(world.ctx);
    await at.well();
    await fetch(`${hooksAt}/${hook?.id}`, { method: "DELETE", headers });
    await checkDeliveries(world.ctx);
    const { says, since } = await at.worst("hook");
    expect(says).toBe(`The webhook of ${world.first} is missing, or does not tell of all changes`);
    expectRecent(since);
    // A new one reports itself by its ping.
    await world.listen(world.first);
    await world.settle();
    await at.well();
  });

  test("a job fails for good: it is shown, tried again and forgotten, and goes by itself once its work is done", async () => {
    const { world } = at;
    const { ctx } = world;
    const fail = async () => {
      await ctx.db.query(sql`alter table repositories rename to repositories_of_before`);
      await ctx.queues.catchUp.add("catch-up", { repositoryId }, { attempts: 1 });
      await eventually(async () => expect(await ctx.queues.catchUp.getFailedCount()).toBe(1));
      await ctx.db.query(sql`alter table repositories_of_before rename to repositories`);
    };
    await fail();
    const { says, since } = await at.worst("job-failed");
    expect(says).toMatch(/^1 job has failed for good: .*repositories/);
    expectRecent(since);
    const { json, stdout } = await tainOn(world, ["jobs", "list", "--json"]);
    expect(json.jobs, stdout).toEqual([
      expect.objectContaining({ queue: "catch-up", about: { repositoryId }, attempts: 1 }),
    ]);
    const [{ id }] = json.jobs;

    // A catch-up that has just failed is left alone for a moment.
    const recovered = () =>
      eventually(async () => {
        await world.catchUp();
        expect(await ctx.db.query(sql`select from problems`)).toEqual([]);
      });
    const again = await tainOn(world, ["jobs", "retry", id]);
    expect([again.code, again.stdout]).toEqual([0, "1 job was put back into its queue\n"]);
    await recovered();
    await at.well();

    await fail();
    const cleared = await tainOn(world, ["jobs", "clear", "--all"]);
    expect([cleared.code, cleared.stdout]).toEqual([0, "1 job was forgotten\n"]);
    expect((await tainOn(world, ["jobs", "retry", id])).stderr).toContain(`No failed job is named ${id}`);
    await recovered();
    await at.well();

    await fail();
    await recovered();
    await enqueueTask(ctx, "prune");
    await at.well();
  });

  test("an audit finds drift", async () => {
    const { simulator, ctx, first } = at.world;
    const [row] = await ctx.db.query<{ id: number }>(
      sql`select user_id::float8 as id from issues order by number limit 1`,
    );
    const author = [...simulator.world.users.values()].find(({ id }) => id === row?.id);
    if (!author) throw new Error("Upstream does not know who opened its issue");
    renameUser(simulator.world, author, "renamed-in-secret");
    await audit(ctx, { repositoryId, repair: true, signal });
    const { says, since } = await at.worst("drift");
    expect(says).toBe(`The last audit of ${first} found differences`);
    expectRecent(since);
    expect(await examined(at.world)).toContain("warning drift");
    await audit(ctx, { repositoryId, repair: true, signal });
    await at.well();
  });

  test("a web process is killed", async () => {
    const program = startProgram("src/web.ts", { ...at.world.env, LOG_LEVEL: "info" });
    await program.said("Listening");
    const key = `${at.world.ctx.config.redisPrefix}:processes`;
    const field = () =>
      eventually(async () => {
        const found = (await at.world.ctx.redis.hkeys(key)).find((one) => one.endsWith(`:${program.pid}`));
        expect(found).toBeDefined();
        return found as string;
      });
    const own = await field();
    await at.well();
    await program.kill();
    // A minute passes.
    const killedAt = Date.now() - 60_000;
    await at.world.ctx.redis.hset(key, own, killedAt);
    const { says, since } = await at.worst("silent");
    expect(says).toBe(`The ${own.replace(" ", " process ")} is silent: it hangs, or was killed`);
    expect(since).toBe(new Date(killedAt).toISOString());
    expect(await examined(at.world)).toContain("warning silent");
    // After ten minutes the others count alone.
    await at.world.ctx.redis.hset(key, own, killedAt - 600_000);
    await at.well();
  });

  test("two things are wrong: the line tells the worse, and that there is one more", async () => {
    await at.world.ctx.db.query(sql`
      insert into deliveries (hook_id, guid, event, payload, status, received_at, settled_at)
        values (1, 'failed', 'star', '{}', 'failed', now(), now()),
          (1, 'waits', 'star', '{}', 'pending', now() - interval '2 minutes', null)`);
    const { line } = await at.worst("delivery-waits");
    expect(line).toMatch(/^1 delivery waits to be applied, since .* \(and 1 more\)$/);
    const { stdout } = await tainOn(at.world, ["status"]);
    expect(stdout.split("\n")[1]).toBe(line);
    await at.world.ctx.db.query(sql`delete from deliveries where guid in ('failed', 'waits')`);
    await at.well();
  });
});

test("without a worker, then without a scheduler, it is said which, since when, and what waits", async () => {
  await using at = await openHealthWorld({ workers: false });
  const never = await at.worst("worker");
  expect(never.says).toBe("No worker is running: nothing is copied or applied, and deliveries wait in Postgres");
  const worker = startProgram("workers/main.ts", { ...at.world.env, LOG_LEVEL: "info" });
  await worker.said("Working");
  await at.well();
  await worker.stop();
  expectRecent((await at.worst("worker")).since);

  await using _life = openHeartbeat(at.world.ctx, "worker");
  const web = startProgram("src/web.ts", { ...at.world.env, LOG_LEVEL: "info" });
  await web.said("Listening");
  await web.stop();
  await at.well();
  const processes = `${at.world.ctx.config.redisPrefix}:processes`;
  const [field = ""] = (await at.world.ctx.redis.hkeys(processes)).filter((one) => one.startsWith("scheduler "));
  const before = Date.now() - 60_000;
  await eventually(async () => {
    // The beats of this test's own scheduler are set back, as if it had hung.
    await at.world.ctx.redis.hset(processes, { scheduler: before, [field]: before });
    const { troubles } = await at.line();
    expect(troubles[0]).toMatchObject({ name: "scheduler", since: new Date(before).toISOString() });
  });
  // The same of all: nobody beats any more.
  await eventually(async () => {
    await at.world.ctx.redis.del(processes);
    await at.world.ctx.redis.hset(processes, { worker: before, scheduler: before, web: before });
    expect(await examined(at.world)).toEqual(
      expect.arrayContaining(["warning worker", "warning scheduler", "warning web"]),
    );
  });
});

test("an upstream that cannot be reached is told until it answers again", async () => {
  const link: { cut?: () => Promise<void>; mend?: () => Promise<void> } = {};
  const env: NodeJS.ProcessEnv = {};
  await using at = await openHealthWorld({
    env,
    fill: async (simulator) => {
      const opened = await openLink(simulator.url);
      onTestFinished(() => opened.cut());
      Object.assign(link, opened);
      env.UPSTREAM_URL = opened.url.replace(/\/$/, "");
    },
  });
  const ask = () => at.world.ctx.upstream.get("/user", { priority: "caller" });
  await ask();
  await at.well();
  await link.cut?.();
  await expect(ask()).rejects.toThrow(UpstreamUnavailableError);
  const { says, since } = await at.worst("upstream-away");
  expect(says).toMatch(/^Upstream does not answer: GET \/user: upstream cannot be reached \(.*ECONNREFUSED/);
  expectRecent(since);
  await link.mend?.();
  await ask();
  await at.well();
});

test("upstream's silence during a first copy is told", async () => {
  await using at = await openHealthWorld();
  const { ctx, simulator, first } = at.world;
  simulator.setFaults({ http: [{ match: "GET /repositories/\\d+/issues", kind: "secondary-limit", retryAfter: 600 }] });
  await addSelections(ctx, [first]);
  await resolveSelections(ctx);
  const { says, since } = await at.worst("token-limited");
  expect(says).toMatch(/^Upstream asks the token [0-9a-f]{16} for silence until .* UTC: first copies wait$/);
  expectRecent(since);
});

test("a spent quota is told, and until when", async () => {
  await using at = await openHealthWorld({
    fill: ({ tokens }) =>
      void tokens.create({ token: UPSTREAM_TOKEN, login: "mirror-owner", repositories: "all", write: true, limit: 40 }),
  });
  const spend = async () => {
    for (let asked = 0; ; asked++) await at.world.ctx.upstream.get(`/user?n=${asked}`, { priority: "caller" });
  };
  await expect(spend()).rejects.toThrow(QuotaSpentError);
  const { says, since } = await at.worst("token-quota");
  expect(says).toMatch(/^The core quota of the token [0-9a-f]{16} is spent until .* UTC: jobs wait$/);
  expectRecent(since);
});

/** Since when is known to a process that remembers it alone: without Redis the others cannot know. */
const worstOf = (all: readonly Health[]) => all.map(({ troubles }) => [troubles[0]?.name, troubles[0]?.says]);

test("a Redis that is away is told, and what cannot be asked is not said to be none", async () => {
  const link = await openLink(testRedis().url);
  onTestFinished(() => link.cut());
  await using at = await openHealthWorld({ env: { REDIS_URL: link.url } });
  await at.well();
  await link.cut();
  await eventually(async () => {
    const said = await at.said();
    for (const worst of worstOf(said)) expect(worst).toEqual(["redis-away", "Redis cannot be used: cannot be reached"]);
    for (const { unknown } of said) expect(unknown).toEqual(expect.arrayContaining(["processes", "failed jobs"]));
    expectRecent(said[1]?.troubles[0]?.since ?? null);
  });
  await link.mend();
  await at.well();
});

test("a Redis that is full is told by the line, the probe and the doctor", async () => {
  await using stores = await openOwnStores();
  await using at = await openHealthWorld({ env: { REDIS_URL: stores.redis.url } });
  await at.well();
  await at.world.ctx.redis.config("SET", "maxmemory", "1");
  await eventually(async () => {
    for (const worst of worstOf(await at.said()))
      expect(worst).toEqual(["redis-full", expect.stringMatching(/^Redis answers, but it takes no writes: OOM/)]);
  });
  expect(await examined(at.world)).toContain("problem redis-full");
  const ready = await fetch(`${at.world.url}/-/ready`);
  expect([ready.status, await ready.json()]).toEqual([503, { ready: false, missing: ["redis"] }]);
  await at.world.ctx.redis.config("SET", "maxmemory", "0");
  await at.well();
});

test("with Postgres away the line is told all the same", async () => {
  const database = await openTestDatabase();
  const link = await openLink(database.url);
  onTestFinished(() => link.cut());
  await using at = await openHealthWorld({ env: { DATABASE_URL: link.url } });
  await at.well();
  await link.cut();
  const { line, since } = await at.worst("postgres-away");
  expectRecent(since);
  const { code, stdout, stderr } = await tainOn(at.world, ["status"]);
  expect([code, stdout]).toEqual([1, `${line}\n`]);
  expect(stderr).toMatch(/^tain: /);
  const status = await fetch(`${at.world.url}/-/status`, { headers: { authorization: `Bearer ${OPERATOR}` } });
  expect([status.status, await status.json()]).toEqual([503, expect.objectContaining({ health: expect.anything() })]);
  await link.mend();
  await at.well();
});

describe("a Postgres that takes no writes", () => {
  /** Sets the database's default, and ends its connections, which have the old one. */
  async function setReadOnly(databaseUrl: string, isReadOnly: boolean): Promise<void> {
    const name = new URL(databaseUrl).pathname.slice(1);
    await administer(async (admin) => {
      await admin.query(
        isReadOnly
          ? `alter database ${name} set default_transaction_read_only = on`
          : `alter database ${name} reset default_transaction_read_only`,
      );
      await admin.query("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", [name]);
    });
  }

  test("since it is set to read only, is named in the line, by the doctor and by the probe", async () => {
    await using at = await openHealthWorld();
    await at.well();
    const { databaseUrl } = at.world.ctx.config;
    await setReadOnly(databaseUrl, true);
    const { says, since } = await at.worst("postgres-read-only");
    expect(says).toMatch(
      /^Postgres answers, but it takes no writes.*: cannot execute INSERT in a read-only transaction$/,
    );
    expectRecent(since);
    expect(await examined(at.world)).toContain("problem postgres-read-only");
    await setReadOnly(databaseUrl, false);
    await at.well();
  });

  test("since its disk is full, is named in the line, by the doctor and by the probe", async ({ skip }) => {
    await using at = await openHealthWorld();
    await at.well();
    await using disk = await openTinyDisk();
    if (!disk) return skip("Only root mounts a disk");
    const move = (to: string) => at.world.ctx.db.query(sql.script(`alter table deliveries set tablespace ${to}`));
    await move(disk.tablespace);
    await disk.fill();
    const { says, since } = await at.worst("postgres-full");
    expect(says).toMatch(
      /^Postgres answers, but it cannot write, because its disk or memory is full: could not extend file/,
    );
    expectRecent(since);
    expect(await examined(at.world)).toContain("problem postgres-full");
    const ready = await fetch(`${at.world.url}/-/ready`, { headers: { authorization: `Bearer ${OPERATOR}` } });
    expect([ready.status, await ready.json()]).toEqual([
      503,
      { ready: false, missing: [expect.stringMatching(/^postgres: it cannot write, because its disk/)] },
    ]);
    // What can be read is read.
    expect((await at.world.get("/user")).status).toBe(200);
    await disk.free();
    await at.well();
    await move("pg_default");
  });
});
