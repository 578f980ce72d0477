import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { openDatabase } from "../../db/database.ts";
import { sql } from "../../db/sql.ts";
import { followBackfills } from "../../src/cli/repositories/follow-backfills.ts";
import { openOutput } from "../../src/cli/terminal/output.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { backfill } from "../../src/sync/backfill/backfill.ts";
import { addSelections, resolveSelections } from "../../src/sync/following/selection.ts";
import { openWorld } from "../support/world.ts";

const unheard = { write: () => {} };
const output = openOutput({ json: false }, { stdout: unheard, stderr: unheard });
const concerns = () => true;

test("a mistake of ours ends the view of the copies at once: only an outage of Postgres is waited for", async () => {
  await using world = await openWorld({ workers: false });
  let mistakes = 1;
  const now = () => {
    if (mistakes-- > 0) throw new TypeError("mistaken");
    return new Date();
  };
  const { signal } = new AbortController();
  const following = followBackfills({ ...world.ctx, clock: { now } }, output, { concerns, signal });
  await expect(following).rejects.toThrow("mistaken");
});

test("a person who leaves the view while Postgres is away is let go", async () => {
  await using world = await openWorld({ workers: false });
  const db = openDatabase("postgres://127.0.0.1:1/away");
  try {
    const leaving = { concerns, signal: AbortSignal.abort() };
    expect(await followBackfills({ ...world.ctx, db }, output, leaving)).toEqual([]);
  } finally {
    await db.close();
  }
});

test("a start shows all copies in one line that fits the terminal, and takes it away at the end", async () => {
  await using world = await openWorld({
    workers: false,
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 9, repositories: 2, issues: 3, pulls: 2 }),
  });
  const names = [...world.simulator.world.repositories.values()]
    .filter(({ fork }) => !fork)
    .map((one) => world.simulator.world.fullName(one));
  await addSelections(world.ctx, names);
  await resolveSelections(world.ctx);
  const { signal } = new AbortController();
  const ids = await world.ctx.db.query<{ id: number }>(
    sql`select repository_id::float8 as id from repository_syncs order by 1`,
  );
  let written = "";
  const stdout = {
    isTTY: true,
    columns: 60,
    write: (text: string) => {
      written += text;
      // One copy ends after each look.
      const next = ids.shift();
      if (next) copies.push(backfill(world.ctx, { repositoryId: next.id }, signal));
    },
  };
  const copies: Promise<unknown>[] = [];
  const terminal = openOutput({ json: false }, { stdout, stderr: unheard });
  await followBackfills(world.ctx, terminal, { concerns, signal, view: "line" });
  await Promise.all(copies);
  const looks = written.split("\r\x1b[J");
  expect(looks[1]).toMatch(/ 0 of 2 repositories copied/);
  expect(looks.at(-1)).toBe("");
  for (const look of looks) expect(stripVTControlCharacters(look).trimEnd().length).toBeLessThan(60);
});

test("in a log a start tells of its copies once a minute, so a short copy says nothing", async () => {
  await using world = await openWorld({ workers: false });
  const written: string[] = [];
  const log = openOutput({ json: false }, { stdout: { write: (text) => written.push(String(text)) }, stderr: unheard });
  await followBackfills(world.ctx, log, { concerns, signal: new AbortController().signal, view: "line" });
  expect(written).toEqual([]);
});
