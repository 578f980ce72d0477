/** Yesterday's backup is restored, while upstream, Redis and the processes have gone on. */
import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { mutate } from "../../src/simulator/control/mutations.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { openView } from "../../src/simulator/views/view.ts";
import { audit } from "../../src/sync/audit/audit.ts";
import { compare } from "../support/comparison.ts";
import { administer } from "../support/database.ts";
import { until } from "../support/patience.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

const DAY_MS = 24 * 3_600_000;

/** Runs the statements while nobody is connected: Postgres copies no database that is in use. */
async function alone(name: string, statements: readonly string[]): Promise<void> {
  await administer(async (admin) => {
    const end = () => admin.query("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", [name]);
    await admin.query(`alter database ${name} allow_connections false`);
    await end();
    await until("nobody is connected", async () => {
      const { rowCount } = await admin.query("select from pg_stat_activity where datname = $1", [name]);
      return rowCount === 0;
    });
    for (const statement of statements) await admin.query(statement);
    await admin.query(`alter database ${name} allow_connections true`);
  });
}

const change = ({ simulator }: TestWorld, json: Record<string, unknown>) =>
  mutate(
    simulator.world,
    openView({ world: simulator.world, apiUrl: simulator.url, htmlUrl: simulator.htmlUrl, roleOf: () => "admin" }),
    json,
  );

test("a dump of yesterday that is put back becomes right by the catch-ups and audits that are due, deletions too", async () => {
  await using world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 12, repositories: 1, issues: 20, pulls: 6 }),
  });
  const full = world.first;
  await world.mirror(full);
  await world.listen(full);
  await world.settleMarks();
  const name = new URL(world.ctx.config.databaseUrl).pathname.slice(1);
  const backup = `${name}_backup`;
  await alone(name, [`create database ${backup} template ${name}`]);

  const [owner = "", short = ""] = full.split("/");
  const repository = world.simulator.world.repositoryByName(owner, short)?.repository;
  const issues = [...(repository?.rows.issuesByCreated.ascending() ?? [])].filter((one) => !one.pull);
  const [gone, edited] = issues;
  const comment = [...world.simulator.world.comments.values()].find(({ issue }) => issue !== gone);
  if (!repository || !gone || !edited || !comment) throw new Error("The generated world lacks something");
  change(world, { op: "deleteIssue", repository: full, number: gone.number });
  change(world, { op: "deleteComment", comment: comment.id });
  change(world, { op: "editIssue", repository: full, number: edited.number, title: "Of today" });
  change(world, { op: "createLabel", repository: full, name: "of-today" });
  await world.settle();
  await world.settleMarks();
  expect((await compare(world.ctx, world.simulator, full)).differences).toEqual([]);

  await alone(name, []);
  await administer(async (admin) => {
    await admin.query(`drop database ${name} with (force)`);
    await admin.query(`create database ${name} template ${backup}`);
    await admin.query(`drop database ${backup}`);
  });
  await until("the mirror serves again", async () =>
    world.ctx.db.query(sql`select`).then(
      () => true,
      () => false,
    ),
  );
  expect((await compare(world.ctx, world.simulator, full)).differences.length).toBeGreaterThan(0);

  world.advance(DAY_MS);
  await world.catchUp();
  await world.settleMarks();
  await audit(world.ctx, { repositoryId: repository.id, repair: true, signal: new AbortController().signal });
  await world.settleMarks();
  expect((await compare(world.ctx, world.simulator, full)).differences).toEqual([]);
  const read = async (number: number) => (await world.get(`/repos/${full}/issues/${number}`)).status;
  expect([await read(gone.number), await read(edited.number)]).toEqual([410, 200]);
});
