import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { InvalidPayloadError } from "../../src/sync/events/read.ts";
import { DeliveryBatches } from "../../workers/deliveries.ts";
import type { TestWorld } from "../support/world.ts";
import { arrive, opened, openMirrored, statuses, titles } from "./arrived.ts";

const applied = (world: TestWorld, ids: string[]) => {
  const batches = new DeliveryBatches(world.ctx);
  return Promise.allSettled(ids.map((deliveryId) => batches.apply({ deliveryId })));
};

test("deliveries of one batch are merged in the order in which they were received, whatever order they are asked for in", async () => {
  await using world = await openMirrored();
  const ids = await arrive(world, [
    opened(world, 1, "first", "2026-01-01T00:00:01Z"),
    opened(world, 2, "other", "2026-01-01T00:00:01Z"),
    opened(world, 1, "third", "2026-01-01T00:00:03Z"),
    opened(world, 1, "second, late", "2026-01-01T00:00:02Z"),
  ]);
  const outcomes = await applied(world, ids.toReversed());
  expect(outcomes.map((outcome) => outcome.status === "fulfilled" && outcome.value)).toEqual(Array(4).fill("applied"));
  expect(await titles(world)).toEqual(["1 third", "2 other"]);
  expect((await applied(world, ids)).map((one) => one.status === "fulfilled" && one.value)).toEqual(
    Array(4).fill("known"),
  );
});

test("a payload that cannot be applied fails alone, and stays pending", async () => {
  await using world = await openMirrored();
  const ids = await arrive(world, [
    opened(world, 1, "good", "2026-01-01T00:00:01Z"),
    "{ not json",
    { action: "opened", issue: { number: 2, title: "no id, no dates" }, repository: world.repository },
    { action: "opened", issue: {}, repository: { ...world.repository, id: 78 } },
    opened(world, 3, "good as well", "2026-01-01T00:00:01Z"),
  ]);
  const outcomes = await applied(world, ids);
  expect(outcomes.map((one) => (one.status === "fulfilled" ? one.value : one.reason.constructor))).toEqual([
    "applied",
    InvalidPayloadError,
    InvalidPayloadError,
    "ignored",
    "applied",
  ]);
  expect(await statuses(world, ids)).toEqual(["applied", "pending", "pending", "ignored", "applied"]);
});

test("a repository whose id is no whole number is judged at once, and Postgres is never asked about it", async () => {
  await using world = await openMirrored();
  const wrong = [1.5, 1e300, "12", -0.5];
  const payloads = wrong.map((id) => ({
    ...opened(world, 2, "of no repository", "2026-01-01T00:00:01Z"),
    repository: { ...world.repository, id },
  }));
  const ids = await arrive(world, [opened(world, 1, "good", "2026-01-01T00:00:01Z"), ...payloads]);
  const outcomes = await applied(world, ids);
  expect(outcomes.map((one) => (one.status === "fulfilled" ? one.value : one.reason))).toEqual([
    "applied",
    ...wrong.map(() => expect.any(InvalidPayloadError)),
  ]);
  expect(await titles(world)).toEqual(["1 good"]);
});

test("what else should be a whole number and is none does not fail an event that is only told on", async () => {
  await using world = await openMirrored();
  const [id = ""] = await arrive(world, [
    {
      action: "created",
      repository: { id: 1.5, full_name: "octo/none", owner: { id: 0.5 } },
      organization: { id: 2.5 },
      issue: { number: 1.5 },
    },
  ]);
  await world.ctx.db.query(sql`update deliveries set event = 'star' where id = ${id}`);
  expect(await applied(world, [id])).toEqual([{ status: "fulfilled", value: "ignored" }]);
  const events = await world.ctx.db.query(
    sql`select repository_id::integer as repository, owner_id, number from events`,
  );
  expect(events).toEqual([{ repository: 0, owner_id: null, number: null }]);
});

