import { expect, onTestFinished, test } from "vitest";
import { objectOf } from "../../src/json.ts";
import type { Simulator } from "../../src/simulator/control/running.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { openSimulator, type SimulatorOptions } from "../../src/simulator/simulator.ts";
import { fingerprint } from "../../src/upstream/credentials/credentials.ts";
import { learnOwner, tokensWithoutOwner } from "../../src/upstream/credentials/token-owners.ts";
import { findId, placeRepositoryHook } from "../../src/upstream/hooks/hooks.ts";
import { QuotaSpentError } from "../../src/upstream/protocol/errors.ts";
import { pages } from "../../src/upstream/protocol/pagination.ts";
import { quotaReport } from "../../src/upstream/quota/report.ts";
import { keepValidator, openUpstreamWorld, type UpstreamWorld } from "./world.ts";

const caller = { priority: "caller" } as const;

/** A generated world behind a simulated service, and our client of it. */
async function openSimulated(
  tokens: SimulatorOptions["tokens"] = [{ token: "one", login: "octo", repositories: "all", write: true }],
) {
  const simulator = await openSimulator({ seed: 11, tokens });
  // This is registered first, so it runs last: after the client has let go of its connections.
  onTestFinished(() => simulator.close());
  generateWorld(simulator.world, { seed: 11, repositories: 1, issues: 250 });
  const names = tokens.map(({ token }) => token ?? "");
  const world = await openUpstreamWorld(() => {}, { url: simulator.url, tokens: names });
  const used = async (token = names[0]) => {
    const answer = await fetch(`${simulator.url}/rate_limit`, {
      headers: { authorization: `Bearer ${token}`, "user-agent": "test" },
    });
    return ((await answer.json()) as { resources: { core: { used: number } } }).resources.core.used;
  };
  const fullName = await findRepository(world);
  return { simulator, world, used, fullName, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
}

/** The generated repository. All others are forks of it. */
async function findRepository(world: UpstreamWorld): Promise<string> {
  const answer = await world.upstream.get("/orgs/octo-works/repos", caller);
  if (answer.kind !== "ok") throw new Error(`The generated organisation is ${answer.kind}`);
  const [repository] = (answer.body as { full_name: string; fork: boolean }[]).filter(({ fork }) => !fork);
  if (!repository) throw new Error("The generated world has no repository");
  return repository.full_name;
}

async function control(simulator: Simulator, path: string, body: object): Promise<void> {
  const answer = await fetch(`${simulator.url}/-/${path}`, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json" },
  });
  if (!answer.ok) throw new Error(`The simulator answers ${answer.status}: ${await answer.text()}`);
}

test("a list is walked to its end, and walking it again unchanged costs nothing", async () => {
  await using simulated = await openSimulated();
  const { world, fullName, used } = simulated;
  const walk = async () => {
    const ids: number[] = [];
    const kinds: string[] = [];
    for await (const page of pages(world.upstream, `/repos/${fullName}/issues?state=all&per_page=100`, {
      priority: "backfill",
      conditional: true,
    })) {
      kinds.push(page.kind);
      if (page.kind !== "ok") continue;
      ids.push(...(page.body as { id: number }[]).map(({ id }) => id));
      if (page.validator) await keepValidator(world.ctx.db, page.validator);
    }
    return { ids, kinds };
  };
  const first = await walk();
  expect(new Set(first.ids).size).toBe(375);
  expect(first.kinds).toEqual(Array(4).fill("ok"));
  const before = await used();
  expect((await walk()).kinds).toEqual(Array(4).fill("unchanged"));
  expect(await used()).toBe(before);
});

test("the quota is spent to its last, and upstream never has to refuse", async () => {
  await using simulated = await openSimulated([{ token: "small", login: "octo", repositories: "all", limit: 40 }]);
  const { world, simulator, fullName, used } = simulated;
  const clients = [world.upstream, await world.another()];
  const begun = await used();
  const outcomes = await Promise.allSettled(
    Array.from({ length: 80 }, (_, index) => clients[index % 2]?.get(`/repos/${fullName}`, caller)),
  );
  expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(40 - begun);
  expect(outcomes.every((outcome) => outcome.status === "fulfilled" || outcome.reason instanceof QuotaSpentError)).toBe(
    true,
  );
  expect(await used()).toBe(40);
  expect(simulator.meter.read().primaryLimited).toBe(0);

  const error = await world.upstream.get("/user", caller).catch((reason) => reason);
  const waitMs = error.resetAt.getTime() - world.ctx.clock.now().getTime();
  await control(simulator, "clock", { advanceMs: waitMs });
  world.wait(waitMs);
  expect(await world.upstream.get("/user", caller)).toMatchObject({ kind: "ok" });
  expect(simulator.meter.read().primaryLimited).toBe(0);
});

test("after a secondary limit there is silence", async () => {
  await using simulated = await openSimulated();
  const { world, simulator } = simulated;
  await control(simulator, "faults", { http: [{ kind: "secondary-limit", retryAfter: 30, times: 1 }] });
  await expect(world.upstream.get("/user", caller)).rejects.toThrow(QuotaSpentError);
  const before = simulator.meter.read().requests;
  const other = await world.another();
  await expect(other.get("/user", caller)).rejects.toThrow(QuotaSpentError);
  await expect(other.graphql("{ viewer { login } }", {}, caller)).rejects.toThrow(QuotaSpentError);
  expect(simulator.meter.read().requests).toBe(before);
  world.wait(30_000);
  expect(await other.get("/user", caller)).toMatchObject({ kind: "ok" });
});

