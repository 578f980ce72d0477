import { generateKeyPairSync } from "node:crypto";
import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { loadStatus } from "../../src/health/status.ts";
import type { Json } from "../../src/json.ts";
import { setVisibility } from "../../src/simulator/changes/repositories.ts";
import { mutate } from "../../src/simulator/control/mutations.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { openView } from "../../src/simulator/views/view.ts";
import type { App, Installation } from "../../src/simulator/world/apps.ts";
import { SettableClock } from "../../src/simulator/world/clock.ts";
import type { Repository } from "../../src/simulator/world/records.ts";
import { sweep } from "../../src/sync/catch-up/sweep.ts";
import { resolveSelections } from "../../src/sync/following/selection.ts";
import { checkDeliveries } from "../../src/sync/hook-deliveries/missed.ts";
import { openUpstream } from "../../src/upstream/client/client.ts";
import { quotaReport } from "../../src/upstream/quota/report.ts";
import { changed } from "../support/changed-upstream.ts";
import { until } from "../support/patience.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

const pair = generateKeyPairSync("rsa", { modulusLength: 2048 });
const APP_PRIVATE_KEY = String(pair.privateKey.export({ type: "pkcs1", format: "pem" }));
const EVENTS = ["issues", "issue_comment", "pull_request", "label", "milestone", "repository"];

interface AppWorld extends TestWorld {
  app: App;
  installation(account: string): Installation;
  /** The account that owns the busiest repository. The account `small` owns small ones. */
  owner: string;
  /** The id of the user who acts. */
  by: number;
  repository(fullName: string): Repository;
  /** Moves the mirror's clock and upstream's. */
  pass(ms: number): void;
  /** The state and the problem of each repository, by full name. */
  states(): Promise<Record<string, { state: string; problem: string | null }>>;
  /** Has the mirror learn what just happened: by the App's webhook, or else by its own next look. */
  hear(how: How): Promise<void>;
  /** Waits until all repositories that are mirrored have this state. */
  all(state: string): Promise<void>;
}

type How = "webhook" | "look";

/** An App, an account with so many repositories `small/…`, and a generated organization with repositories. */
async function openAppWorld({
  env = {},
  small = 1,
  issues = 12,
  installations,
}: {
  env?: NodeJS.ProcessEnv;
  small?: number;
  issues?: number;
  installations: (owner: string) => { account: string; repositories?: string[] }[];
}): Promise<AppWorld> {
  const clock = new SettableClock();
  let owner = "";
  const world = await openWorld({
    simulator: { clock },
    env: { UPSTREAM_TOKEN: "", APP_ID: "4711", APP_PRIVATE_KEY, ...env },
    fill: ({ world: upstream, apps }) => {
      const { repositories } = generateWorld(upstream, { seed: 5, repositories: 1, issues });
      owner = upstream.user(repositories[0]?.ownerId ?? 0).login;
      const { id } = upstream.addUser({ login: "small" });
      for (let at = 0; at < small; at++) upstream.addRepository({ ownerId: id, name: `part-${at}` });
      apps.create({
        ...{ id: 4711, slug: "mirror", events: EVENTS, installations: installations(owner) },
        keys: [String(pair.publicKey.export({ type: "spki", format: "pem" }))],
      });
    },
  });
  const { simulator, ctx } = world;
  const app = simulator.apps.byIssuer(4711) as App;
  simulator.apps.edit(app, { webhook: { url: `${world.url}/webhooks`, secret: "test-webhook-secret" } });
  const it: AppWorld = Object.assign(world, {
    ...{ app, owner, by: app.ownerId },
    installation: (account: string) =>
      simulator.apps.ofAccount(app, simulator.world.userByLogin(account) as never) as Installation,
    repository: (fullName: string) => {
      const [login = "", name = ""] = fullName.split("/");
      return simulator.world.repositoryByName(login, name)?.repository as Repository;
    },
    pass: (ms: number) => {
      clock.advance(ms);
      world.advance(ms);
    },
    states: async () => {
      const rows = await ctx.db.query(sql`
        select r.full_name, s.state, s.problem from repository_syncs s join repositories r on r.id = s.repository_id
          order by 1`);
      return Object.fromEntries(rows.map(({ full_name, ...rest }) => [full_name, rest]));
    },
    hear: async (how: How) => {
      if (how === "look") {
        // The webhook was lost. The mirror looks by itself some minutes later.
        it.pass(6 * 60_000);
        await resolveSelections(ctx);
      }
      await world.settle();
    },
    all: (state: string) =>
      until(`all are ${state}`, async () => {
        const found = Object.values(await it.states());
        return found.length > 0 && found.every((one) => one.state === state);
      }),
  });
  return it;
}

