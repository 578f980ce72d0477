/** A second mirror asks the first for what the first has not read yet. The first may hardly ask the root for others. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { WholeKind } from "../../db/schema/states.ts";
import { type SQL, sql } from "../../db/sql.ts";
import { repositoryMark, storeMarks } from "../../src/mirror/store/marks.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { addCode } from "../../src/simulator/generate/generate-code.ts";
import { enqueueMarks } from "../../src/sync/marks/marks.ts";
import { quotaReport } from "../../src/upstream/quota/report.ts";
import { askAt } from "../support/asking.ts";
import { type Follower, OF_CHAIN, openFollower, tokenOfFollower } from "../support/chain.ts";
import type { TestMirror } from "../support/mirror.ts";
import { openWorld, type TestWorld, untilIdle } from "../support/world.ts";

const MINUTE = 60_000;

let first: TestWorld;
let second: Follower;
let repositoryId: number;
/** The number of the newest pull request, which has others behind it. */
let number: number;

beforeAll(async () => {
  first = await openWorld({
    fill: ({ world }) => {
      generateWorld(world, { seed: 7, repositories: 1, issues: 2, pulls: 4 });
      for (const one of world.repositories.values()) if (!one.fork) addCode(world, one, {}, 7, world.now());
    },
    env: { ...OF_CHAIN, UPSTREAM_READS_PER_CALLER: "1" },
  });
  const fullName = first.first;
  await first.mirror(fullName);
  await first.listen(fullName);
  second = await openFollower({ url: first.url, token: await tokenOfFollower(first), fullName });
  const [row] = await first.ctx.db.query<{ id: number; number: number }>(sql`
    select r.id::float8 as id, max(p.number) as number from repositories r join pull_requests p on p.repository_id = r.id
      where r.full_name = ${fullName} group by r.id`);
  if (!row) throw new Error("The repository is not there");
  [repositoryId, number] = [row.id, row.number];
  for (const mirror of [first, second]) for (const kind of KINDS) await refresh(mirror, kind);
});
afterAll(async () => {
  await second?.[Symbol.asyncDispose]();
  await first?.[Symbol.asyncDispose]();
});

const KINDS = ["lists", "checks", "refs", "releases"] as const satisfies readonly WholeKind[];
type Kind = (typeof KINDS)[number];

/** Lets a worker look at the part, a minute later. */
async function refresh(mirror: TestMirror, kind: Kind): Promise<void> {
  await quiet(mirror);
  mirror.advance(MINUTE);
  const { ctx } = mirror;
  const marks = [repositoryMark(kind, repositoryId, ctx.clock.now())];
  await storeMarks(ctx.db, marks);
  await enqueueMarks(ctx, marks);
  await untilIdle(ctx);
}

/** Removes the jobs that would start later, and waits until no job runs. */
async function quiet({ ctx }: TestMirror): Promise<void> {
  await ctx.queues.refresh.clean(0, 1_000, "delayed");
  await untilIdle(ctx);
}

/** The table of each part: a row for each whole reading, with its `read_at`. */
const READ: Record<Kind, SQL> = {
  lists: sql`mirrored_lists`,
  checks: sql`checked_commits`,
  refs: sql`ref_lists`,
  releases: sql`release_lists`,
};
const of = (kind: Kind) => sql`${READ[kind]} t where t.repository_id = ${repositoryId}`;
const unreadAt = ({ ctx }: TestMirror, kind: Kind) => ctx.db.count(sql`select from ${of(kind)} and t.read_at is null`);
/** @param number forgets the reading of one pull request alone */
async function forget(mirror: TestMirror, kind: Kind, number?: number): Promise<void> {
  await quiet(mirror);
  const which = number === undefined ? sql`true` : sql`t.number = ${number}`;
  await mirror.ctx.db.query(
    sql`update ${READ[kind]} t set read_at = null where t.repository_id = ${repositoryId} and ${which}`,
  );
}

const askedOfRoot = () => first.simulator.meter.read().requests;
const askedOfFirst = async () =>
  (await askAt(first.url, "GET", "/rate_limit", { token: second.upstreamToken })).body.resources.core.used;
const blocked = async () => (await quotaReport(second.ctx)).filter(({ blockedUntil }) => blockedUntil !== null);

test.each(KINDS)(
  "what the first has still to read the second waits for, and nobody asks the root: %s",
  async (kind) => {
    for (const mirror of [first, second]) {
      expect(await unreadAt(mirror, kind)).toBe(0);
      await forget(mirror, kind);
    }
    const before = askedOfRoot();
    await refresh(second, kind);
    expect(await unreadAt(second, kind)).toBeGreaterThan(0);
    expect([askedOfRoot() - before, await blocked()]).toEqual([0, []]);
    await refresh(first, kind);
    await refresh(second, kind);
    expect([await unreadAt(first, kind), await unreadAt(second, kind)]).toEqual([0, 0]);
  },
);

test("it asks again ever more seldom, for as long as it takes, and what has to wait holds up nothing else", async () => {
  const { db } = second.ctx;
  await forget(first, "lists", number);
  await forget(second, "lists");
  await refresh(second, "lists");
  expect(await unreadAt(second, "lists")).toBe(2);
  const waits = await db.query(sql`
    select p.cause, p.next_at > p.failed_at as "isLater" from problems p where p.task = 'refresh' order by p.key`);
  expect(waits).toEqual(Array(2).fill({ cause: "unread", isLater: true }));
  const marks = sql`select from refresh_marks where kind = 'lists' and not_before > asked_at`;
  expect(await db.count(marks)).toBe(1);
  // However slow this machine is.
  await db.query(sql`update problems set next_at = next_at + interval '1 hour'`);
  const used = await askedOfFirst();
  await refresh(second, "lists");
  expect(await askedOfFirst()).toBe(used);
  await db.query(sql`update problems set next_at = failed_at`);
  await refresh(first, "lists");
  await refresh(second, "lists");
  expect([await unreadAt(second, "lists"), await db.count(sql`select from problems`)]).toEqual([0, 0]);
});

test("whoever is no mirror is not told to wait", async () => {
  await forget(first, "lists", number);
  const path = `/repos/${first.first}/pulls/${number}/files`;
  const ask = (headers: Record<string, string>) => askAt(first.url, "GET", path, { token: first.token, headers });
  const early = await ask({ prefer: "settled" });
  expect([early.status, early.body.status, early.headers.get("x-tain-not-yet")]).toEqual([425, "425", "true"]);
  const passed = await ask({});
  expect([passed.status, passed.headers.get("x-tain-passed-through")]).toEqual([200, "upstream"]);
  await refresh(first, "lists");
});

test("what its own callers have asked of the root by the first cannot block the second", async () => {
  const path = `/repos/${first.first}/readme`;
  const statuses: number[] = [];
  for (let times = 0; times < 3; times++)
    statuses.push((await askAt(second.url, "GET", `${path}?ref=${times}`, { token: second.token })).status);
  expect(statuses.slice(1)).toEqual([502, 502]);
  expect(await blocked()).toEqual([]);
});
