import { expect, test } from "vitest";
import { compiled, type SQL, sql } from "../../db/sql.ts";
import type { Context } from "../../src/context.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { backfill } from "../../src/sync/backfill/backfill.ts";
import { catchUp } from "../../src/sync/catch-up/catch-up.ts";
import { addSelections, resolveSelections } from "../../src/sync/following/selection.ts";
import { DeliveriesFirst, giveWay } from "../../src/sync/turns/give-way.ts";
import { withUpstream } from "../support/changed-upstream.ts";
import { openWorld } from "../support/world.ts";

/** A mirror without workers. Its inbox holds so many deliveries, all received so long ago. */
async function openBehind(deliveries: number, ageMs: number) {
  const world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 1, issues: 3, pulls: 1 }),
    workers: false,
  });
  const { ctx } = world;
  const { db } = ctx;
  await db.query(sql`
    insert into deliveries (hook_id, guid, event, payload, received_at)
      select 1, n::text, 'ping', '{}', ${new Date(ctx.clock.now().getTime() - ageMs)}
        from generate_series(1, ${deliveries}::integer) n`);
  let looks = 0;
  return {
    world,
    looks: () => looks,
    settle: () => db.query(sql`update deliveries set status = 'applied'`),
    fallBehind: () => db.query(sql`update deliveries set status = 'pending'`),
    /** The context, which calls `then` at each look at the inbox, with the number of looks so far. */
    watched: (then: (looks: number) => unknown): Context => {
      const prepared = async (statement: SQL) => {
        if (compiled(statement).text.includes("count(*) as late")) await then(++looks);
        return await db.prepared(statement);
      };
      const watching = new Proxy(db, {
        get(_, name: keyof typeof db) {
          const value = db[name];
          return name === "prepared" ? prepared : typeof value === "function" ? value.bind(db) : value;
        },
      });
      return { ...ctx, db: watching };
    },
  };
}

test("a job that gives way waits until deliveries are no longer behind", async () => {
  const { world, watched, looks, settle } = await openBehind(100, 3_000);
  await using _ = world;
  await giveWay(
    watched((look) => (look === 3 ? settle() : null)),
    new AbortController().signal,
  );
  expect(looks()).toBe(3);
});

test("refreshes that are due are let go first, too", async () => {
  const { world, watched, looks } = await openBehind(0, 0);
  await using _ = world;
  const { refresh } = world.ctx.queues;
  const job = (key: number) => ({ name: "refresh", data: { kind: "issue" as const, repositoryId: 1, key } });
  await refresh.addBulk(Array.from({ length: 100 }, (_one, key) => job(key)));
  await giveWay(
    watched((look) => (look === 3 ? refresh.drain() : null)),
    new AbortController().signal,
  );
  // The refreshes are counted at the same time as the inbox, so a third look may still see the old ones.
  expect([3, 4]).toContain(looks());
});

test.each([
  ["a few that wait long", 99, 3_600_000],
  ["many that have just come", 150, 0],
])("%s hold nobody up", async (_name, deliveries, ageMs) => {
  const { world, watched, looks } = await openBehind(deliveries, ageMs);
  await using _ = world;
  await giveWay(
    watched(() => null),
    new AbortController().signal,
  );
  expect(looks()).toBe(1);
});

test("under a load that does not end it goes on after a while, and at once when it is to stop", async () => {
  const { world, watched, looks } = await openBehind(100, 3_000);
  await using _ = world;
  await giveWay(
    watched(() => null),
    new AbortController().signal,
  );
  // In five seconds it looks four times a second, give or take chance and what each look takes.
  const before = looks();
  expect(before).toBeGreaterThan(3);
  expect(before).toBeLessThan(30);
  const stopping = new AbortController();
  await giveWay(
    watched(() => stopping.abort()),
    stopping.signal,
  );
  expect(looks()).toBe(before + 1);
});

test("refreshes let deliveries go first, and look together", async () => {
  const { world, watched, looks, settle } = await openBehind(100, 3_000);
  await using _ = world;
  const first = new DeliveriesFirst(watched((look) => (look === 3 ? settle() : null)));
  const { signal } = new AbortController();
  await Promise.all(Array.from({ length: 32 }, () => first.giveWay(signal)));
  expect(looks()).toBe(3);
  await first.giveWay(signal);
  expect(looks()).toBe(4);
});

test.each([
  { name: "a copy", isCopied: false, read: backfill },
  { name: "a catch-up", isCopied: true, read: catchUp },
])("$name asks for no page while deliveries are behind", async ({ isCopied, read }) => {
  const { world, watched, settle, fallBehind } = await openBehind(100, 3_000);
  await using _ = world;
  const { ctx } = world;
  await addSelections(ctx, [world.first]);
  await resolveSelections(ctx);
  const [row] = await ctx.db.query<{ id: number }>(sql`select repository_id as id from repository_syncs`);
  const job = { repositoryId: Number(row?.id) };
  const { signal } = new AbortController();
  if (isCopied) {
    await settle();
    await backfill(ctx, job, signal);
    await fallBehind();
  }
  let isBehind = true;
  const behind = watched(async (look) => {
    if (look < 2) return;
    isBehind = false;
    await settle();
  });
  const listed: [path: string, isBehind: boolean][] = [];
  const listening = withUpstream(behind, {
    get: async (path, options) => {
      if (path.includes("per_page")) listed.push([path, isBehind]);
      return ctx.upstream.get(path, options);
    },
  });
  await read(listening, job, signal);
  expect(listed.length).toBeGreaterThan(5);
  expect(listed.filter(([, wasBehind]) => wasBehind)).toEqual([]);
});
