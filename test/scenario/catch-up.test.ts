/** Changes that a catch-up must not miss, because nothing else tells of them. */
import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { SettableClock } from "../../src/simulator/clock.ts";
import { generateWorld } from "../../src/simulator/generate.ts";
import { backfill } from "../../src/sync/backfill/backfill.ts";
import { catchUp } from "../../src/sync/catch-up/catch-up.ts";
import { addSelections, resolveSelections } from "../../src/sync/following/selection.ts";
import { UpstreamUnavailableError } from "../../src/upstream/client/errors.ts";
import { changed } from "../support/changed-upstream.ts";
import { openWorld } from "../support/world.ts";

const { signal } = new AbortController();

/** A mirror that has copied a repository. Upstream's clock stands still, and upstream sends no webhook. */
async function openCopied() {
  const clock = new SettableClock(Date.now());
  const world = await openWorld({
    workers: false,
    simulator: { clock, worldOptions: { mergeableDelayMs: 0 } },
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 9, repositories: 1, issues: 5, pulls: 3 }),
  });
  const { ctx, first } = world;
  await addSelections(ctx, [first]);
  await resolveSelections(ctx);
  const [row] = await ctx.db.query<{ id: string }>(sql`select repository_id as id from repository_syncs`);
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
