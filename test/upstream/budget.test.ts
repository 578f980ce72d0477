import type { ServerResponse } from "node:http";
import { expect, onTestFinished, test, vi } from "vitest";
import { openSimulator, type SimulatorOptions } from "../../src/simulator/simulator.ts";
import { SettableClock } from "../../src/simulator/world/clock.ts";
import { QuotaSpentError } from "../../src/upstream/protocol/errors.ts";
import type { Priority, Upstream } from "../../src/upstream/protocol/upstream.ts";
import { at, json, keepValidator, openUpstreamWorld, quotaHeaders, type WorldOptions } from "./world.ts";

const caller = { priority: "caller" } as const;
const backfill = { priority: "backfill" } as const;

/** A simulated service and the clients of several processes. They share a clock that stands still until it is moved. */
async function openShared(
  processes: number,
  { limit, quota, env }: { limit?: number; quota?: SimulatorOptions["quota"]; env?: WorldOptions["env"] } = {},
) {
  const clock = new SettableClock(at(0).getTime());
  const token = { token: "one", login: "octo", repositories: "all", write: true } as const;
  const simulator = await openSimulator({
    clock,
    tokens: [{ ...token, ...(limit === undefined ? {} : { limit }) }],
    ...(quota ? { quota } : {}),
  });
  onTestFinished(() => simulator.close());
  const world = await openUpstreamWorld(() => {}, { url: simulator.url, tokens: ["one"], ...(env ? { env } : {}) });
  const clients = [world.upstream];
  while (clients.length < processes) clients.push(await world.another());
  const advance = (ms: number) => {
    clock.advance(ms);
    world.wait(ms);
  };
  return { simulator, world, clients, advance, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
}

type Shared = Awaited<ReturnType<typeof openShared>>;

/**
 * Works through `todo` requests as jobs do: one that is told to come back later does so. Time passes only when all jobs
 * wait, and `meanwhile` runs each time before that. Answers how many times they all waited.
 */
async function workOff(
  { clients, world, advance }: Shared,
  { todo, priority, each }: { todo: number; priority: Priority; each: number },
  meanwhile: (resumesAt: Date) => Promise<void> = async () => {},
): Promise<number> {
  let waits = 0;
  const waiting: { until: Date; go: () => void }[] = [];
  let running = clients.length * each;
  const rest = async (until?: Date) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    if (until) waiting.push({ until, go: resolve });
    else running -= 1;
    if (waiting.length === running && waiting.length > 0) {
      const next = new Date(Math.min(...waiting.map((one) => one.until.getTime())));
      await meanwhile(next);
      waits += 1;
      advance(next.getTime() - world.ctx.clock.now().getTime());
      for (const { go } of waiting.splice(0)) go();
    }
    if (until) await promise;
  };
  const work = async (client: Upstream) => {
    while (todo > 0) {
      todo -= 1;
      try {
        await client.get("/user", { priority });
      } catch (error) {
        if (!(error instanceof QuotaSpentError)) throw error;
        todo += 1;
        await rest(error.resetAt);
      }
    }
    await rest();
  };
  await Promise.all(clients.flatMap((client) => Array.from({ length: each }, () => work(client))));
  return waits;
}

/** `npm run proofs quota` has worker processes work through more requests. */
test("work for four times the quota: upstream never has to refuse, work resumes at the reset, and a caller's write is answered meanwhile", async () => {
  await using shared = await openShared(3, { limit: 500 });
  const { simulator, clients } = shared;
  const waits = await workOff(shared, { todo: 2_000, priority: "backfill", each: 6 }, async () => {
    const answer = await clients[1]?.write({ method: "PATCH", path: "/repos/octo/none", body: "{}" });
    expect(answer?.status).toBe(404);
  });
  // This work may spend 450 of each hour, and the rest is for work of higher priority. While Redis is late each process
  // goes on with a share of its own. So an hour may end with some quota left.
  expect(waits).toBeGreaterThanOrEqual(4);
  expect(waits).toBeLessThanOrEqual(8);
  expect(simulator.meter.read()).toMatchObject({ primaryLimited: 0, secondaryLimited: 0, charged: 2_000 + waits });
});

