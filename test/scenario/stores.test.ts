import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { migrate } from "../../db/migrate.ts";
import { sql } from "../../db/sql.ts";
import type { Kind } from "../../src/kinds/contract/kind.ts";
import type { Simulator } from "../../src/simulator/control/running.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { findId, placeRepositoryHook } from "../../src/upstream/hooks/hooks.ts";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { compare } from "../support/comparison.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { openOwnStores } from "../support/own-stores.ts";
import { until } from "../support/patience.ts";
import { type Program, startProgram } from "../support/program.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

/** How long each store is away. */
const AWAY_MS = 3_000;

test(
  "with Redis stopped, then Postgres, then both, each acknowledged delivery is applied once after they are back",
  async () => {
    await using stores = await openOwnStores();
    await migrate(stores.postgres.url);
    const onOwnStores = { DATABASE_URL: stores.postgres.url, REDIS_URL: stores.redis.url };
    await using world = await openWorld({
      fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 1, issues: 60, pulls: 30 }),
      env: onOwnStores,
      workers: false,
    });
    const env = {
      ...onOwnStores,
      REDIS_PREFIX: world.ctx.config.redisPrefix,
      UPSTREAM_URL: world.simulator.url,
      UPSTREAM_TOKEN,
      WEBHOOK_SECRET: world.ctx.config.webhookSecrets.join(),
      HOST: "127.0.0.1",
      PORT: "0",
    };
    const programs = {
      web: startProgram("src/web.ts", env),
      worker: startProgram("workers/main.ts", env),
      scheduler: startProgram("workers/scheduler.ts", env),
    };
    const { address } = await programs.web.said("Listening");
    await world.mirror(world.first);
    const [secret = ""] = world.ctx.config.webhookSecrets;
    await placeRepositoryHook(world.ctx.upstream, {
      repository: { id: await findId(world.ctx.upstream, `/repos/${world.first}`), fullName: world.first },
      url: `${address}/webhooks`,
      secret,
      events: ["*"],
    });

    world.simulator.setFaults({ webhooks: { duplicate: 0.2 } });
    world.simulator.startLive({ ratePerSecond: 20, seed: 5 });
    await arrive(world.simulator, 20);
    await stores.redis.stop();
    await delay(AWAY_MS);
    await stores.redis.start();
    await arrive(world.simulator, 20);
    await stores.postgres.stop();
    await delay(AWAY_MS);
    await stores.postgres.start();
    await arrive(world.simulator, 20);
    await Promise.all([stores.redis.stop(), stores.postgres.stop()]);
    const refusedBefore = countRefused(world.simulator);
    await until("a delivery is refused", async () => countRefused(world.simulator) > refusedBefore + 10);
    await Promise.all([stores.redis.start(), stores.postgres.start()]);
    world.simulator.stopLive();
    await world.simulator.quiet();

    const acknowledged = new Set(
      logOf(world.simulator)
        .filter(({ statusCode }) => statusCode === 202)
        .map(({ guid }) => guid),
    );
    const refused = logOf(world.simulator).filter(({ guid }) => !acknowledged.has(guid));
    expect(new Set(refused.map(({ statusCode }) => statusCode))).toEqual(new Set([503]));
    const acknowledgedApplied = await settled(world, acknowledged);

    redeliver(
      world.simulator,
      refused.map(({ id }) => id),
    );
    await world.simulator.quiet();
    const all = new Set(logOf(world.simulator).map(({ guid }) => guid));
    await settled(world, all);

    for (const [name, program] of Object.entries(programs))
      expect(program.hasExited, `${name}: ${JSON.stringify(program.lines.slice(-5))}`).toBe(false);
    // There are two outages of Redis and two of Postgres, and the worker has two connections to Redis. On a slow
    // machine a job whose lock has ended adds a line of its own.
    const most = (line: string) => (line.includes("takes it over") ? all.size : line.includes("Refreshes") ? 10 : 6);
    for (const [name, program] of Object.entries(programs)) {
      for (const [line, count] of Object.entries(tallied(program)))
        expect(count, `${name} says ${line}`).toBeLessThanOrEqual(most(line));
    }
    console.info(
      `acknowledged ${acknowledged.size}, applied or ignored ${acknowledgedApplied} of them; refused and redelivered ${new Set(refused.map(({ guid }) => guid)).size}`,
    );

    for (const program of [programs.worker, programs.scheduler])
      expect(await program.stop(), JSON.stringify(program.lines.slice(-12))).toBe(0);
    world.work();
    await world.settleMarks();
    await world.catchUp();
    await world.settleMarks();
    const { differences } = await compare(world.ctx, world.simulator, await currentName(world), isUnheard);
    expect(differences).toEqual([]);
    // A delivery that is sent again after all this has no effect.
    const before = await revision(world);
    redeliver(
      world.simulator,
      logOf(world.simulator)
        .slice(0, 50)
        .map(({ id }) => id),
    );
    await world.simulator.quiet();
    await world.settle();
    await settled(world, all);
    expect(await revision(world)).toBe(before);
    expect(await programs.web.stop()).toBe(0);
  },
  LONG_TEST_MS,
);

