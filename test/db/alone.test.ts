/**
 * What must not run twice at once does not: with two processes, a killed one, one that stood still, and one that is cut
 * off.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { alone, NotAloneError } from "../../db/alone.ts";
import { type Database, openDatabase } from "../../db/database.ts";
import { compiled, sql } from "../../db/sql.ts";
import { openTestDatabase, type TestDatabase } from "../support/database.ts";
import { openForwarder } from "../support/forwarder.ts";

let database: TestDatabase;
let db: Database;
let other: Database;
beforeAll(async () => {
  database = await openTestDatabase();
  [db, other] = [openDatabase(database.url), openDatabase(database.url)];
});
afterAll(async () => {
  await Promise.all([db.close(), other.close()]);
  await database.drop();
});

/** Work that is under way until it is let end, or has lost its hold. */
function begin(by: Database, name: string, limits = {}) {
  const begun = Promise.withResolvers<AbortSignal>();
  const end = Promise.withResolvers<string>();
  const work = async (lost: AbortSignal) => {
    lost.addEventListener("abort", () => end.reject(lost.reason), { once: true });
    begun.resolve(lost);
    return await end.promise;
  };
  const ended = alone({ db: by, log }, name, work, limits);
  ended.catch(() => {}); // A test looks at it later.
  return { begun: begun.promise, end: () => end.resolve("done"), ended };
}

const told: object[] = [];
const log = { warn: (what: object) => void told.push(what) };

const never = async () => "twice";
/** As if its holder had last renewed it a while ago. */
const lapse = (name: string) =>
  db.query(sql`update exclusive_work set held_until = clock_timestamp() - interval '1 ms' where name = ${name}`);
const rows = () => db.query<{ name: string }>(sql`select name from exclusive_work`);

test("what another process does is not begun, and can be once it has ended", async () => {
  const first = begin(db, "work");
  await first.begun;
  expect(await alone({ db: other, log }, "work", never)).toBeNull();
  expect(await alone({ db: other, log }, "other work", async () => "beside it")).toBe("beside it");
  first.end();
  expect(await first.ended).toBe("done");
  expect(await alone({ db: other, log }, "work", async () => "later")).toBe("later");
  expect(await rows()).toEqual([]);
});

test("of many who begin at one moment, one does it", async () => {
  const end = Promise.withResolvers<string>();
  const asked = Array.from({ length: 20 }, (_, at) =>
    alone({ db: at % 2 ? db : other, log }, "rush", () => end.promise),
  );
  const refused = Promise.withResolvers<void>();
  let count = 0;
  for (const one of asked) void one.then((answer) => answer === null && ++count === 19 && refused.resolve());
  await refused.promise;
  end.resolve("done");
  expect((await Promise.all(asked)).filter((answer) => answer !== null)).toEqual(["done"]);
});

test("work that fails is free at once, and its error is told", async () => {
  await expect(alone({ db, log }, "failing", () => Promise.reject(new Error("upstream is away")))).rejects.toThrow(
    "upstream is away",
  );
  expect(await alone({ db: other, log }, "failing", async () => "again")).toBe("again");
});

test("what goes on for longer than a hold stays its holder's", async () => {
  const first = begin(db, "long", { renewMs: 5 });
  await first.begun;
  const heldUntil = async () =>
    (await db.query<{ at: Date }>(sql`select held_until as at from exclusive_work where name = 'long'`))[0]?.at;
  const before = await heldUntil();
  await expect.poll(heldUntil, { timeout: 20_000 }).not.toEqual(before);
  expect(await alone({ db: other, log }, "long", never)).toBeNull();
  first.end();
  expect(await first.ended).toBe("done");
});

test("who was killed holds it until its hold lapses, and no longer", async () => {
  // Its process is gone: nothing renews the row, and nothing deletes it.
  await db.query(sql`insert into exclusive_work (name, holder, held_until)
    values ('killed', gen_random_uuid(), clock_timestamp() + interval '1 hour')`);
  expect(await alone({ db, log }, "killed", never)).toBeNull();
  await lapse("killed");
  expect(await alone({ db, log }, "killed", async () => "taken over")).toBe("taken over");
});