test.each([
  [{ kind: "status", status: 502, times: 2 }],
  [{ kind: "status", status: 503, times: 2 }],
  [{ kind: "reset", times: 2 }],
  [{ kind: "truncate", times: 2 }],
])("%o passes", async (fault) => {
  await using simulated = await openSimulated();
  await control(simulated.simulator, "faults", { http: [fault] });
  expect(await simulated.world.upstream.get(`/repos/${simulated.fullName}`, caller)).toMatchObject({ kind: "ok" });
});

test("a renamed repository says where it is now", async () => {
  await using simulated = await openSimulated();
  const { world, fullName } = simulated;
  const repository = await world.upstream.get(`/repos/${fullName}`, caller);
  const { id } = objectOf(repository.kind === "ok" ? repository.body : null);
  const renamed = await world.upstream.write({
    method: "PATCH",
    path: `/repos/${fullName}`,
    body: JSON.stringify({ name: "renamed" }),
  });
  expect(renamed.status).toBe(200);
  const moved = await world.upstream.get(`/repos/${fullName}/labels`, caller);
  expect(moved).toEqual({ kind: "moved", location: `/repositories/${id}/labels` });
  expect(await world.upstream.get(`/repositories/${id}/labels`, caller)).toMatchObject({ kind: "ok" });
});

test("GraphQL answers with its cost, and says by path what it cannot find", async () => {
  await using simulated = await openSimulated();
  const answer = await simulated.world.upstream.graphql(
    '{ viewer { login } none: repository(owner: "octo", name: "no-such") { id } rateLimit { cost limit remaining resetAt used nodeCount } }',
    {},
    caller,
  );
  expect(answer).toMatchObject({
    data: { viewer: { login: "octo" }, none: null },
    errors: [{ type: "NOT_FOUND", path: ["none"] }],
    cost: 1,
  });
});

test("a hook is made once and mended after", async () => {
  await using simulated = await openSimulated();
  const { world, fullName } = simulated;
  const id = await findId(world.upstream, `/repos/${fullName}`);
  const hook = {
    repository: { id, fullName },
    url: "http://127.0.0.1:9/webhooks",
    secret: "first-secret",
    events: ["issues"],
  };
  const made = await placeRepositoryHook(world.upstream, hook);
  expect(
    await placeRepositoryHook(world.upstream, { ...hook, secret: "second-secret", events: ["issues", "label"] }),
  ).toEqual(made);
  const listed = await world.upstream.get(`/repos/${fullName}/hooks`, caller);
  expect(listed).toMatchObject({
    body: [{ id: made.id, active: true, events: ["issues", "label"], config: { url: hook.url, content_type: "json" } }],
  });
});

test("two tokens of one user spend one quota, once it is known whose they are", async () => {
  const simulator = await openSimulator({
    tokens: ["one", "two"].map((token) => ({ token, login: "octo", repositories: "all" as const })),
    quota: { limits: { core: 40 } },
  });
  onTestFinished(() => simulator.close());
  await using world = await openUpstreamWorld(() => {}, { url: simulator.url, tokens: ["one", "two"] });
  const { upstream, ctx } = world;
  const learn = async () => {
    for (const token of await tokensWithoutOwner(ctx)) await learnOwner({ ...ctx, upstream }, token);
  };
  await learn();
  const before = simulator.meter.read().requests;
  await learn();
  expect(simulator.meter.read().requests).toBe(before);
  const other = await world.another();
  await Promise.allSettled(
    Array.from({ length: 100 }, (_, at) => (at % 2 ? upstream : other).get("/user", { priority: "caller" })),
  );
  expect(simulator.meter.read()).toMatchObject({ charged: 40, primaryLimited: 0 });
  const report = await quotaReport(ctx);
  expect(report.filter(({ bucket }) => bucket === "core")).toMatchObject([{ remaining: 0, sharedWith: [{}] }]);
});

test("of two tokens of one user the one that is over is left alone, and told of, and the other goes on", async () => {
  const simulator = await openSimulator({
    tokens: ["one", "two"].map((token) => ({ token, login: "octo", repositories: "all" as const })),
  });
  onTestFinished(() => simulator.close());
  await using world = await openUpstreamWorld(() => {}, { url: simulator.url, tokens: ["one", "two"] });
  for (const token of await tokensWithoutOwner(world.ctx))
    await learnOwner({ ...world.ctx, upstream: world.upstream }, token);
  simulator.tokens.expire("one", 0);
  for (let times = 0; times < 3; times++)
    expect(await world.upstream.get("/user", caller)).toMatchObject({ kind: "ok" });
  const told = (await quotaReport(world.ctx)).filter(({ rejectedUntil }) => rejectedUntil !== null);
  expect(new Set(told.map(({ name }) => name))).toEqual(new Set([`token ${fingerprint("one")} of octo`]));
  expect(told[0]?.problem).toMatch(/revoked, expired or wrong; put a valid one/);
  // By now the token may be tried again, but it is not accepted yet.
  world.wait(6 * 60_000);
  const due = (await quotaReport(world.ctx)).filter(({ problem }) => problem !== null);
  expect(due.map(({ credential, rejectedUntil }) => [credential, rejectedUntil])).toEqual(
    due.map(() => [fingerprint("one"), null]),
  );
  expect(due).not.toEqual([]);
  simulator.tokens.expire("one", Date.now() + 86_400_000);
  await world.upstream.get("/user", { ...caller, credential: fingerprint("one") });
  expect((await quotaReport(world.ctx)).filter(({ problem }) => problem !== null)).toEqual([]);
});
