import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type Database, openDatabase } from "../../db/database.ts";
import { sql } from "../../db/sql.ts";
import { findDeliveryWay } from "../../src/operator/delivery-way.ts";
import { SendingWorld } from "../events/sending-world.ts";
import { tell } from "../events/tell.ts";
import { openLink } from "../receiver/breakable-link.ts";
import { deliverTo } from "../receiver/receiver-world.ts";
import { asRole, testRedis } from "../support/database.ts";
import { openMirror } from "../support/mirror.ts";
import { eventually, until } from "../support/patience.ts";

describe("the way of a delivery", () => {
  let sending: SendingWorld;
  let db: Database;
  beforeAll(async () => {
    sending = await SendingWorld.open();
    // With the rights of a web process, which shows it.
    db = openDatabase(asRole(sending.world.env.DATABASE_URL ?? "", "tain_web"));
  });
  afterAll(async () => {
    await db?.close();
    await sending?.[Symbol.asyncDispose]();
  });
  afterEach(() => sending.clear());

  const idOf = async (guid: string, hookId = 1): Promise<string> => {
    const rows = await db.query<{ id: string }>(
      sql`select id from deliveries where guid = ${guid} and hook_id = ${hookId}`,
    );
    return rows[0]?.id ?? "";
  };
  const wayOf = async (guid: string, hookId = 1) =>
    await findDeliveryWay({ ...sending.world.ctx, db }, await idOf(guid, hookId));

  test("leads from its receipt to the issue that it changed, and to each request to a target", async () => {
    const [one, other] = [await sending.openServer(), await sending.openServer()];
    const repository = sending.at(0);
    const accepts = await sending.register(one.url);
    const refuses = await sending.register(other.url, { repository });
    other.answer = (_, reply) => reply.writeHead(500).end();
    const guid = await sending.renamed(repository, "changed");
    await Promise.all([one.hears(1), other.hears(1)]);
    const way = await eventually(async () => {
      const found = await wayOf(guid);
      expect(found?.sent).toHaveLength(2);
      return found;
    });
    expect(way).toMatchObject({
      delivery: { guid, hookId: 1, status: "applied", attempts: 1, repository: repository.full_name },
      job: null,
      events: [
        {
          id: expect.any(Number),
          ...{ event: "issues", action: "edited", number: 1, isPullRequest: false, isOwn: true },
          repository: repository.full_name,
          page: expect.stringMatching(new RegExp(`^https?://.*/${repository.full_name}/issues/1$`)),
        },
      ],
      // The one that refused is tried again.
      waiting: [{ targetId: refuses, url: other.url, retryAt: expect.any(Date) }],
    });
    const sent = way?.sent ?? [];
    expect(sent.find(({ targetId }) => targetId === accepts)).toMatchObject({ statusCode: 200, url: one.url });
    expect(sent.find(({ targetId }) => targetId === refuses)).toMatchObject({ statusCode: 500, redelivery: false });
    const { receivedAt, settledAt } = way?.delivery ?? {};
    expect(settledAt?.getTime()).toBeGreaterThanOrEqual(receivedAt?.getTime() ?? Number.NaN);
    // By another clock of the same machine.
    expect(Math.abs((way?.storedAt.getTime() ?? 0) - (receivedAt?.getTime() ?? 0))).toBeLessThan(60_000);
  });

  test("is that of the event for each hook that told it, and says whose delivery was first", async () => {
    const guid = randomUUID();
    for (const hookId of [1, 2])
      await tell(sending.world, {
        ...{ event: "star", guid, hookId },
        payload: { action: "created", repository: sending.at(0) },
      });
    await sending.world.settle();
    const ways = [await wayOf(guid, 1), await wayOf(guid, 2)];
    expect(ways.map((way) => way?.events.map(({ event, page }) => [event, page !== null]))).toEqual([
      [["star", true]],
      [["star", true]],
    ]);
    expect(ways.map((way) => way?.events[0]?.isOwn).sort()).toEqual([false, true]);
  });

  test("ends where nothing is told: it was ignored, or is not there", async () => {
    const [row] = await sending.world.ctx.db.query<{ id: string }>(sql`
      insert into deliveries (hook_id, guid, event, payload, status, reason, received_at, settled_at)
        values (9, ${randomUUID()}, 'issues', '{}', 'ignored', 'no repository of ours', now(), now()) returning id`);
    expect(await findDeliveryWay({ ...sending.world.ctx, db }, row?.id ?? "")).toMatchObject({
      delivery: { status: "ignored", reason: "no repository of ours", repository: null },
      ...{ events: [], sent: [], waiting: [] },
    });
    for (const id of [randomUUID(), "", "1", "%", "'; drop table deliveries"])
      expect(await findDeliveryWay({ ...sending.world.ctx, db }, id)).toBeNull();
  });
});

test("a delivery that waits says where its job is, and that this is not known without Redis", async () => {
  const link = await openLink(testRedis().url);
  {
    await using mirror = await openMirror({ env: { REDIS_URL: link.url } });
    const { body } = await deliverTo(mirror.url, { secret: "test-webhook-secret" });
    const [row] = await mirror.ctx.db.query<{ id: string }>(
      sql`select id from deliveries where guid = ${String(body.delivery)}`,
    );
    const way = () => findDeliveryWay(mirror.ctx, row?.id ?? "");
    await eventually(async () =>
      expect(await way()).toMatchObject({
        delivery: { status: "pending", settledAt: null },
        job: { state: "waiting", attempts: 0, queuedAt: expect.any(Date) },
        events: [],
      }),
    );
    await mirror.ctx.queues.deliveries.drain();
    expect((await way())?.job).toBeNull();
    await link.cut();
    await until("Redis is away", async () => mirror.ctx.redis.status !== "ready");
    expect((await way())?.job).toBe("unknown");
    await link.mend();
  }
  await link[Symbol.asyncDispose]();
});