test("who stood still stops once another has begun, and leaves the other's hold as it is", async () => {
  const still = begin(db, "stood still", { renewMs: 20 });
  const lost = await still.begun;
  await db.query(sql`update exclusive_work set holder = gen_random_uuid(), held_until = clock_timestamp() + interval '1 hour'
    where name = 'stood still'`);
  await expect(still.ended).rejects.toThrow(NotAloneError);
  expect(lost.aborted).toBe(true);
  expect(await alone({ db, log }, "stood still", never)).toBeNull();
});

test("who is cut off from Postgres stops by itself, and the work goes on elsewhere", async () => {
  await using forwarder = await openForwarder(database.url);
  const far = openDatabase(forwarder.through(database.url));
  try {
    const cut = begin(far, "cut off", { heldMs: 300, renewMs: 20 });
    await cut.begun;
    forwarder.lead(null);
    await expect(cut.ended).rejects.toThrow(NotAloneError);
    await expect
      .poll(() => alone({ db, log }, "cut off", async () => "elsewhere"), { timeout: 20_000 })
      .toBe("elsewhere");
  } finally {
    await far.close();
  }
});

test("who stood still, and was not missed, goes on", async () => {
  const still = begin(db, "not missed", { renewMs: 20 });
  await still.begun;
  await lapse("not missed");
  const isHeld = () =>
    db.count(sql`select from exclusive_work where name = 'not missed' and held_until > clock_timestamp()`);
  await expect.poll(isHeld, { timeout: 20_000 }).toBe(1);
  still.end();
  expect(await still.ended).toBe("done");
});

test("each renewal ends before the hold does, also one that hangs, and its failure is told", async () => {
  const heldMs = 1_000;
  let heldFrom = performance.now();
  const late: number[] = [];
  const watched = new Proxy(db, {
    get: (target, name) => {
      if (name !== "count") return Reflect.get(target, name).bind(target);
      return async (...[statement, limits]: Parameters<Database["count"]>) => {
        const askedAt = performance.now();
        if (limits?.timeoutMs) late.push(Math.max(0, askedAt + limits.timeoutMs - (heldFrom + heldMs)));
        if (!limits) heldFrom = askedAt;
        const count = await target.count(statement, limits);
        if (limits) heldFrom = askedAt;
        return count;
      };
    },
  });
  told.length = 0;
  const first = begin(watched, "hangs", { heldMs, renewMs: 20 });
  const lost = await first.begun;
  await db.transaction(async (tx) => {
    await tx.query(sql`select from exclusive_work where name = 'hangs' for update`);
    await new Promise((resolve) => lost.addEventListener("abort", resolve, { once: true }));
    // Were the row let go at once, the renewal could still succeed.
    await expect.poll(() => told, { timeout: 20_000 }).toContainEqual({ name: "hangs", err: expect.any(Error) });
  });
  await expect(first.ended).rejects.toThrow(NotAloneError);
  expect(late.length).toBeGreaterThan(0);
  expect(Math.max(...late)).toBe(0);
});

test("a hold that cannot be let go replaces neither the work's error nor its answer", async () => {
  const refused = new Proxy(db, {
    get: (target, name) => {
      if (name !== "count") return Reflect.get(target, name).bind(target);
      return (...[statement, limits]: Parameters<Database["count"]>) =>
        compiled(statement).text.startsWith("delete")
          ? Promise.reject(new Error("permission denied"))
          : target.count(statement, limits);
    },
  });
  told.length = 0;
  await expect(alone({ db: refused, log }, "kept", () => Promise.reject(new Error("its own")))).rejects.toThrow(
    "its own",
  );
  expect(await alone({ db: refused, log }, "kept too", async () => "done")).toBe("done");
  expect(told).toHaveLength(2);
});
