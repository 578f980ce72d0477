/** Changes that a catch-up must not miss, because nothing else tells of them. */
import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { SettableClock } from "../../src/simulator/world/clock.ts";
import { backfill } from "../../src/sync/backfill/backfill.ts";
import { catchUp } from "../../src/sync/catch-up/catch-up.ts";
import { addSelections, resolveSelections } from "../../src/sync/following/selection.ts";
import { UpstreamUnavailableError } from "../../src/upstream/protocol/errors.ts";
import { changed } from "../support/changed-upstream.ts";
import { pass } from "../support/paced.ts";
import { openWorld } from "../support/world.ts";

const { signal } = new AbortController();

/** A mirror that has copied a repository. Upstream's clock stands still, and upstream sends no webhook. */
async function openCopied() {
  const clock = new SettableClock(Date.now());
  const world = await openWorld({
    workers: false,
    simulator: { clock },
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 9, repositories: 1, issues: 5, pulls: 3 }),
  });
  const { ctx, first } = world;
  await addSelections(ctx, [first]);
  await resolveSelections(ctx);
  const [row] = await ctx.db.query<{ id: number }>(sql`select repository_id as id from repository_syncs`);
  const job = { repositoryId: Number(row?.id) };
  await backfill(ctx, job, signal);
  /** Writes as somebody other than the mirror. */
  const write = async (method: "PATCH" | "POST", below: string, body: object) => {
    const path = `/repos/${first}${below}`;
    const { status } = await ctx.upstream.write({ method, path, body: JSON.stringify(body) });
    expect(status).toBeLessThan(300);
  };
  const caughtUp = (otherwise: Parameters<typeof changed>[1] = {}) => {
    world.advance(11_000);
    return catchUp({ ...ctx, upstream: changed(ctx.upstream, otherwise) }, job, signal);
  };
  const numbers = async (list: string) => {
    const { body } = await world.get(`/repos/${first}/${list}?state=all`);
    return (body as { number: number; pull_request?: object }[]).flatMap((one) => (one.pull_request ? [] : one.number));
  };
  return { world, clock, write, caughtUp, numbers };
}

test("a change in the second that a catch-up ended with is found by the next", async () => {
  const { world, clock, write, caughtUp, numbers } = await openCopied();
  await using _ = world;
  const [one, another] = await numbers("issues");
  clock.advance(60_000);
  await write("PATCH", `/issues/${one}`, { title: "read at once" });
  await caughtUp();
  await write("PATCH", `/issues/${another}`, { title: "in the same second" });
  await caughtUp();
  const rows = await world.ctx.db.query<{ title: string }>(
    sql`select title from issues where title in ('in the same second', 'read at once') order by 1`,
  );
  expect(rows.map(({ title }) => title)).toEqual(["in the same second", "read at once"]);
});

test("a pull request's reviews are read, though the catch-up that met it first broke off before them", async () => {
  const { world, clock, write, caughtUp, numbers } = await openCopied();
  await using _ = world;
  const [pull] = await numbers("pulls");
  clock.advance(60_000);
  await write("POST", `/pulls/${pull}/reviews`, { event: "COMMENT", body: "looked at" });
  const cut = () => Promise.reject(new UpstreamUnavailableError("cut off", "unreachable"));
  await expect(caughtUp({ graphql: cut })).rejects.toThrow("cut off");
  await caughtUp();
  const rows = await world.ctx.db.query(sql`select from pull_request_reviews where body = 'looked at'`);
  expect(rows).toHaveLength(1);
});

