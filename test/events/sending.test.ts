import { createHmac } from "node:crypto";
import { verify } from "@octokit/webhooks-methods";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { sql } from "../../db/sql.ts";
import { createApiToken } from "../../src/api/callers/tokens.ts";
import { askForSending } from "../../src/events/asks.ts";
import { dueTargets } from "../../src/events/cursors.ts";
import { wakeDue } from "../../src/events/log.ts";
import { PayloadRoom } from "../../src/events/payload.ts";
import { TargetClient } from "../../src/events/post.ts";
import { listSent } from "../../src/events/sent.ts";

import { changeTarget, findTarget } from "../../src/events/target.ts";
import { sendTo } from "../../src/events/turn.ts";
import { PATIENCE_MS, TEST_MS } from "../support/bounds.ts";
import { printFigures } from "../support/figures.ts";
import { eventually, until } from "../support/patience.ts";
import { startProgram } from "../support/program.ts";
import type { TestWorld } from "../support/world.ts";
import { SECRET, SendingWorld } from "./sending-world.ts";
import { tell } from "./tell.ts";
import { TitleWatch } from "./title-watch.ts";

/**
 * `READS=20000` tells of as many changes, and asks two processes about each, one of them a process of the system's own.
 */
const READS = Number(process.env.READS ?? 25);
const READ_MS = Math.max(PATIENCE_MS, 1_000 * READS);

let sending: SendingWorld;
let world: TestWorld;
beforeAll(async () => {
  sending = await SendingWorld.open();
  ({ world } = sending);
});
afterAll(() => sending?.[Symbol.asyncDispose]());
afterEach(() => sending.clear());