test("nothing is known at first, so one request asks, and the others wait for its answer", async () => {
  const answers: (() => void)[] = [];
  await using world = await openUpstreamWorld((_, response) => {
    answers.push(() => json(response, 200, {}, quotaHeaders(4)));
  });
  const other = await world.another();
  const outcomes = Promise.allSettled(
    Array.from({ length: 10 }, (_, index) =>
      (index % 2 ? other : world.upstream).get("/user", { priority: "refresh" }),
    ),
  );
  await expect.poll(() => answers.length).toBe(1);
  // A caller does not wait for the slow page of another caller.
  const impatient = world.upstream.get("/user", caller);
  await expect.poll(() => answers.length).toBe(2);
  const third = world.upstream.get("/user", caller).catch((reason) => reason);
  expect(await third).toBeInstanceOf(QuotaSpentError);
  expect(answers).toHaveLength(2);
  for (const answer of answers) answer();
  world.play = (_, response) => json(response, 200, {}, quotaHeaders(4));
  await impatient;
  await outcomes;
});

test("what was sent without knowing counts against what the first answer says is left", async () => {
  const answers: (() => void)[] = [];
  await using world = await openUpstreamWorld((_, response, count) => {
    answers.push(() => json(response, 200, {}, quotaHeaders(count === 1 ? 1 : 0)));
  });
  const both = [world.upstream.get("/user", caller), world.upstream.get("/user", caller)];
  await expect.poll(() => answers.length).toBe(2);
  answers[0]?.();
  await both[0];
  await expect(world.upstream.get("/user", caller)).rejects.toMatchObject({ resetAt: at(3_600) });
  answers[1]?.();
  await both[1];
  expect(world.asked).toHaveLength(2);
});

test("a request that never comes back does not keep the bucket unknown for ever", async () => {
  const { promise: unanswered, resolve: leave } = Promise.withResolvers<ServerResponse>();
  await using world = await openUpstreamWorld((_, response) => leave(response));
  const dead = world.upstream.get("/user", backfill).catch((reason) => reason);
  const lost = await unanswered;
  const other = await world.another();
  await expect(other.get("/user", backfill)).rejects.toThrow(QuotaSpentError);
  world.play = (_, response) => json(response, 200, {}, quotaHeaders(4));
  world.wait(10_000);
  expect(await other.get("/user", backfill)).toMatchObject({ kind: "ok" });
  lost.destroy();
  await dead;
});

test("what a process left behind that died while its clock was ahead ends once the clock is right", async () => {
  const { promise: unanswered, resolve: leave } = Promise.withResolvers<ServerResponse>();
  await using world = await openUpstreamWorld((_, response) => leave(response));
  world.wait(3_000_000);
  const dead = world.upstream.get("/user", backfill).catch((reason) => reason);
  const lost = await unanswered;
  world.wait(-3_000_000);
  const other = await world.another();
  world.play = (_, response) => json(response, 200, {}, quotaHeaders(4_000));
  expect(await other.get("/user", backfill)).toMatchObject({ kind: "ok" });
  lost.destroy();
  await dead;
  // Neither does a write wait behind one that was sent then.
  const write = async (path: string) => await other.write({ method: "POST", path, body: "{}" });
  world.wait(3_000_000);
  expect(await write("/ahead")).toMatchObject({ status: 200 });
  world.wait(-3_000_000);
  expect(await write("/right")).toMatchObject({ status: 200 });
});

test("a clock that is put right while the budget is asked keeps no request waiting", async () => {
  await using world = await openUpstreamWorld((_, response) => json(response, 200, {}, quotaHeaders(4_000)));
  expect(await world.upstream.get("/user", backfill)).toMatchObject({ kind: "ok" });
  const { redis } = world.ctx;
  const ask = redis.evalsha.bind(redis) as (...args: unknown[]) => Promise<unknown>;
  world.wait(3_000_000);
  Object.assign(redis, {
    evalsha: (...args: unknown[]) => {
      Object.assign(redis, { evalsha: ask });
      const leased = ask(...args);
      world.wait(-3_000_000);
      return leased;
    },
  });
  const signal = AbortSignal.timeout(10_000);
  expect(await world.upstream.get("/user", { ...backfill, signal })).toMatchObject({ kind: "ok" });
});

test("what has not changed takes nothing from the budget, however often it is asked for", async () => {
  await using world = await openUpstreamWorld(({ headers }, response) => {
    const tagged = { ...quotaHeaders(2), etag: '"tag"' };
    if (headers["if-none-match"] === '"tag"') response.writeHead(304, tagged).end();
    else json(response, 200, [], tagged);
  });
  const conditional = { ...caller, conditional: true };
  const answer = await world.upstream.get("/repos/octo/demo/labels?per_page=100", conditional);
  if (answer.kind !== "ok" || !answer.validator) throw new Error("There is nothing to ask with conditionally");
  await keepValidator(world.ctx.db, answer.validator);
  for (let turn = 0; turn < 5; turn++)
    expect(await world.upstream.get("/repos/octo/demo/labels?per_page=100", conditional)).toMatchObject({
      kind: "unchanged",
    });
  expect(await world.upstream.get("/user", caller)).toMatchObject({ kind: "ok" });
});