/** For "look" the App's webhook leads nowhere, so that no delivery arrives. */
function deafen(world: AppWorld, how: How): void {
  if (how === "look") world.simulator.apps.edit(world.app, { webhook: { url: "http://127.0.0.1:1/" } });
}

test("what the App is installed on is mirrored; once every token has changed, a second pass costs nothing", async () => {
  await using world = await openAppWorld({ installations: (owner) => [{ account: owner }, { account: "small" }] });
  await resolveSelections(world.ctx);
  await world.all("live");
  expect(Object.keys(await world.states())).toEqual([...Object.keys(await world.states())]);
  expect(await world.states()).toHaveProperty("small/part-0");
  await world.settleMarks();
  await world.catchUp();
  await world.settleMarks();

  const { meter } = world.simulator;
  for (let hours = 0; hours < 2; hours++) {
    world.pass(61 * 60_000);
    meter.reset();
    await resolveSelections(world.ctx);
    await world.catchUp();
    const { callers, routes, points, notModified, errors } = meter.read();
    expect({ points, errors }).toEqual({ points: 0, errors: 0 });
    expect(routes["POST /app/installations/:id/access_tokens"]?.requests).toBe(2);
    expect(notModified).toBeGreaterThan(10);
    for (const [caller, buckets] of Object.entries(callers)) {
      // Requests with the App's signature have no quota: upstream tells of none.
      if (caller.startsWith("installation:")) expect(buckets.core).toMatchObject({ charged: 0 });
      else expect(caller).toBe("app:4711");
    }
  }
  const reports = await quotaReport(world.ctx);
  expect(reports.map(({ name }) => name)).toContain(`installation on ${world.owner}`);
  expect(reports.every(({ problem }) => problem === null)).toBe(true);
});

test("REPOSITORIES chooses among what is installed, and more can be added later", async () => {
  await using world = await openAppWorld({
    ...{ small: 3, env: { REPOSITORIES: "small/part-1" } },
    installations: (owner) => [{ account: owner }, { account: "small" }],
  });
  await resolveSelections(world.ctx);
  expect(Object.keys(await world.states())).toEqual(["small/part-1"]);
  await world.mirror("small/*");
  expect(Object.keys(await world.states())).toEqual(["small/part-0", "small/part-1", "small/part-2"]);
});

test.each<How>(["webhook", "look"])("the fleet follows the App's installations, by %s", async (how) => {
  await using world = await openAppWorld({
    ...{ small: 2 },
    installations: () => [{ account: "small", repositories: ["small/part-0"] }],
  });
  const { apps, world: upstream } = world.simulator;
  await resolveSelections(world.ctx);
  await world.all("live");
  expect(Object.keys(await world.states())).toEqual(["small/part-0"]);
  deafen(world, how);
  const small = world.installation("small");

  // A repository is added to the installation, and taken out of it again.
  apps.choose(small, world.by, ["small/part-0", "small/part-1"].map(world.repository));
  await world.hear(how);
  await until("the new one is live", async () => (await world.states())["small/part-1"]?.state === "live");
  apps.choose(small, world.by, [world.repository("small/part-0")]);
  await world.hear(how);
  expect((await world.states())["small/part-1"]).toMatchObject({
    state: "paused",
    problem: expect.stringMatching(/taken out of the installation on small.*`tain remove`/),
  });
  expect((await world.states())["small/part-0"]).toMatchObject({ state: "live", problem: null });
  // A catch-up meanwhile neither deletes the repository nor hides why it is paused.
  await world.catchUp();
  expect((await world.states())["small/part-1"]?.problem).toMatch(/taken out/);
  expect((await world.get("/repos/small/part-1")).status).toBe(200);
  apps.choose(small, world.by, "all");
  await world.hear(how);
  await world.all("live");

  // The installation is suspended, and then not any more.
  apps.suspend(small, world.by, true);
  await world.hear(how);
  for (const { state, problem } of Object.values(await world.states())) {
    expect(state).toBe("paused");
    expect(problem).toMatch(/installation on small is suspended.*unsuspend/);
  }
  await world.catchUp();
  const said = (await quotaReport(world.ctx)).find(({ name }) => name === "installation on small");
  expect(said?.problem).toMatch(/small has suspended/);
  apps.suspend(small, world.by, false);
  await world.hear(how);
  await world.all("live");

  // The account accepts new permissions. It has chosen all repositories, so a new one joins.
  apps.acceptPermissions(small, world.by, {
    permissions: { issues: "write", pull_requests: "read" },
    events: EVENTS,
  });
  upstream.addRepository({ ownerId: small.accountId, name: "part-2" });
  await world.hear(how);
  const rows = await world.ctx.db.query(sql`select permissions from installations`);
  expect(rows[0]?.permissions).toMatchObject({ issues: "write" });
  if (how === "look") await until("it is live", async () => (await world.states())["small/part-2"]?.state === "live");

  // Another account installs the App, and the first one leaves.
  apps.install(world.app, world.by, { account: world.owner });
  await world.hear(how);
  await until("all of the other are live", async () =>
    Object.entries(await world.states()).some(([name, { state }]) => name.startsWith(world.owner) && state === "live"),
  );
  apps.uninstall(small, world.by);
  await world.hear(how);
  for (const [name, { state, problem }] of Object.entries(await world.states())) {
    if (!name.startsWith("small/")) continue;
    expect(state).toBe("paused");
    expect(problem).toMatch(/no longer installed on small/);
  }
  expect((await world.get("/repos/small/part-0")).status).toBe(200);
});