test("a row dated in the future hides no later change, neither of other rows nor of its own", async () => {
  const { world, clock, write, caughtUp, numbers } = await openCopied();
  await using _ = world;
  const [early = 0, other = 0] = await numbers("issues");
  const [pull] = await numbers("pulls");
  const [, ahead = 0] = await numbers("pulls");
  const rows = [early, ahead].map((number) => ({
    where: { number },
    kind: "with" as const,
    fields: { updated_at: "2041-01-01T00:00:00Z" },
  }));
  world.simulator.setFaults({ rows });
  clock.advance(60_000);
  await write("PATCH", `/issues/${early}`, { title: "ahead" });
  await write("PATCH", `/pulls/${ahead}`, { title: "pull ahead" });
  await caughtUp();
  const latest = async () => {
    const [row] = await world.ctx.db.query<{ at: Date }>(sql`
      select greatest(issues_synced_at, comments_synced_at, review_comments_synced_at, pulls_synced_at) as at from repository_syncs`);
    return row?.at.getTime();
  };
  expect(await latest()).toBeLessThanOrEqual(clock.now());
  await caughtUp();
  clock.advance(60_000);
  await write("PATCH", `/issues/${other}`, { title: "later" });
  await write("POST", `/issues/${other}/comments`, { body: "later comment" });
  await write("POST", `/pulls/${pull}/reviews`, { event: "COMMENT", body: "later review" });
  await write("PATCH", `/issues/${early}`, { title: "still ahead" });
  await caughtUp();
  // Upstream's date was put right, and so is the row.
  world.simulator.setFaults({});
  clock.advance(60_000);
  await write("PATCH", `/pulls/${ahead}`, { title: "put right" });
  await caughtUp();
  const found = await world.ctx.db.query<{ text: string }>(sql`
    select title as text from issues where number = any(${[early, other, ahead]}::int[])
      union all select body from issue_comments where body = 'later comment'
      union all select body from pull_request_reviews where body = 'later review'`);
  expect(found.map(({ text }) => text).sort()).toEqual([
    "later",
    "later comment",
    "later review",
    "put right",
    "still ahead",
  ]);
  expect(await latest()).toBeLessThanOrEqual(clock.now());
});

test("a row of a list that lacks what it must have keeps no other from being stored", async () => {
  const { world, clock, write, caughtUp, numbers } = await openCopied();
  await using _ = world;
  const [odd = 0, other = 0] = await numbers("issues");
  world.simulator.setFaults({
    rows: [{ match: "/issues[?]", where: { number: odd }, kind: "without", keys: ["title"] }],
  });
  clock.advance(60_000);
  for (const number of [odd, other]) await write("PATCH", `/issues/${number}`, { title: "changed" });
  await caughtUp();
  const changed = async () => {
    const rows = await world.ctx.db.query<{ number: number }>(sql`select number from issues where title = 'changed'`);
    return rows.map(({ number }) => number).sort((a, b) => a - b);
  };
  expect(await changed()).toContain(other);
  world.simulator.setFaults({});
  await caughtUp();
  expect(await changed()).toEqual([odd, other].sort((a, b) => a - b));
});

test("a page since a moment that no catch-up will ask for again leaves no validator behind", async () => {
  const { world, write, caughtUp } = await openCopied();
  await using _ = world;
  const counts: number[] = [];
  for (let round = 0; round < 5; round++) {
    pass(world, 600_000);
    await write("POST", "/issues", { title: `round ${round}` });
    await caughtUp();
    const [kept] = await world.ctx.db.query<{ count: number }>(sql`
      select count(*)::int as count from validators where path like ${"%since=%"}`);
    counts.push(kept?.count ?? 0);
  }
  expect(counts.at(-1)).toBe(counts[1]);
});

test("a milestone that was stored with a key that Postgres cannot read stops no catch-up", async () => {
  const { world, clock, write, caughtUp } = await openCopied();
  await using _ = world;
  const { db } = world.ctx;
  const stamps = String.raw`{"odd\u0000key":[0,0,false]}`;
  const spoilt = await db.query(sql`update milestones set key_stamps = ${stamps}::json returning id`);
  expect(spoilt.length).toBeGreaterThan(0);
  clock.advance(60_000);
  await write("PATCH", "/issues/1", { title: "after it" });
  await caughtUp();
  expect(await db.query(sql`select title from issues where number = 1`)).toEqual([{ title: "after it" }]);
  expect(await db.query(sql`select task from problems`)).toEqual([]);
});
