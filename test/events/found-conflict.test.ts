/** Events of found changes are made while merges write to the same rows. */
import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { createIssue } from "../../src/simulator/changes/issues.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import { makeEvents } from "../../src/sync/found/make.ts";
import { connectTo } from "../support/database.ts";
import { openWorld } from "../support/world.ts";

const MINUTE = 60_000;

test("a transaction that loses against another one is made anew, and is nobody's problem", async () => {
  await using world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 1, issues: 3, pulls: 0 }),
  });
  const { db } = world.ctx;
  await world.mirror(world.first);
  const { world: upstream } = world.simulator;
  const pass = (ms: number) => {
    (upstream.clock as SettableClock).advance(ms);
    world.advance(ms);
  };
  pass(MINUTE);
  const [repository] = [...upstream.repositories.values()].filter((one) => upstream.fullName(one) === world.first);
  if (!repository) throw new Error("Upstream has no repository");
  const { number } = createIssue(upstream, repository.ownerId, { repository, title: "found" });
  await world.catchUp();
  pass(2 * MINUTE);

  await using resources = new AsyncDisposableStack();
  const merge = await connectTo(world.ctx.config.databaseUrl);
  resources.defer(() => merge.end());
  await merge.query("begin");
  // What a birth tells is noted as told: the event needs this row, which nobody has committed.
  await merge.query(
    `insert into found_changes (repository_id, kind, key, aspect, was, found_at) values ($1, 'issue', $2, 'title', '"x"', now())`,
    [repository.id, number],
  );
  const made = makeEvents(world.ctx);
  // A server looks for a deadlock once for each wait, a second after it began. So the merge waits as soon as the event
  // does, and looks so late that the event is the first to find out that both wait for ever.
  await merge.query("set local deadlock_timeout = '1min'; set local statement_timeout = '1min'");
  await merge.query(`
    do $$ begin
      while not exists (select from pg_locks where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))) loop
        perform pg_sleep(0.005);
      end loop;
      perform from found_changes
        where repository_id = ${repository.id} and key = ${number} and aspect = 'exists' for update;
    end $$`);
  await merge.query("rollback");
  expect(await made).toBe(1);
  expect(await db.query(sql`select from problems where task = 'events'`)).toEqual([]);
});