test("an answer that does not list what an installation covers takes nothing out of it", async () => {
  await using world = await openAppWorld({ installations: () => [{ account: "small" }] });
  await resolveSelections(world.ctx);
  await world.all("live");
  const { upstream } = world.ctx;
  const misread = changed(upstream, {
    get: async (path, options) => {
      const answer = await upstream.get(path, options);
      return answer.kind === "ok" && path.startsWith("/installation/") ? { ...answer, body: {} } : answer;
    },
  });
  await world.ctx.db.query(sql`update installations set told_at = ${new Date(0)}`);
  await world.ctx.db.query(sql`delete from validators`);
  await resolveSelections({ ...world.ctx, upstream: misread });
  const { problems } = await loadStatus(world.ctx, async () => []);
  expect(problems).toEqual([
    expect.stringMatching(/^installation \d+ of the App cannot be read: .*installation\/repositories/),
  ]);
  expect(await world.states()).toEqual({ "small/part-0": { state: "live", problem: null } });
});

/** Looks at what the App is installed on, where upstream's answers from this path on are spoilt. Counts them from 1. */
async function lookSpoilt(
  world: AppWorld,
  path: string,
  spoil: (rows: Json[], count: number) => Json[],
): Promise<void> {
  const { upstream } = world.ctx;
  let count = 0;
  const spoilt = changed(upstream, {
    get: async (asked, options) => {
      const answer = await upstream.get(asked, options);
      if (answer.kind !== "ok" || !asked.startsWith(path)) return answer;
      count += 1;
      const { body } = answer;
      if (Array.isArray(body)) return { ...answer, body: spoil(body, count) };
      const { repositories } = body as { repositories: Json[] };
      return { ...answer, body: { ...(body as object), repositories: spoil(repositories, count) } };
    },
  });
  await world.ctx.db.query(sql`update installations set told_at = ${new Date(0)}`);
  await world.ctx.db.query(sql`delete from validators`);
  await resolveSelections({ ...world.ctx, upstream: spoilt });
}

const LISTS = ["/app/installations", "/installation/repositories"];

test.each(LISTS)("a row of %s that is null takes nothing out, and all others are followed", async (path) => {
  await using world = await openAppWorld({
    ...{ small: 2, issues: 1 },
    installations: (owner) => [{ account: "small", repositories: ["small/part-0"] }, { account: owner }],
  });
  await resolveSelections(world.ctx);
  await world.all("live");
  const before = await world.states();
  deafen(world, "look");
  // Meanwhile another one joins.
  world.simulator.apps.choose(world.installation("small"), world.by, "all");
  await world.simulator.quiet();
  await lookSpoilt(world, path, (rows) => [null, ...rows.slice(1)]);
  const { problems } = await loadStatus(world.ctx, async () => []);
  expect(problems).toEqual(
    expect.arrayContaining([expect.stringMatching(/came without its id or name, and all others/)]),
  );
  expect(await world.states()).toMatchObject(before);
  await until("the other one is live", async () => (await world.states())["small/part-1"]?.state === "live");
});

test.each(LISTS)("one answer of %s that is empty by mistake takes nothing out", async (path) => {
  await using world = await openAppWorld({ installations: () => [{ account: "small" }] });
  await resolveSelections(world.ctx);
  await world.all("live");
  await lookSpoilt(world, path, (rows, count) => (count === 1 ? [] : rows));
  expect(await world.states()).toEqual({ "small/part-0": { state: "live", problem: null } });
  expect(await world.ctx.db.query(sql`select task, problem from problems`)).toEqual([]);
});

test("when an installation is suspended, a token takes over what it sees", async () => {
  await using world = await openAppWorld({
    env: { UPSTREAM_TOKEN: "test-upstream-token" },
    installations: () => [{ account: "small" }],
  });
  await resolveSelections(world.ctx);
  await world.all("live");
  world.simulator.apps.suspend(world.installation("small"), world.by, true);
  // Requests are still answered between the suspension and its webhook.
  expect(await world.ctx.upstream.get("/repos/small/part-0", { priority: "caller" })).toMatchObject({ kind: "ok" });
  await world.hear("webhook");
  await world.catchUp();
  await world.all("live");
  const said = (await quotaReport(world.ctx)).find(({ name }) => name === "installation on small");
  expect(said?.problem).toMatch(/small has suspended/);
  // When the App is removed altogether, the repositories pause for a moment, and then the token follows them.
  world.simulator.apps.uninstall(world.installation("small"), world.by);
  await world.hear("webhook");
  await world.all("live");
});

