import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openDatabase } from "../../db/database.ts";
import { sql } from "../../db/sql.ts";
import { ActivityWriter, pruneActivity, recentActivity } from "../../src/operations/activity-table.ts";
import { Metrics } from "../../src/operations/metrics.ts";
import { openLink } from "../receiver/breakable-link.ts";
import { deliverTo } from "../receiver/receiver-world.ts";
import { asRole } from "../support/database.ts";
import { openMirror, type TestMirror } from "../support/mirror.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** The beginning of an hour. */
const START = Date.UTC(2026, 3, 1, 12);

let mirror: TestMirror;
let now = START;
const clock = { now: () => new Date(now) };
beforeAll(async () => {
  mirror = await openMirror({ clock, web: false });
});
afterAll(() => mirror[Symbol.asyncDispose]());
beforeEach(async () => {
  now = START;
  await mirror.ctx.db.query(sql`delete from activity`);
});

/** What a process has that counts: figures of its own, and a writer. */
function processOf(db = mirror.ctx.db) {
  const metrics = new Metrics();
  const { activity } = metrics;
  return { activity, writer: new ActivityWriter({ ...mirror.ctx, db, clock, metrics }) };
}

const rows = () =>
  mirror.ctx.db.query<{ minutes: number; began_at: Date; arrived: string | null; applied: string | null }>(
    sql`select * from activity order by minutes, began_at`,
  );
const counted = async () =>
  (await rows()).map(({ minutes, began_at, arrived }) => [minutes, began_at.getTime() - START, Number(arrived)]);

describe("what processes count", () => {
  test("adds up over processes, and what none of them counts is not known", async () => {
    const [web, other, worker] = [processOf(), processOf(), processOf()];
    for (const { activity } of [web, other]) activity.tellOf("arrived");
    worker.activity.tellOf("applied", "lagMs", "slowestMs");
    web.activity.add("arrived", 3);
    other.activity.add("arrived", 4);
    for (const lag of [200, 900, 100])
      for (const [figure, amount] of [
        ["applied", 1],
        ["lagMs", lag],
        ["slowestMs", lag],
      ] as const)
        worker.activity.add(figure, amount);
    now = START + MINUTE_MS;
    await Promise.all([web, other, worker].map(({ writer }) => writer.write()));
    // The next minute: nothing happens, and the worker is down.
    now = START + 2 * MINUTE_MS;
    await Promise.all([web, other].map(({ writer }) => writer.write()));
    now += 10_000;
    expect((await recentActivity({ ...mirror.ctx, clock })).hour).toMatchObject([
      { at: new Date(START), arrived: 7, applied: 3, lagMs: 1_200, slowestMs: 900, byMirror: null },
      { at: new Date(START + MINUTE_MS), arrived: 0, applied: null, slowestMs: null },
    ]);
  });

  test("is told at the end, and a process that starts again counts nothing twice", async () => {
    const first = processOf();
    first.activity.add("arrived", 5);
    now = START + 20_000;
    await first.writer.close();
    const second = processOf();
    second.activity.add("arrived", 2);
    now = START + MINUTE_MS;
    await second.writer.write();
    await second.writer.close();
    expect(await counted()).toEqual([
      [1, 0, 7],
      [1, MINUTE_MS, 0],
    ]);
  });

  test("waits for Postgres with the minutes that it belongs to, two hours of them at most", async () => {
    const link = await openLink(mirror.env.DATABASE_URL ?? "");
    const db = openDatabase(link.url);
    const { activity, writer } = processOf(db);
    await link.cut();
    for (let minute = 0; minute < 130; minute++) {
      activity.add("arrived", 1);
      now += MINUTE_MS;
      await writer.write();
    }
    expect(await counted()).toEqual([]);
    await link.mend();
    activity.add("arrived", 9);
    now += MINUTE_MS;
    await writer.write();
    const told = await counted();
    expect(told).toHaveLength(120);
    expect(told.at(0)).toEqual([1, 11 * MINUTE_MS, 1]);
    expect(told.at(-1)).toEqual([1, 130 * MINUTE_MS, 9]);
    await db.close();
    await link[Symbol.asyncDispose]();
  });

  test("lies in minutes of the clock as it is when that is put back, and leaves nothing ahead of it", async () => {
    const { activity, writer } = processOf();
    activity.add("arrived", 1);
    now = START + 10 * MINUTE_MS;
    await writer.write();
    activity.add("arrived", 2);
    now = START + MINUTE_MS;
    await writer.write();
    activity.add("arrived", 4);
    now = START + 2 * MINUTE_MS;
    await writer.write();
    expect(await counted()).toEqual([
      [1, 0, 1],
      [1, MINUTE_MS, 4],
      [1, 10 * MINUTE_MS, 2],
    ]);
    await pruneActivity({ ...mirror.ctx, clock });
    expect(await counted()).toEqual([
      [1, 0, 1],
      [1, MINUTE_MS, 4],
    ]);
  });

  test("is written with the rights of a web process, which takes nothing back", async () => {
    const db = openDatabase(asRole(mirror.env.DATABASE_URL ?? "", "tain_web"));
    const { activity, writer } = processOf(db);
    for (let minute = 0; minute < 2; minute++) {
      activity.add("byMirror", 1);
      await writer.write();
    }
    expect(await rows()).toMatchObject([{ by_mirror: 2 }]);
    await expect(db.query(sql`delete from activity`)).rejects.toThrow(/permission denied/);
    await db.close();
  });
});

