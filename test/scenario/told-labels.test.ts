/** Labels carry no time at which they changed. Their events tell what came before. */
import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { editIssue } from "../../src/simulator/changes/issues.ts";
import { editLabel } from "../../src/simulator/changes/labels.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import { sweep } from "../../src/sync/catch-up/sweep.ts";
import { compare } from "../support/comparison.ts";
import { openWorld } from "../support/world.ts";

const MINUTE = 60_000;

test("a label that was renamed is shown by the next read, and no sweep takes it for lost while it is in doubt", async () => {
  await using world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 31, repositories: 1, issues: 4, pulls: 1 }),
  });
  const { ctx, simulator, first } = world;
  await world.mirror(first);
  await world.listen(first);
  const pass = (ms: number) => {
    world.advance(ms);
    (simulator.world.clock as SettableClock).advance(ms);
  };
  await world.settleMarks();
  await sweep(ctx);
  await world.settle();
  pass(10 * MINUTE);
  await sweep(ctx);
  await world.settle();

  const [label] = [...simulator.world.labels.values()];
  if (!label) throw new Error("The generated world has no label");
  const { name: before } = label;
  // Nothing may be asked for an hour: the doubt stays.
  const later = new Date(ctx.clock.now().getTime() + 60 * MINUTE);
  await ctx.db.query(sql`insert into upkeep (task, done_until) values ('common questions', ${later})
    on conflict (task) do update set done_until = excluded.done_until`);
  editLabel(simulator.world, label.repository.ownerId, label, { name: `${before} of old` });
  await world.settle();
  expect((await world.get(`/repos/${first}/labels/${encodeURIComponent(`${before} of old`)}`)).status).toBe(200);
  expect((await world.get(`/repos/${first}/labels/${encodeURIComponent(before)}`)).status).toBe(404);
  const doubts = () => ctx.db.count(sql`select from refresh_marks where kind = 'label'`);
  expect(await doubts()).toBe(1);

  // A webhook brings back the name of before, as one that was sent late may.
  await ctx.db.query(sql`update labels set name = ${before} where id = ${label.id}`);
  pass(6 * MINUTE);
  simulator.meter.reset();
  await sweep(ctx);
  await world.settle();
  const [row] = await ctx.db.query<{ untold_at: Date | null; changed_at: Date | null }>(
    sql`select untold_at, changed_at from sweeps where repository_id = ${label.repository.id}`,
  );
  expect(await doubts()).toBe(1);
  expect(row?.untold_at).toBeNull();
  const charged = Object.values(simulator.meter.read().callers).reduce(
    (sum, { core }) => sum + (core?.charged ?? 0),
    0,
  );
  expect(charged).toBe(0);
});

test("labels that two events of one second show differently are asked for by one question, in the known order", async () => {
  await using world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 31, repositories: 1, issues: 4, pulls: 1 }),
  });
  const { ctx, simulator, first } = world;
  const clock = simulator.world.clock as SettableClock;
  const [label, other, third] = [...simulator.world.labels.values()];
  const [issue] = [...simulator.world.issues.values()].filter((one) => !one.pull);
  if (!label || !other || !third || !issue) throw new Error("The generated world has no three labels");
  const { ownerId } = issue.repository;
  editIssue(simulator.world, ownerId, issue, { labelIds: [third.id, label.id] });
  await world.mirror(first);
  await world.listen(first);
  await world.settleMarks();
  clock.advance(1_000 - (clock.now() % 1_000));
  editIssue(simulator.world, ownerId, issue, { labelIds: [third.id, label.id, other.id] });
  await world.settle();
  editIssue(simulator.world, ownerId, issue, { labelIds: [third.id, other.id] });
  await world.settle();
  expect(await ctx.db.count(sql`select from refresh_marks where kind = 'issue' and 'labels' = any(keys)`)).toBe(1);
  simulator.meter.reset();
  await world.settleMarks();
  const asked = Object.entries(simulator.meter.read().routes).filter(([, { charged }]) => charged > 0);
  expect(asked.map(([route]) => route)).toEqual(["POST /graphql"]);
  expect((await compare(ctx, simulator, first)).differences).toEqual([]);
});