test("deliveries to the App's webhook that failed are asked for again, and its repositories for no hooks of their own", async () => {
  await using world = await openAppWorld({ installations: (owner) => [{ account: owner }] });
  await resolveSelections(world.ctx);
  await world.all("live");
  const { simulator } = world;
  const full = Object.keys(await world.states())[0] as string;
  simulator.setFaults({ webhooks: { fail: 1 } });
  const view = { world: simulator.world, apiUrl: simulator.url, htmlUrl: simulator.htmlUrl, roleOf: () => "admin" };
  mutate(simulator.world, openView(view as never), {
    op: "editIssue",
    repository: full,
    number: 1,
    title: "was missed",
  });
  await simulator.quiet();
  simulator.setFaults({});
  world.pass(2 * 60_000);
  simulator.meter.reset();
  const checked = await checkDeliveries(world.ctx);
  expect(checked.missed).toBeGreaterThan(0);
  expect(checked.asked).toBe(checked.missed);
  await world.settle();
  expect((await world.get(`/repos/${full}/issues/1`)).body).toMatchObject({ title: "was missed" });
  world.pass(2 * 60_000);
  expect(await checkDeliveries(world.ctx)).toEqual({ missed: 0, asked: 0 });
  expect(Object.keys(simulator.meter.read().routes).filter((route) => /:repo.*hooks|:id.*hooks/.test(route))).toEqual(
    [],
  );
});

test("processes that begin at once, a clock five minutes off and a Redis that forgets: one token for each installation", async () => {
  await using world = await openAppWorld({ installations: (owner) => [{ account: owner }, { account: "small" }] });
  await resolveSelections(world.ctx);
  await world.all("live");
  world.advance(-5 * 60_000);
  world.pass(61 * 60_000);
  const { redis, config } = world.ctx;
  await redis.del(
    ...(await redis.keys(`${config.redisPrefix}:app:*`)),
    ...(await redis.keys(`${config.redisPrefix}:quota:*`)),
  );
  const others = await Promise.all([0, 1, 2].map(() => openUpstream(world.ctx)));
  world.simulator.meter.reset();
  const answers = await Promise.all(
    others.map((upstream) => upstream.get("/repos/small/part-0", { priority: "refresh" })),
  );
  expect(answers.map(({ kind }) => kind)).toEqual(["ok", "ok", "ok"]);
  const { routes, errors } = world.simulator.meter.read();
  // Upstream refuses one signature at most: the one that the wrong clock made.
  expect(errors).toBeLessThanOrEqual(1);
  expect((routes["POST /app/installations/:id/access_tokens"]?.requests ?? 0) - errors).toBe(1);
  for (const upstream of others) await upstream.close();
});

test("a busy account keeps no other waiting: first copies take turns", async () => {
  await using world = await openAppWorld({
    ...{ small: 24, issues: 1 },
    installations: (owner) => [{ account: "small" }, { account: owner }],
  });
  await resolveSelections(world.ctx);
  await world.all("live");
  const rows = await world.ctx.db.query<{ full_name: string }>(sql`
    select r.full_name from repository_syncs s join repositories r on r.id = s.repository_id order by s.backfilled_at`);
  const place = rows.findIndex(({ full_name }) => full_name.startsWith(`${world.owner}/`));
  expect(rows.length).toBeGreaterThan(24);
  // If the busy account came behind all others, its place would be the 25th. Its place among them depends on how long
  // each copy takes.
  expect(place).toBeLessThan(18);
});

test("a sweep asks of each installation about its own private repositories, and finds nothing changed where nothing is", async () => {
  await using world = await openAppWorld({ installations: (owner) => [{ account: owner }, { account: "small" }] });
  for (const repository of world.simulator.world.repositories.values())
    setVisibility(world.simulator.world, world.by, repository, "private");
  await resolveSelections(world.ctx);
  await world.all("live");
  await world.settleMarks();
  // The first sweep knows nothing yet. The second does not know yet how long our lists are.
  for (let sweeps = 0; sweeps < 2; sweeps++) {
    await sweep(world.ctx);
    await world.settle();
    world.pass(6 * 60_000);
  }
  expect(await sweep(world.ctx)).toEqual({ swept: Object.keys(await world.states()).length, changed: 0 });
  const rows = await world.ctx.db.query(sql`select repository_id from sweeps where shown is null`);
  expect(rows).toEqual([]);
});
