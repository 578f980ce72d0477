import { expect, test } from "vitest";
import { openDatabase } from "../../db/database.ts";
import { followBackfills } from "../../src/cli/repositories/follow-backfills.ts";
import { openOutput } from "../../src/cli/terminal/output.ts";
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