test("when Redis loses its memory, two requests at most find out again what is spent", async () => {
  await using shared = await openShared(2, { limit: 40 });
  const { simulator, world, clients, advance } = shared;
  await clients[0]?.get("/user", caller);
  const all = () =>
    Promise.allSettled(Array.from({ length: 60 }, (_, index) => clients[index % 2]?.get("/user", caller)));
  await all();
  expect(simulator.meter.read()).toMatchObject({ charged: 40, primaryLimited: 0 });
  await world.ctx.redis.del(...(await world.ctx.redis.keys(`${world.ctx.config.redisPrefix}:*`)));
  const outcomes = await all();
  expect(outcomes.every((outcome) => outcome.status === "rejected" && outcome.reason instanceof QuotaSpentError)).toBe(
    true,
  );
  const after = simulator.meter.read();
  expect(after.charged).toBe(40);
  expect(after.primaryLimited).toBeLessThanOrEqual(2);
  advance(3_601_000);
  expect(await clients[0]?.get("/user", caller)).toMatchObject({ kind: "ok" });
});

test("when Redis loses its memory in the middle, the next headers say what is left", async () => {
  await using shared = await openShared(2, { limit: 40 });
  const { simulator, world, clients } = shared;
  for (let times = 0; times < 30; times++) await clients[times % 2]?.get("/user", caller);
  await world.ctx.redis.del(...(await world.ctx.redis.keys(`${world.ctx.config.redisPrefix}:*`)));
  const rest = Array.from({ length: 30 }, (_, index) => clients[index % 2]?.get("/user", caller));
  const outcomes = await Promise.allSettled(rest);
  const answered = outcomes.filter(({ status }) => status === "fulfilled").length;
  // Two requests go out before anything is known. Nothing says whether the first answer counts the second request, so
  // that one may be counted twice.
  expect([9, 10]).toContain(answered);
  expect(simulator.meter.read()).toMatchObject({ charged: 30 + answered, primaryLimited: 0 });
});

test("a window that is over for Redis is over for a process that was told a later end", async () => {
  const last = Promise.withResolvers<void>();
  await using world = await openUpstreamWorld(async (_, response, count) => {
    if (count === 1) await last.promise;
    // The answer that comes last shows upstream's clock a second ahead of ours. By it the window ends a second earlier.
    json(response, 200, {}, { ...quotaHeaders(0), date: at(count === 1 ? 1 : 0).toUTCString() });
  });
  const [one, other] = [world.upstream, await world.another()];
  const held = other.get("/user", caller);
  await vi.waitFor(() => expect(world.asked).toHaveLength(1));
  await one.get("/user", caller);
  last.resolve();
  await held;
  await expect(one.get("/user", caller)).rejects.toMatchObject({ resetAt: at(3_599) });
  world.wait(3_599_000);
  expect(await one.get("/user", caller)).toMatchObject({ kind: "ok" });
});

test("points a minute are shared by all processes, and some are left for those above", async () => {
  await using shared = await openShared(3, { quota: { limits: { core: 50_000 } } });
  const { simulator, clients, world } = shared;
  const waits = await workOff(shared, { todo: 1_700, priority: "backfill", each: 6 }, async (resumesAt) => {
    expect(resumesAt.getTime() - world.ctx.clock.now().getTime()).toBeLessThanOrEqual(63_000);
    const answer = await clients[2]?.write({ method: "PATCH", path: "/repos/octo/none", body: "{}" });
    expect(answer?.status).toBe(404);
  });
  expect(waits).toBeGreaterThanOrEqual(2);
  expect(simulator.meter.read()).toMatchObject({ primaryLimited: 0, secondaryLimited: 0 });
});

test("no more than a hundred are under way in all processes, and some places are left for those above", async () => {
  let held: (() => void)[] | null = null;
  let mostHeld = 0;
  await using world = await openUpstreamWorld((_, response) => {
    const answer = () => json(response, 200, {}, quotaHeaders(4_000));
    if (!held) return answer();
    held.push(answer);
    mostHeld = Math.max(mostHeld, held.length);
  });
  const clients = [world.upstream];
  while (clients.length < 8) clients.push(await world.another());
  await world.upstream.get("/user", caller);
  held = [];
  const outcomes = Promise.allSettled(
    clients.flatMap((client) => Array.from({ length: 14 }, () => client.get("/user", backfill))),
  );
  await expect.poll(() => held?.length).toBe(90);
  const waitingCaller = clients[7]?.get("/user", caller);
  await expect.poll(() => held?.length).toBe(91);
  const waiting = held;
  held = null;
  for (const answer of waiting) answer();
  expect(await waitingCaller).toMatchObject({ kind: "ok" });
  await outcomes;
  expect(mostHeld).toBe(91);
});

