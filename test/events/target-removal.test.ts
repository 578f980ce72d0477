import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { askFor } from "../../src/events/asks.ts";
import { TargetClient } from "../../src/events/post.ts";
import { createTarget, findTarget, removeTarget } from "../../src/events/target.ts";
import { sendTo } from "../../src/events/turn.ts";
import { until } from "../support/patience.ts";
import { openWorld, type TestWorld } from "../support/world.ts";
import { openTargetServer } from "./target-server.ts";

let world: TestWorld;
beforeAll(async () => {
  world = await openWorld({ env: { TARGETS_ALLOWED: "127.0.0.1" } });
});
afterAll(() => world?.[Symbol.asyncDispose]());

test("a target is removed while a ping to it is being noted", async () => {
  const { db } = world.ctx;
  await using server = await openTargetServer();
  const given = { url: server.url, contentType: "json", insecureSsl: false, secret: null, events: ["*"] } as const;
  const scope = { kind: "everything", id: 0 } as const;
  const { id } = await createTarget(world.ctx, { ...given, active: true, rewriteTo: null, scope, madeBy: "operator" });
  const ping = { event: "ping", payload: Buffer.from("{}"), deliveryId: null, repositoryId: null };
  await askFor(world.ctx, id, ping);
  // Whoever notes a request waits here: it has dropped the ask, and has not locked the target.
  await db.query(sql`create function wait_in_test() returns trigger language plpgsql as
    $$ begin perform pg_advisory_xact_lock(41); return null; end $$`);
  await db.query(sql`create trigger wait_in_test before update on targets
    for each statement execute function wait_in_test()`);
  const locked = (kind: string) => async () =>
    (await db.count(sql`select from pg_stat_activity where datname = current_database()
      and wait_event_type = 'Lock' and wait_event = ${kind}`)) > 0;

  const client = new TargetClient(world.ctx);
  const { sending, removing } = await db.transaction(async (tx) => {
    await tx.query(sql`select pg_advisory_xact_lock(41)`);
    const sending = sendTo(world.ctx, client, id, AbortSignal.timeout(60_000)).catch((error: unknown) => error);
    await until("the ping is being noted", locked("advisory"));
    const removing = removeTarget(world.ctx, id).catch((error: unknown) => error);
    await until("the removal waits for it", locked("transactionid"));
    return { sending, removing };
  });

  expect(await sending).not.toBeInstanceOf(Error);
  expect(await removing).toBe(true);
  expect(await findTarget(world.ctx, id)).toBeNull();
  expect(server.pings).toHaveLength(1);
  await client.close();
});
