import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import type { Context } from "../../src/context.ts";
import { askForSending } from "../../src/events/asks.ts";
import { findListedTargets } from "../../src/events/listed-targets.ts";
import { TargetClient } from "../../src/events/post.ts";
import { changeTarget, countSealedSecrets, findTarget, resealSecrets, secretOf } from "../../src/events/target.ts";
import { sendTo } from "../../src/events/turn.ts";
import { askCommand, openCommand, readCommand, reportCommand } from "../../src/queues/commands.ts";
import type { TestWorld } from "../support/world.ts";
import { SECRET, SendingWorld } from "./sending-world.ts";

const OLD = "the-old-encryption-key";
const NEW = "the-new-encryption-key";

let sending: SendingWorld;
let world: TestWorld;
beforeAll(async () => {
  sending = await SendingWorld.open();
  ({ world } = sending);
});
afterAll(() => sending?.[Symbol.asyncDispose]());
afterEach(() => sending.clear());

/** A process with these keys: ENCRYPTION_KEY, and WEBHOOK_SECRET. Without the first it is as before there was one. */
function processWith(encryptionKeys: string[] | null, webhookSecrets = world.ctx.config.webhookSecrets): Context {
  return { ...world.ctx, config: { ...world.ctx.config, encryptionKeys, webhookSecrets } };
}

const secretIn = async (ctx: Context, id: number) =>
  secretOf(ctx, (await findTarget(ctx, id)) ?? { sealedSecret: null });
const keysOf = async (ctx: Context) => {
  const { byKey, unopened } = await countSealedSecrets(ctx);
  return { byKey: Object.fromEntries(byKey), unopened };
};

test("what WEBHOOK_SECRET alone had sealed opens beside an ENCRYPTION_KEY, and after a reseal needs it no more", async () => {
  const before = processWith(null);
  const ids: number[] = [];
  for (let at = 0; at < 3; at += 1) {
    const id = await sending.register("http://127.0.0.1:9/");
    await changeTarget(before, id, { secret: `${SECRET} ${at}` });
    ids.push(id);
  }
  const after = processWith([NEW]);
  expect(await Promise.all(ids.map((id) => secretIn(after, id)))).toEqual([0, 1, 2].map((at) => `${SECRET} ${at}`));
  expect(await keysOf(after)).toEqual({ byKey: { 1: 3 }, unopened: 0 });
  expect(await resealSecrets(after)).toBe(3);
  expect(await resealSecrets(after)).toBe(0);
  const without = processWith([NEW], ["another-webhook-secret"]);
  expect(await keysOf(without)).toEqual({ byKey: { 0: 3 }, unopened: 0 });
  expect(await Promise.all(ids.map((id) => secretIn(without, id)))).toEqual([0, 1, 2].map((at) => `${SECRET} ${at}`));
  // WEBHOOK_SECRET leads to none of them any more.
  await expect(secretIn(before, ids[0] ?? 0)).rejects.toThrow(/a key that is not set: name it behind the present one/);
});

test("without the key nothing is lost: the row stays, the list says why, and the key opens it again", async () => {
  const id = await sending.register("http://127.0.0.1:9/");
  await changeTarget(processWith([OLD]), id, { secret: SECRET });
  const stranger = processWith([NEW]);
  const [before] = await world.ctx.db.query(sql`select secret from targets where id = ${id}`);
  expect(await resealSecrets(stranger)).toBe(0);
  expect(await keysOf(stranger)).toEqual({ byKey: {}, unopened: 1 });
  expect(await findListedTargets(stranger)).toMatchObject([
    { id, problem: expect.stringContaining("encrypted with a key that is not set") },
  ]);
  expect(await world.ctx.db.query(sql`select secret from targets where id = ${id}`)).toEqual([before]);
  expect(await secretIn(processWith([NEW, OLD]), id)).toBe(SECRET);
});

test("a process without the new key leaves a target's events to one that has it, and disables nothing", async () => {
  const server = await sending.openServer();
  const id = await sending.register(server.url);
  await changeTarget(processWith([NEW]), id, { secret: SECRET });
  const ask = { event: "ping", payload: Buffer.from("{}"), deliveryId: null, repositoryId: null };
  await askForSending(world.ctx, id, ask);
  const run = async (ctx: Context) => {
    const client = new TargetClient(ctx);
    try {
      await sendTo(ctx, client, id, new AbortController().signal);
    } finally {
      await client.close();
    }
  };
  // The world's workers have another key, as processes from before have: this event waits.
  await sending.starred(sending.at(0), 1);
  await world.settle();
  await run(processWith([OLD]));
  expect(server.heard).toEqual([]);
  expect(await findTarget(world.ctx, id)).toMatchObject({ disabledAt: null, problem: null, active: true });
  world.advance(120_000);
  await run(processWith([NEW, OLD]));
  await server.hears(1);
  expect(server.heard.map(({ payload }) => payload.number)).toEqual([1]);
  expect(server.pings).toHaveLength(1);
});

test("while secrets are sealed anew, each can be read at any time, and one that is changed meanwhile keeps its change", async () => {
  const old = processWith([OLD]);
  const both = processWith([NEW, OLD]);
  const ids: number[] = [];
  for (let at = 0; at < 20; at += 1) {
    const id = await sending.register("http://127.0.0.1:9/");
    await changeTarget(old, id, { secret: `secret ${at}` });
    ids.push(id);
  }
  let isOver = false;
  const seen = new Set<string>();
  const reading = async () => {
    while (!isOver)
      for (const [at, id] of ids.entries()) {
        const secret = await secretIn(both, id);
        if (secret !== `secret ${at}` && secret !== `changed ${at}`) seen.add(String(secret));
      }
  };
  const changing = async () => {
    for (const [at, id] of ids.entries())
      if (at % 2 === 0) await changeTarget(at % 4 === 0 ? old : both, id, { secret: `changed ${at}` });
  };
  const read = reading();
  await Promise.all([changing(), resealSecrets(both), resealSecrets(both)]);
  isOver = true;
  await read;
  // A process from before may have sealed a change behind the walk.
  await resealSecrets(both);
  expect([...seen]).toEqual([]);
  expect(await keysOf(processWith([NEW]))).toEqual({ byKey: { 0: 20 }, unopened: 0 });
  expect(await Promise.all(ids.map((id) => secretIn(processWith([NEW]), id)))).toEqual(
    ids.map((_, at) => `${at % 2 === 0 ? "changed" : "secret"} ${at}`),
  );
});

test("an operator's command, and what came of it, opens beside processes with the older key", async () => {
  const old = processWith([OLD]);
  const both = processWith([NEW, OLD]);
  const jobs: { id: string; sealed: string }[] = [];
  const queues = {
    ...world.ctx.queues,
    commands: { add: async (_: string, job: (typeof jobs)[number]) => jobs.push(job) },
  };
  const asking = { ...old, queues } as unknown as Context;
  const id = await askCommand(asking, { name: "doctor", args: ["--"] });
  expect(jobs).toHaveLength(1);
  for (const job of jobs) {
    expect(openCommand(both, job)).toMatchObject({ name: "doctor", args: ["--"] });
    expect(openCommand(processWith([NEW]), job)).toBeNull();
  }
  const told = { state: "done", lines: [], document: null, error: null, code: 0 } as const;
  await reportCommand(old, id, { ...told, lines: ["well"] });
  expect(await readCommand(both, id)).toMatchObject({ lines: ["well"] });
});