test("writes of all processes are a second apart, and those in line are not sent once upstream asks for silence", async () => {
  const times: number[] = [];
  await using world = await openUpstreamWorld((_, response) => {
    times.push(performance.now());
    if (times.length < 3) return json(response, 201, {}, quotaHeaders(4_000));
    json(response, 429, { message: "You have exceeded a secondary rate limit." }, { "retry-after": "60" });
  });
  const other = await world.another();
  const outcomes = await Promise.allSettled(
    Array.from({ length: 5 }, (_, index) =>
      (index % 2 ? other : world.upstream).write({ method: "POST", path: `/${index}`, body: "{}" }),
    ),
  );
  expect(times).toHaveLength(3);
  for (const [index, time] of times.slice(1).entries()) expect(time - (times[index] ?? 0)).toBeGreaterThan(900);
  // The third request got upstream's own answer. The two after it were never sent.
  expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(3);
  for (const outcome of outcomes)
    if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ resetAt: at(60) });
});

test("a line that is too long is told when to come back", async () => {
  await using world = await openUpstreamWorld((_, response) => json(response, 201, {}, quotaHeaders(4_000)));
  const abort = new AbortController();
  const write = (index: number) =>
    world.upstream.write({ method: "POST", path: `/${index}`, body: "{}" }, { signal: abort.signal });
  await write(0);
  const line = Array.from({ length: 10 }, (_, index) => write(index).catch((reason) => reason));
  await expect
    .poll(async () => Number((await world.ctx.redis.hget(await credentialKey(), "writeAt")) ?? 0))
    .toBe(at(11).getTime());
  await expect(write(11)).rejects.toMatchObject({ resetAt: at(1) });
  abort.abort(new Error("enough"));
  const left = (await Promise.all(line)).filter((reason) => reason instanceof Error);
  expect(left.length).toBeGreaterThan(5);
  async function credentialKey() {
    const keys = await world.ctx.redis.keys(`${world.ctx.config.redisPrefix}:quota:*`);
    return keys.sort((a, b) => a.length - b.length)[0] ?? "";
  }
});

test("after a Retry-After upstream sees no request of any process until it has passed", async () => {
  await using shared = await openShared(3);
  const { simulator, clients, advance } = shared;
  await clients[0]?.get("/user", caller);
  simulator.setFaults({ http: [{ kind: "secondary-limit", retryAfter: 30, times: 1 }] });
  const storm = () =>
    Promise.allSettled(clients.flatMap((client) => Array.from({ length: 10 }, () => client.get("/user", caller))));
  await storm();
  const before = simulator.meter.read().requests;
  for (const ms of [0, 1, 15_000, 14_998]) {
    advance(ms);
    const outcomes = await storm();
    expect(outcomes.every(({ status }) => status === "rejected")).toBe(true);
    await expect(clients[1]?.write({ method: "POST", path: "/x", body: "{}" })).rejects.toThrow(QuotaSpentError);
    await expect(clients[2]?.graphql("{ viewer { login } }", {}, caller)).rejects.toThrow(QuotaSpentError);
  }
  expect(simulator.meter.read().requests).toBe(before);
  advance(1);
  expect(await clients[2]?.get("/user", caller)).toMatchObject({ kind: "ok" });
});

test("QUOTA_SHARE is all that is used of a token, in each window, and others' use still counts", async () => {
  await using shared = await openShared(2, { limit: 100, env: { QUOTA_SHARE: "0.5" } });
  const { simulator, clients, advance } = shared;
  const all = (priority: Priority) =>
    Promise.allSettled(Array.from({ length: 80 }, (_, index) => clients[index % 2]?.get("/user", { priority })));
  await all("backfill");
  expect(simulator.meter.read().charged).toBe(45);
  await all("caller");
  expect(simulator.meter.read().charged).toBe(50);

  advance(3_601_000);
  await clients[0]?.get("/user", caller);
  // Somebody else takes 80 of the 99 that are left.
  for (let times = 0; times < 80; times++)
    await fetch(`${simulator.url}/user`, { headers: { authorization: "Bearer one", "user-agent": "somebody" } });
  await clients[1]?.get("/user", caller);
  await all("caller");
  expect(simulator.meter.read()).toMatchObject({ charged: 50 + 100, primaryLimited: 0 });
});