/**
 * A user who becomes a contributor is one in everything that they ever wrote. Upstream neither says so nor moves a
 * date.
 */
function isUnheard(_kind: Kind, path: string): boolean {
  return path === "author_association";
}

/** Waits until the mirror has answered so many more deliveries. */
async function arrive(simulator: Simulator, count: number): Promise<void> {
  const enough = simulator.webhooks.tally.sent + count;
  await until(`${count} more deliveries have arrived`, async () => simulator.webhooks.tally.sent >= enough);
}

function hooksOf(simulator: Simulator) {
  return [...simulator.world.repositories.values()].flatMap((repository) => [...repository.rows.hooks.values()]);
}

function logOf(simulator: Simulator) {
  return hooksOf(simulator).flatMap((hook) => simulator.webhooks.log.list(hook.id, {}));
}

function countRefused(simulator: Simulator): number {
  return logOf(simulator).filter(({ statusCode }) => statusCode === 503).length;
}

function redeliver(simulator: Simulator, ids: bigint[]): void {
  for (const hook of hooksOf(simulator)) {
    for (const id of ids) {
      const delivery = simulator.webhooks.log.find(hook.id, id);
      if (delivery) simulator.webhooks.redeliver(hook, delivery);
    }
  }
}

/**
 * Waits until all of these deliveries are settled. Checks that each was worked on once and that none failed, and
 * answers their number.
 */
async function settled(world: TestWorld, guids: Set<string>): Promise<number> {
  const settledRows = async () => {
    const rows = await world.ctx.db.query<{ guid: string; status: string; attempts: number }>(sql`
      select guid, status, attempts from deliveries where status <> 'pending' and guid = any(${[...guids]})`);
    return rows;
  };
  await until("each delivery is settled", async () => (await settledRows()).length === guids.size);
  const rows = await settledRows();
  expect(
    rows.filter(({ status, attempts }) => (status !== "applied" && status !== "ignored") || attempts !== 1),
  ).toEqual([]);
  return rows.length;
}

/** This number grows with every change that the mirror applies. */
async function revision(world: TestWorld): Promise<string> {
  const tables = [
    "repositories",
    "issues",
    "pull_requests",
    "issue_comments",
    "labels",
    "milestones",
    "users",
    "pull_request_reviews",
    "pull_request_review_comments",
  ];
  const revisions = tables.map((table) => sql`select max(revision) as newest from ${sql.identifier(table)}`);
  const rows = await world.ctx.db.query<{ newest: string }>(sql`
    select max(newest)::text as newest from (${sql.join(revisions, " union all ")}) t`);
  return rows[0]?.newest ?? "";
}

function tallied({ lines }: Program): Record<string, number> {
  const tally: Record<string, number> = {};
  for (const { level, msg } of lines.filter((line) => line.level >= 40))
    tally[`${level} ${msg}`] = (tally[`${level} ${msg}`] ?? 0) + 1;
  return tally;
}

async function currentName(world: TestWorld): Promise<string> {
  const rows = await world.ctx.db.query<{ full_name: string }>(sql`
    select full_name from repositories join repository_syncs on repository_id = id`);
  return rows[0]?.full_name ?? "";
}