describe("the table", () => {
  test("keeps minutes for two hours, quarters for a day, and no more rows than that", async () => {
    const worker = mirror.openWorkerContext();
    for (let hour = 0; hour < 30; hour++) {
      await mirror.ctx.db.query(sql`
        insert into activity (minutes, began_at, arrived, slowest_ms)
          select 1, ${new Date(now)}::timestamptz + n * interval '1 minute', 1, ${60 * hour}::int + n from generate_series(0, 59) n`);
      now += HOUR_MS;
      await pruneActivity({ db: worker.db, clock });
    }
    const told = await counted();
    expect(told.length).toBeLessThanOrEqual(120 + 25 * 4 + 1);
    const { hour, day, until } = await recentActivity({ ...mirror.ctx, clock });
    expect(until).toEqual(new Date(now - MINUTE_MS));
    expect(hour).toHaveLength(60);
    expect(day).toHaveLength(96);
    expect(day.every(({ arrived }) => arrived === 15)).toBe(true);
    // The slowest is the greatest of its quarter, and no sum.
    expect(day.every(({ at, slowestMs }) => slowestMs === (at.getTime() - START) / MINUTE_MS + 14)).toBe(true);
    // A process that could not write for hours is not lost, and two that roll up at once count once.
    const late = processOf();
    late.activity.add("arrived", 100);
    const slow = new ActivityWriter({
      ...mirror.ctx,
      clock: { now: () => new Date(START + 27 * HOUR_MS) },
      metrics: { activity: late.activity },
    });
    await slow.write();
    await Promise.all([1, 2, 3].map(() => pruneActivity({ db: worker.db, clock })));
    const again = await recentActivity({ ...mirror.ctx, clock });
    expect(again.day.filter(({ arrived }) => arrived !== 15)).toMatchObject([
      { at: new Date(START + 27 * HOUR_MS), arrived: 115 },
    ]);
  });

  test("is empty until a process has told something", async () => {
    expect(await recentActivity({ ...mirror.ctx, clock })).toEqual({
      until: new Date(START - MINUTE_MS),
      hour: [],
      day: [],
    });
  });
});

test("a delivery that was applied counts no more when it is sent again, and a refused one does not", async () => {
  await using served = await openMirror({});
  const { activity } = served.ctx.metrics;
  activity.take();
  const guid = crypto.randomUUID();
  const secret = "test-webhook-secret";
  expect((await deliverTo(served.url, { guid, secret })).body.status).toBe("accepted");
  await served.ctx.db.query(sql`update deliveries set status = 'applied'`);
  for (let n = 0; n < 2; n++) expect((await deliverTo(served.url, { guid, secret })).body.status).toBe("known");
  expect((await deliverTo(served.url, { secret: "wrong" })).status).toBe(401);
  expect(activity.take().get("arrived")).toBe(1);
});