test("an event arrives as upstream sent it, with its GUID, the hook's headers and both signatures", async () => {
  const server = await sending.openServer();
  const id = await sending.register(server.url, { repository: sending.at(0) });
  // What other writers of JSON would write differently.
  const payload = { action: "created", text: "a/b \u2028 ü", number: 1.0, repository: sending.at(0) };
  const guid = await tell(world, { event: "star", payload });
  await server.hears(1);
  const [heard] = server.heard;
  expect(heard).toMatchObject({ event: "star", guid, body: JSON.stringify(payload) });
  expect(heard?.headers).toMatchObject({
    accept: "*/*",
    "content-type": "application/json",
    "user-agent": expect.stringMatching(/^GitHub-Hookshot\//),
    "x-github-hook-id": String(id),
    "x-github-hook-installation-target-id": String(sending.at(0).id),
    "x-github-hook-installation-target-type": "repository",
    "x-hub-signature": `sha1=${createHmac("sha1", SECRET)
      .update(heard?.body ?? "")
      .digest("hex")}`,
  });
  await expect(verify(SECRET, heard?.body ?? "", String(heard?.headers["x-hub-signature-256"]))).resolves.toBe(true);
});

test("a target that asks for a form gets one, and is signed what it gets", async () => {
  const server = await sending.openServer();
  await sending.register(server.url, { contentType: "form" });
  await sending.starred(sending.at(0));
  await server.hears(1);
  const [heard] = server.heard;
  expect(heard?.headers["content-type"]).toBe("application/x-www-form-urlencoded");
  expect(heard?.payload).toMatchObject({ action: "created" });
  await expect(verify(SECRET, heard?.body ?? "", String(heard?.headers["x-hub-signature-256"]))).resolves.toBe(true);
});

test("a target without a secret is sent no signature, and one hears only of its repository and its events", async () => {
  const [one, other] = [await sending.openServer(), await sending.openServer()];
  await sending.register(one.url, { repository: sending.at(0), events: ["issues"], secret: null });
  await sending.register(other.url);
  await sending.starred(sending.at(0));
  await sending.renamed(sending.at(1), "elsewhere");
  await sending.renamed(sending.at(0), "here");
  await Promise.all([one.hears(1), other.hears(3)]);
  expect(one.heard.map(({ event, payload }) => [event, payload.repository.id])).toEqual([["issues", sending.at(0).id]]);
  expect(Object.keys(one.heard[0]?.headers ?? {}).filter((name) => name.includes("signature"))).toEqual([]);
});

test("the events of a repository arrive in order, while another target is dead, another slow and another refuses", async () => {
  const [live, slow, refusing] = [await sending.openServer(), await sending.openServer(), await sending.openServer()];
  slow.answer = () => "never";
  refusing.answer = (_, reply) => reply.writeHead(500).end("no");
  await sending.register(live.url);
  await sending.register(slow.url);
  await sending.register(refusing.url);
  await sending.register("http://127.0.0.1:9/nobody");
  for (let number = 0; number < 20; number++)
    await Promise.all([sending.starred(sending.at(0), number), sending.starred(sending.at(1), number)]);
  await live.hears(40);
  for (const { id } of [sending.at(0), sending.at(1)]) {
    const numbers = live.heard
      .filter(({ payload }) => payload.repository.id === id)
      .map(({ payload }) => payload.number);
    expect(numbers).toEqual(Array.from({ length: 20 }, (_, number) => number));
  }
  // Each of the other targets still waits with the first event of each repository. It was asked for nothing else.
  await slow.hears(1);
  await refusing.hears(1);
  expect(new Set(slow.heard.map(({ payload }) => payload.number))).toEqual(new Set([0]));
  expect(new Set(refusing.heard.map(({ payload }) => payload.number))).toEqual(new Set([0]));
});

test("a target that failed is tried again with the same GUID until it accepts, and then hears the rest in order", async () => {
  const server = await sending.openServer();
  server.answer = (_, reply) => reply.writeHead(503, { "retry-after": "600" }).end("later");
  const id = await sending.register(server.url, { repository: sending.at(0) });
  const guids = [await sending.starred(sending.at(0), 1), await sending.starred(sending.at(0), 2)];
  await server.hears(1);
  await until("the failure is noted", async () => (await listSent(world.ctx, id, { limit: 9 })).length === 1);
  world.advance(599_000);
  expect(await wakeDue(world.ctx)).toBe(0);
  server.answer = null;
  world.advance(2_000);
  await wakeDue(world.ctx);
  await server.hears(3);
  expect(server.heard.map(({ guid }) => guid)).toEqual([guids[0], guids[0], guids[1]]);
  await until("all is noted", async () => (await listSent(world.ctx, id, { limit: 9 })).length === 3);
  expect(await listSent(world.ctx, id, { limit: 9 })).toMatchObject([
    { status: "OK", statusCode: 200, redelivery: false },
    { status: "OK", statusCode: 200, redelivery: true },
    { status: "Invalid HTTP Response: 503", statusCode: 503, redelivery: false },
  ]);
});

test("a turn that stalls once it holds a repository sends nothing: another may have sent it meanwhile", async () => {
  const server = await sending.openServer();
  server.answer = (_, reply) => reply.writeHead(503, { "retry-after": "600" }).end("later");
  const id = await sending.register(server.url, { repository: sending.at(0) });
  const guid = await sending.starred(sending.at(0), 1);
  await server.hears(1);
  await until("the failure is noted", async () => (await listSent(world.ctx, id, { limit: 9 })).length === 1);
  server.answer = null;
  // The clock of the mirror's own processes is behind this one, so they do not try yet.
  let aheadMs = 601_000;
  const ctx = { ...world.ctx, clock: { now: () => new Date(world.ctx.clock.now().getTime() + aheadMs) } };
  const client = new TargetClient(ctx);
  const { room } = client;
  try {
    const stall = () => {
      aheadMs += 15_000;
      return room;
    };
    Object.defineProperty(client, "room", { get: stall, configurable: true });
    await sendTo(ctx, client, id, new AbortController().signal);
    expect(server.heard).toHaveLength(1);
    Object.defineProperty(client, "room", { value: room });
    // It was given back.
    await sendTo(ctx, client, id, new AbortController().signal);
    expect(server.heard.map((heard) => heard.guid)).toEqual([guid, guid]);
  } finally {
    await client.close();
  }
});

test("a turn that stalls once it holds what was asked for sends nothing: another may send it meanwhile", async () => {
  const server = await sending.openServer();
  const id = await sending.register(server.url);
  let aheadMs = 0;
  const ctx = { ...world.ctx, clock: { now: () => new Date(world.ctx.clock.now().getTime() + aheadMs) } };
  const client = new TargetClient(ctx);
  const { slots } = client;
  try {
    const stall = () => {
      aheadMs += 15_000;
      return slots;
    };
    Object.defineProperty(client, "slots", { get: stall, configurable: true });
    await askForSending(ctx, id, { event: "ping", payload: Buffer.from("{}"), deliveryId: null, repositoryId: null });
    await sendTo(ctx, client, id, new AbortController().signal);
    expect(server.pings).toHaveLength(0);
    Object.defineProperty(client, "slots", { value: slots });
    aheadMs += 15_000;
    await sendTo(ctx, client, id, new AbortController().signal);
    expect(server.pings).toHaveLength(1);
  } finally {
    await client.close();
  }
});

test("an ask that finds no room is given back at once, and the events do not wait behind it", async () => {
  const server = await sending.openServer();
  server.answer = (_, reply) => reply.writeHead(503, { "retry-after": "600" }).end("later");
  const id = await sending.register(server.url, { repository: sending.at(0) });
  const waiting = await sending.starred(sending.at(0), 1);
  await server.hears(1);
  await until("the failure is noted", async () => (await listSent(world.ctx, id, { limit: 9 })).length === 1);
  server.answer = null;
  const text = "x".repeat(300 * 1_024);
  const large = await tell(world, { event: "star", payload: { action: "created", text, repository: sending.at(1) } });
  const [delivery] = await world.ctx.db.query<{ id: string }>(sql`select id from deliveries where guid = ${large}`);
  // The processes' own clock has not come so far, so they do not try.
  const ctx = { ...world.ctx, clock: { now: () => new Date(world.ctx.clock.now().getTime() + 601_000) } };
  const client = new TargetClient(ctx);
  const room = new PayloadRoom({ mostBytes: 1, patienceMs: 1 });
  const others = await room.take(text.length);
  let waitedMs = 0;
  const now = performance.now.bind(performance);
  const watch = vi.spyOn(performance, "now").mockImplementation(() => now() + waitedMs);
  const waits = async (bytes: number) => {
    const taken = await room.take(bytes);
    // Just longer than one turn lasts.
    if (taken === null) waitedMs += 5_001;
    return taken;
  };
  Object.defineProperty(client, "room", { value: { take: waits } });
  try {
    const asked = { event: "star", payload: null, deliveryId: delivery?.id ?? null, repositoryId: sending.at(1).id };
    expect(await askForSending(ctx, id, asked)).toBe(true);
    await sendTo(ctx, client, id, new AbortController().signal);
    expect(server.heard.map(({ guid }) => guid)).toEqual([waiting, waiting]);
    expect(await dueTargets(ctx)).toContain(id);
    others?.[Symbol.dispose]();
    await sendTo(ctx, client, id, new AbortController().signal);
    expect(server.heard.map(({ payload }) => payload.text)).toEqual([undefined, undefined, text]);
    expect(await dueTargets(ctx)).not.toContain(id);
  } finally {
    watch.mockRestore();
    await client.close();
  }
});

test("a target that accepts nothing for long is disabled with its problem, and goes on where it stopped once enabled", async () => {
  const server = await sending.openServer();
  server.answer = (_, reply) => reply.writeHead(410).end("gone");
  const id = await sending.register(server.url, { repository: sending.at(0) });
  await sending.starred(sending.at(0), 1);
  await server.hears(1);
  await until("the failure is noted", async () => (await listSent(world.ctx, id, { limit: 9 })).length === 1);
  world.advance(3_601_000);
  expect(await world.ctx.metrics.text()).toMatch(/^tain_targets_oldest_waiting_seconds 3[6-9]\d\d/m);
  await wakeDue(world.ctx);
  await until("it is disabled", async () => (await findTarget(world.ctx, id))?.disabledAt !== null);
  expect((await findTarget(world.ctx, id))?.problem).toMatch(
    /^It has accepted nothing since .*Invalid HTTP Response: 410$/,
  );
  expect(await world.ctx.metrics.text()).toMatch(/^tain_targets\{state="disabled"\} 1$/m);
  await sending.starred(sending.at(0), 2);
  await world.settle();
  expect(server.heard).toHaveLength(2);
  server.answer = null;
  await changeTarget(world.ctx, id, { active: true });
  await wakeDue(world.ctx);
  await server.hears(4);
  expect(server.heard.slice(2).map(({ payload }) => payload.number)).toEqual([1, 2]);
});

test("an event that a target alone does not take is given up after its time, and the rest goes on", async () => {
  const server = await sending.openServer();
  server.answer = ({ payload }, reply) => (payload.number === 13 ? reply.writeHead(422).end() : undefined);
  const id = await sending.register(server.url);
  await sending.starred(sending.at(0), 13);
  await sending.starred(sending.at(0), 14);
  await until("the failure is noted", async () => (await listSent(world.ctx, id, { limit: 9 })).length >= 1);
  await sending.starred(sending.at(1), 1);
  await until("the other is accepted", async () => (await findTarget(world.ctx, id))?.acceptedAt !== null);
  world.advance(3_601_000);
  await wakeDue(world.ctx);
  await until("the next one is heard", async () => server.heard.some(({ payload }) => payload.number === 14));
  expect((await findTarget(world.ctx, id))?.problem).toBeNull();
});

test("an event is told once: though two hooks brought it, or it came again", async () => {
  const server = await sending.openServer();
  await sending.register(server.url);
  const guid = await sending.starred(sending.at(0), 1);
  await world.settle();
  await tell(world, {
    event: "star",
    payload: { action: "created", number: 1, repository: sending.at(0) },
    guid,
    hookId: 2,
  });
  await tell(world, { event: "star", payload: { action: "created", number: 1, repository: sending.at(0) }, guid });
  await world.settle();
  await sending.starred(sending.at(0), 2);
  await server.hears(2);
  expect(server.heard.map(({ payload }) => payload.number)).toEqual([1, 2]);
});

test("whoever asks at the moment of the delivery sees at least what it tells, by REST and GraphQL, in any process", {
  timeout: READ_MS + TEST_MS - PATIENCE_MS,
}, async () => {
  const server = await sending.openServer();
  const webs = [world.url, process.env.READS ? await startWeb() : await world.openSibling()];
  const { id, full_name } = sending.at(0);
  const { id: userId } = (await world.get("/user")).body as { id: number };
  const token = await createApiToken(world.ctx, { userId, canWrite: false, hourlyLimit: 1_000_000_000 });
  const titles = new TitleWatch({ fullName: full_name, token });
  server.answer = async ({ payload }, reply) => {
    await titles.look(webs, Number(payload.issue.title));
    reply.end();
  };
  await sending.register(server.url, { repository: sending.at(0), events: ["issues"] });
  const { body: issue } = await world.get(`/repos/${full_name}/issues/1`);
  const begun = world.ctx.clock.now().getTime();
  for (let number = 1; number <= READS; number++) {
    const updated_at = `${new Date(begun + number * 1_000).toISOString().slice(0, 19)}Z`;
    const payload = {
      action: "edited",
      issue: { ...(issue as object), title: `${number}`, updated_at },
      changes: {},
      repository: sending.at(0),
    };
    await tell(world, { event: "issues", payload });
  }
  await until("all are heard", async () => titles.asked === READS * 4, READ_MS);
  printFigures("read after event", { events: READS, reads: titles.asked, behind: titles.behind.length });
  expect(titles.behind).toEqual([]);
  expect(server.heard.map(({ payload }) => [payload.repository.id, payload.issue.title])).toEqual(
    Array.from({ length: READS }, (_, number) => [id, `${number + 1}`]),
  );
});

async function startWeb(): Promise<string> {
  const web = startProgram("src/web.ts", { ...world.env, LOG_LEVEL: "info" });
  return String((await web.said("Listening")).address);
}

test("of a turn in which several repositories fail, each failure is told", async () => {
  const { db } = world.ctx;
  const server = await sending.openServer();
  const id = await sending.register(server.url);
  await db.query(sql`create function refuse_record() returns trigger language plpgsql as
    $$ begin raise exception 'no record of %', new.repository_id; end $$`);
  await db.query(sql`create trigger refuse_record before insert on target_deliveries
    for each row execute function refuse_record()`);
  let aheadMs = 0;
  const ctx = { ...world.ctx, clock: { now: () => new Date(world.ctx.clock.now().getTime() + aheadMs) } };
  const client = new TargetClient(ctx);
  try {
    await Promise.all([sending.starred(sending.at(0)), sending.starred(sending.at(1))]);
    await server.hears(2);
    const refusals = [sending.at(0), sending.at(1)].map((repository) => `no record of ${repository.id}`).sort();
    // A cursor that a process has locked at this moment is passed over.
    await eventually(async () => {
      // By this clock, the time of every cursor that an earlier turn held is over.
      aheadMs += 601_000;
      const failure = await sendTo(ctx, client, id, new AbortController().signal).catch((error) => error);
      expect(failure.errors?.map(({ message }: Error) => message).sort()).toEqual(refusals);
    });
  } finally {
    await db.query(sql`drop function refuse_record() cascade`);
    await client.close();
  }
});

test("with Redis emptied nothing is lost: what waits stands in Postgres", async () => {
  const server = await sending.openServer();
  await sending.register(server.url);
  await world.ctx.queues.targets.pause();
  await sending.starred(sending.at(0), 1);
  await until(
    "it waits",
    async () => (await world.ctx.db.query(sql`select from target_cursors where wanted_id > done_id`)).length === 1,
  );
  await world.ctx.queues.targets.obliterate({ force: true });
  await wakeDue(world.ctx);
  await server.hears(1);
});