test("a delivery that was received without its repository's id finds it in the payload", async () => {
  await using world = await openMirrored();
  const ids = await arrive(world, [opened(world, 1, "earlier", "2026-01-01T00:00:01Z")]);
  await world.ctx.db.query(sql`update deliveries set repository_id = null`);
  expect(await applied(world, ids)).toEqual([{ status: "fulfilled", value: "applied" }]);
  expect(await titles(world)).toEqual(["1 earlier"]);
});

test("what Postgres refuses in one delivery does not keep its neighbours from being applied", async () => {
  await using world = await openMirrored();
  const ids = await arrive(world, [
    opened(world, 1, "good", "2026-01-01T00:00:01Z"),
    // No column holds an issue without a title.
    opened(world, 2, "refused", "2026-01-01T00:00:01Z", { title: null }),
    opened(world, 3, "good as well", "2026-01-01T00:00:01Z"),
  ]);
  const outcomes = await applied(world, ids);
  expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(await titles(world)).toEqual(["1 good", "3 good as well"]);
});

test("payloads that are too large to go together are applied one after the other", async () => {
  await using world = await openMirrored();
  const large = "x".repeat(5_000_000);
  const ids = await arrive(
    world,
    [1, 2, 3].map((number) => opened(world, number, `large ${number}`, "2026-01-01T00:00:01Z", { body: large })),
  );
  expect((await applied(world, ids)).map((one) => one.status === "fulfilled" && one.value)).toEqual(
    Array(3).fill("applied"),
  );
  expect(await titles(world)).toEqual(["1 large 1", "2 large 2", "3 large 3"]);
});

test("who closed an issue is the sender of the webhook that tells of it, and nobody is asked", async () => {
  await using world = await openMirrored();
  // The ghost stands for accounts that are gone, so it sends nothing.
  const sender = [...world.simulator.world.users.values()].find(({ login }) => login !== "ghost");
  const shown = { id: sender?.id, login: sender?.login, type: "User", followers_url: "https://api.github.com/" };
  const issue = opened(world, 1, "closed", "2026-01-01T00:00:05Z", { state: "closed" });
  await applied(world, await arrive(world, [{ ...issue, action: "closed", sender: shown }]));
  const rows = await world.ctx.db.query(sql`select closed_by_id::integer as closer from issues`);
  expect(rows).toEqual([{ closer: sender?.id }]);
  expect(await world.ctx.db.query(sql`select from refresh_marks`)).toEqual([]);
});

test("no name in a delivery leads to a repository: only reads tell of former names", async () => {
  await using world = await openMirrored();
  const named = (name: string, updatedAt: string) => ({
    action: "renamed",
    repository: { ...world.repository, name, full_name: `octo/${name}`, updated_at: updatedAt },
  });
  const ids = await arrive(world, [
    { ...opened(world, 1, "one", "2026-01-01T00:00:01Z"), ...named("seven", "2026-01-01T00:00:01Z") },
    { ...opened(world, 1, "one", "2026-01-01T00:00:01Z"), ...named("eight", "2026-01-01T00:00:02Z") },
    { ...opened(world, 1, "one", "2026-01-01T00:00:01Z"), ...named("nine", "2026-01-01T00:00:03Z") },
  ]);
  await applied(world, ids);
  const rows = await world.ctx.db.query(sql`select full_name from former_names order by full_name`);
  expect(rows).toEqual([]);
});

test("with Postgres away every delivery of the batch waits, and none is tried by itself", async () => {
  await using world = await openMirrored();
  const ids = await arrive(world, [
    opened(world, 1, "a", "2026-01-01T00:00:01Z"),
    opened(world, 2, "b", "2026-01-01T00:00:01Z"),
  ]);
  let transactions = 0;
  const outage = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
  const batches = new DeliveryBatches({
    ...world.ctx,
    db: {
      transaction: () => {
        transactions += 1;
        return Promise.reject(outage);
      },
    } as unknown as TestWorld["ctx"]["db"],
  });
  const outcomes = await Promise.allSettled(ids.map((deliveryId) => batches.apply({ deliveryId })));
  expect(outcomes.map((one) => one.status === "rejected" && one.reason)).toEqual([outage, outage]);
  expect(transactions).toBe(1);
});
