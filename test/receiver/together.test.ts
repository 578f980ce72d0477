import examples from "@octokit/webhooks-examples" with { type: "json" };
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { keysOf } from "../../src/inbox/inbox.ts";
import type { Fields } from "../../src/json.ts";
import { readPayload } from "../../src/receiver/payload.ts";
import { connectTo } from "../support/database.ts";
import { eventually } from "../support/patience.ts";
import { openReceiverWorld, type ReceiverWorld } from "./receiver-world.ts";

let world: ReceiverWorld;
beforeAll(async () => {
  world = await openReceiverWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

const read = (body: string | Buffer) => readPayload("json", Buffer.from(body));
const filling = "x".repeat(5_000);

describe("the keys of a payload are those that it has", () => {
  test("of each example that upstream gives", () => {
    const payloads = (examples as unknown as { examples: Fields[] }[]).flatMap((one) => one.examples);
    expect(payloads.length).toBeGreaterThan(300);
    for (const payload of payloads) expect(read(JSON.stringify(payload))).toMatchObject(keysOf(payload));
  });

  test.each([
    ["the action elsewhere", { filling, action: "opened", repository: { id: 7, name: "a" } }],
    ["no action", { filling, repository: { id: 7, name: "a" } }],
    ["an action that is none", { action: "a b", filling, repository: { id: 7, name: "a" } }],
    ["no repository", { action: "opened", filling }],
    [
      "another repository inside",
      { action: "opened", check: { repository: { id: 8, name: "b" } }, filling, repository: { id: 7, name: "a" } },
    ],
    [
      "words that look like one",
      { action: "opened", body: '"repository":{"id":9,', filling, repository: { id: 7, name: "a" } },
    ],
    ["no repository but another's", { action: "opened", template_repository: { id: 8, name: "b" }, filling }],
    [
      "a repository within its key's last letters",
      { action: "opened", ory: { id: 8 }, repository: { id: 7 }, filling },
    ],
    [
      "more objects than are looked at",
      { action: "opened", objects: Array.from({ length: 5_001 }, () => ({ id: 8 })), repository: { id: 7, name: "a" } },
    ],
    ["an id beyond exact numbers", { action: "opened", filling, repository: { id: 2 ** 60, name: "a" } }],
    ["an id that is no whole number", { action: "opened", filling, repository: { id: 1.5, name: "a" } }],
  ])("%s", (_, payload) => {
    for (const indent of [0, 2]) expect(read(JSON.stringify(payload, null, indent))).toMatchObject(keysOf(payload));
  });

  test("JSON that is cut is refused", () => {
    const body = JSON.stringify({ action: "opened", filling, repository: { id: 7, name: "a" }, sender: 1 });
    expect(() => read(body.slice(0, -1))).toThrow("not valid JSON");
  });
});

describe("deliveries that come together", () => {
  const payloadOf = (index: number) => ({
    action: "opened",
    index,
    title: `caf\u00e9 ${index} ${"\u{1f980}".repeat(index)}`,
  });

  test("each is stored whole and once, and answered; a copy among them is known for what it is", async () => {
    const sent = Array.from({ length: 120 }, (_, index) => ({
      guid: `together-${index % 100}`,
      payload: payloadOf(index % 100),
    }));
    const answers = await Promise.all(sent.map((one) => world.deliver(one)));
    expect(answers.map(({ status, body }) => [status, body.delivery, body.status])).toEqual(
      sent.map(({ guid }) => [202, guid, "accepted"]),
    );
    const rows = await world.inbox();
    expect(rows).toHaveLength(100);
    for (const { guid, payload, status } of rows) {
      expect(JSON.parse(payload.toString("utf8"))).toEqual(payloadOf(Number(guid.slice("together-".length))));
      expect(status).toBe("pending");
    }
    await eventually(async () => {
      const { queues } = world.ctx;
      const alone = (await queues.deliveries.getJobs(["waiting"])).map((job) => job.data.deliveryId);
      const inBursts = (await queues.bursts.getJobs(["waiting"])).map((job) => job.data.deliveryIds);
      expect(new Set([...alone, ...inBursts.flat()])).toEqual(new Set(rows.map(({ id }) => id)));
    });
  });

  test("among new ones, what was applied stays so and what failed is pending again", async () => {
    const { db } = world.ctx;
    await db.query(sql`update deliveries set status = 'applied' where guid = 'together-1'`);
    await db.query(sql`update deliveries set status = 'failed', reason = 'no' where guid = 'together-2'`);
    const guids = ["together-1", "brand-new-one", "together-2", "brand-new-two", "together-1"];
    const answers = await Promise.all(guids.map((guid) => world.deliver({ guid, payload: payloadOf(1) })));
    expect(answers.map(({ status, body }) => [status, body.status])).toEqual([
      [202, "known"],
      [202, "accepted"],
      [202, "accepted"],
      [202, "accepted"],
      [202, "known"],
    ]);
    const rows = new Map((await world.inbox()).map((row) => [row.guid, row]));
    expect(rows.get("together-1")).toMatchObject({ status: "applied" });
    expect(rows.get("together-2")).toMatchObject({ status: "pending", reason: null });
    expect(rows.size).toBe(102);
  });

  test("deliveries that are being applied keep no other waiting, though each comes alone", async () => {
    const { db, config, queues } = world.ctx;
    const applied = [3, 4, 5, 6].map((index) => `together-${index}`);
    const holder = await connectTo(config.databaseUrl);
    try {
      await holder.query("begin");
      await holder.query("select from deliveries where guid = any($1) for update", [applied]);
      const held: ReturnType<typeof world.deliver>[] = [];
      for (const guid of applied) {
        held.push(world.deliver({ guid, payload: payloadOf(3) }));
        await eventually(async () => {
          const waiting = await db.query(sql`select from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock'`);
          expect(waiting).toHaveLength(held.length);
        });
      }
      const others = await Promise.all(
        Array.from({ length: 40 }, (_, index) => world.deliver({ guid: `beside-${index}`, payload: payloadOf(1) })),
      );
      expect(new Set(others.map(({ status }) => status))).toEqual(new Set([202]));
      await holder.query("commit");
      for (const answer of held) expect(await answer).toMatchObject({ status: 202, body: { status: "accepted" } });
      expect(await queues.inbox.getWaitingCount()).toBe(0);
    } finally {
      await holder.end();
    }
  });

  test("one that Postgres refuses takes no other with it", async () => {
    const { db } = world.ctx;
    await db.query(sql`alter table deliveries add constraint refused check (event <> 'refused')`);
    try {
      // Most of so many deliveries share a statement with others.
      const events = Array.from({ length: 40 }, (_, index) => (index === 20 ? "refused" : "issues"));
      const answers = await Promise.all(
        events.map((event, index) => world.deliver({ event, guid: `refusal-${index}`, payload: payloadOf(1) })),
      );
      // A delivery that Postgres refuses waits in Redis.
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
      const stored = (await world.inbox()).filter(({ guid }) => guid.startsWith("refusal-"));
      expect(stored.map(({ guid }) => guid)).toHaveLength(39);
      expect(await world.ctx.queues.inbox.getWaitingCount()).toBe(1);
    } finally {
      await db.query(sql`alter table deliveries drop constraint refused`);
    }
  });
});
