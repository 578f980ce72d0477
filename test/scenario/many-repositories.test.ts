/**
 * What very many repositories cost: an idle hour by the schedule's own rates, a delivery, and a read. One of two
 * mirrors has ten times as many repositories as the other. Both stand in the same Postgres and are measured in turns,
 * so that a busy machine does the same to both.
 */
import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { MAINTENANCE_TASKS, type MaintenanceTask, type Shard } from "../../src/queues/jobs.ts";
import { sweep } from "../../src/sync/catch-up/sweep.ts";
import { applyDeliveries } from "../../src/sync/deliveries/apply.ts";
import { checkDeliveries } from "../../src/sync/hook-deliveries/missed.ts";
import { intervals } from "../../src/sync/schedules.ts";
import { shardsOf } from "../../src/sync/turns/shards.ts";
import { maintain } from "../../workers/maintenance.ts";
import { printFigures } from "../support/figures.ts";
import { type ManyRepositories, openManyRepositories } from "../support/many-repositories.ts";
import { paced } from "../support/paced.ts";
import { cpuSecondsBelow } from "../support/replicas.ts";
import { rowsReadBy } from "../support/rows-read.ts";

/** `npm run proofs many-repositories` has 1,000 and 10,000 repositories, with 2,000 rows each. */
const isProof = process.env.MANY !== undefined;
const LARGE = Number(process.env.MANY);
const ROWS = 2_000;
/** How many deliveries, and how many reads, are measured together. */
const AT_ONCE = 10;
/**
 * The most rounds of measuring. Many rounds give medians of a warm process, which no single disturbance moves. Each
 * repository is asked once.
 */
const MOST_ROUNDS = 41;
const HOUR = 3_600_000;
/** A worker takes as many deliveries together. */
const BATCH = 16;
const signal = new AbortController().signal;

type Measured = ManyRepositories["world"]["ctx"];

/** What something costs. */
interface Cost {
  /** Processor time of Postgres and of this process, which is web, worker and upstream at once. */
  cpuMs: number;
  rowsRead: number;
  redisCommands: number;
  requests: number;
}
const NOTHING: Cost = { cpuMs: 0, rowsRead: 0, redisCommands: 0, requests: 0 };
const KINDS = ["cpuMs", "rowsRead", "redisCommands", "requests"] as const;

const sum = (one: Cost, other: Cost, times: number): Cost => ({
  cpuMs: one.cpuMs + times * other.cpuMs,
  rowsRead: one.rowsRead + times * other.rowsRead,
  redisCommands: one.redisCommands + times * other.redisCommands,
  requests: one.requests + times * other.requests,
});

/** Processor time so far, in ms, of this process and of all that Postgres has begun. */
async function cpuMs({ world }: ManyRepositories): Promise<number> {
  const [row] = await world.ctx.db.query<{ pid: string }>(sql`
    select split_part(pg_read_file('postmaster.pid'), chr(10), 1) as pid`);
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000 + 1_000 * (await cpuSecondsBelow(Number(row?.pid)));
}

/** @param times how often the task is repeated: its processor time is the median */
async function costOf(
  many: ManyRepositories,
  task: (ctx: Measured) => Promise<unknown>,
  { prepare = async () => {}, times = 5 }: { prepare?: () => Promise<void>; times?: number } = {},
): Promise<Cost> {
  const { ctx, simulator } = many.world;
  const commands = async () => Number(/total_commands_processed:(\d+)/.exec(await ctx.redis.info("stats"))?.[1]);
  await prepare();
  // Autovacuum would do this, but is off here. Without it Postgres would count index entries of rows that were changed
  // before, and would read whole tables for want of statistics.
  await ctx.db.query(sql`vacuum (analyze) sweeps, repository_syncs, hook_checks, validators`);
  simulator.meter.reset();
  const before = await commands();
  const read = await rowsReadBy(ctx.config.databaseUrl, (db) => task({ ...ctx, db }));
  const cost = {
    rowsRead: Object.values(read).reduce((all, one) => all + one, 0),
    redisCommands: (await commands()) - before - 1,
    requests: simulator.meter.read().requests,
  };
  const spent: number[] = [];
  for (let time = 0; time < times; time++) {
    await prepare();
    const from = await cpuMs(many);
    await task(ctx);
    spent.push((await cpuMs(many)) - from);
  }
  return { ...cost, cpuMs: medianOf(spent) };
}

/** Works on each shard once, as the workers do together. */
const eachShard =
  (work: (ctx: Measured, options: { signal: AbortSignal; shard: Shard }) => Promise<unknown>) =>
  async ({ world }: ManyRepositories, ctx: Measured): Promise<void> => {
    for (const shard of await shardsOf(ctx)) await paced(world, () => work(ctx, { signal, shard }));
  };
const sweepAll = eachShard(sweep);
const checkAll = eachShard(checkDeliveries);

/**
 * Makes each repository's own fields due, and no list. Lists are asked for at the pace that upstream allows, however
 * many there are.
 */
async function makeDue({ world }: ManyRepositories): Promise<void> {
  world.advance(2 * world.ctx.config.sweepIntervalMs);
  const now = world.ctx.clock.now();
  await world.ctx.db.query(sql`update sweeps set swept_at = ${now}`);
  await world.ctx.db.query(sql`update repository_syncs set confirmed_at = ${now}::timestamptz + interval '1 hour'`);
}

async function idleHour(many: ManyRepositories): Promise<{ hour: Cost; tasks: Record<string, Cost> }> {
  const { ctx } = many.world;
  const every = intervals(ctx.config);
  const tasks: Record<string, Cost> = {};
  let hour = NOTHING;
  const measure = async (
    name: string,
    timesAnHour: number,
    task: (measured: Measured) => Promise<unknown>,
    prepare?: () => Promise<void>,
  ) => {
    const once = await costOf(many, task, prepare && { prepare });
    tasks[name] = once;
    hour = sum(hour, once, timesAnHour);
  };
  const worker = many.world.openWorkerContext();
  const run = (task: MaintenanceTask) => (measured: Measured) =>
    paced(many.world, () => maintain({ ...worker, ...measured }, task, signal));
  await makeDue(many);
  await sweepAll(many, ctx); // The first sweep has to look at everything.
  const once = (task: MaintenanceTask) =>
    task === "check-deliveries" ? (measured: Measured) => checkAll(many, measured) : run(task);
  for (const task of MAINTENANCE_TASKS) if (task !== "sweep") await once(task)(ctx);
  // A sweep asks GraphQL less often than the task runs.
  const rounds = HOUR / (ctx.config.sweepIntervalMs * 1.25);
  for (const task of MAINTENANCE_TASKS) {
    if (task !== "sweep") {
      await measure(task, HOUR / every[task], once(task));
      continue;
    }
    await measure(
      "sweep, due",
      rounds,
      (measured) => sweepAll(many, measured),
      () => makeDue(many),
    );
    await measure("sweep, not due", HOUR / every[task] - rounds, (measured) => sweepAll(many, measured));
  }
  return { hour, tasks };
}

/**
 * Stores a delivery for each of these repositories. Each tells of its repository what a webhook told of the first one.
 */
async function takeIn({ world }: ManyRepositories, template: Template, names: readonly string[]): Promise<string[]> {
  const { ctx } = world;
  const ids: string[] = [];
  for (const name of names) {
    const [found] = await ctx.db.query<{ id: number }>(sql`select id from repositories where full_name = ${name}`);
    if (!found) throw new Error(`Nothing is mirrored of ${name}`);
    const payload = template.payload.replaceAll(template.id, String(found.id)).replaceAll(template.name, name);
    const [row] = await ctx.db.query<{ id: string }>(sql`
      insert into deliveries (hook_id, guid, event, action, repository_id, payload, received_at)
        values (78, ${name}, 'issues', 'edited', ${found.id}, convert_to(${payload}, 'UTF8'), ${ctx.clock.now()})
        returning id`);
    ids.push(row?.id ?? "");
  }
  return ids;
}

interface Template {
  payload: string;
  id: string;
  name: string;
}

/** The webhook that upstream sends of an edited issue of the first repository, as a template for others. */
async function templateOf({ world }: ManyRepositories): Promise<Template> {
  const { ctx, simulator, first } = world;
  const repository = [...simulator.world.repositories.values()].find((one) => simulator.world.fullName(one) === first);
  const issue = repository?.rows.byNumber.find((one) => one && !one.pull);
  await world.listen(first);
  const answer = await fetch(`${simulator.url}/-/mutate`, {
    method: "POST",
    body: JSON.stringify({ op: "editIssue", repository: first, number: issue?.number, title: "edited" }),
  });
  expect(answer.status, await answer.text()).toBe(200);
  await simulator.quiet();
  const [row] = await ctx.db.query<{ payload: string }>(sql`
    select convert_from(payload, 'UTF8') as payload from deliveries where event = 'issues' and status = 'pending' limit 1`);
  if (!row || !repository) throw new Error("Upstream has sent no webhook");
  return { payload: row.payload, id: String(repository.id), name: first };
}

/** Answers how many issues and comments were shown. */
async function read({ world }: ManyRepositories, names: readonly string[]): Promise<number> {
  let shown = 0;
  for (const name of names) {
    const [owner, repository] = name.split("/");
    const query = `{ repository(owner: "${owner}", name: "${repository}") { issues(first: 20) { nodes { number title } } } }`;
    const answers = [
      await world.get(`/repos/${name}/issues?state=all&per_page=30`),
      await world.get(`/repos/${name}/issues/1001`),
      await world.get(`/repos/${name}/issues/1001/comments?per_page=30`),
    ];
    for (const { status, body } of answers) {
      expect(status).toBe(200);
      shown += Array.isArray(body) ? body.length : 1;
    }
    const asked = await fetch(`${world.url}/graphql`, {
      method: "POST",
      headers: { authorization: `token ${world.token}`, "user-agent": "test" },
      body: JSON.stringify({ query }),
    });
    const { data } = (await asked.json()) as { data: { repository: { issues: { nodes: unknown[] } } } };
    shown += data.repository.issues.nodes.length;
  }
  return shown;
}

const medianOf = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? 0;

test.runIf(isProof)(
  "ten times the repositories cost at most ten times in an idle hour, and a delivery and a read cost the same",
  async () => {
    const small = await openManyRepositories({ repositories: Math.max(3, LARGE / 10), rows: ROWS });
    await using _small = small.world;
    const large = await openManyRepositories({ repositories: LARGE, rows: ROWS });
    await using _large = large.world;
    const both = [small, large] as const;
    // Filling the tables leaves work for vacuum, which would otherwise be counted here.
    for (const { world } of both) await world.ctx.db.query(sql`vacuum (analyze)`);
    await large.world.ctx.db.query(sql`alter system set autovacuum = off`);
    await large.world.ctx.db.query(sql`select pg_reload_conf()`);

    const hours = [await idleHour(small), await idleHour(large)] as const;
    const times = Object.fromEntries(
      KINDS.map((kind) => [kind, hours[1].hour[kind] / Math.max(hours[0].hour[kind], Number.EPSILON)]),
    );
    const repositories = both.map(({ ids }) => ids.length + 1);
    printFigures("many repositories idle", {
      ...{ repositories, rows: both.map(({ rows }) => rows), times },
      ...{ hours: hours.map(({ hour }) => hour), tasks: hours.map(({ tasks }) => tasks) },
    });

    const templates = [await templateOf(small), await templateOf(large)] as const;
    const costs: Record<"deliveryMs" | "deliveryRows" | "readMs", [number[], number[]]> = {
      ...{ deliveryMs: [[], []], deliveryRows: [[], []], readMs: [[], []] },
    };
    const rounds = Math.min(MOST_ROUNDS, Math.floor(small.names.length / AT_ONCE));
    for (let round = 0; round < rounds; round++) {
      // The two mirrors take turns at being the first.
      for (const which of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
        const [many, template] = [both[which], templates[which]];
        // The names are spread over all ids, and each comes only once, because an answer that was asked for before is
        // kept.
        const step = Math.floor(many.names.length / (AT_ONCE * rounds));
        const names = Array.from({ length: AT_ONCE }, (_, at) => many.names[(at * rounds + round) * step] ?? "");
        const ids = await takeIn(many, template, names);
        const isCounted = round === 0;
        const apply = async (measured: typeof many.world.ctx) => {
          for (let at = 0; at < ids.length; at += BATCH) await applyDeliveries(measured, ids.slice(at, at + BATCH));
        };
        if (isCounted) {
          const counted = await rowsReadBy(many.world.ctx.config.databaseUrl, (db) => apply({ ...many.world.ctx, db }));
          costs.deliveryRows[which].push(Object.values(counted).reduce((all, one) => all + one, 0) / AT_ONCE);
          await read(many, names);
          continue;
        }
        const [before, , applied] = [await cpuMs(many), await apply(many.world.ctx), await cpuMs(many)];
        const shown = await read(many, names);
        costs.deliveryMs[which].push((applied - before) / AT_ONCE);
        costs.readMs[which].push(((await cpuMs(many)) - applied) / AT_ONCE / 4);
        expect(shown).toBeGreaterThan(AT_ONCE * 50);
      }
    }
    const medians = Object.fromEntries(Object.entries(costs).map(([name, lists]) => [name, lists.map(medianOf)]));
    const ratios = Object.fromEntries(Object.entries(medians).map(([name, [one = 0, ten = 0]]) => [name, ten / one]));
    printFigures("many repositories", { repositories, medians, ratios });
    const settled = await large.world.ctx.db.count(
      sql`select from deliveries where hook_id = 78 and status = 'applied'`,
    );
    expect(settled).toBe(AT_ONCE * rounds);
    // Processor time depends on what else the machine runs. The proof's table bounds it.
    for (const kind of ["rowsRead", "redisCommands", "requests"] as const)
      expect.soft(times[kind], `${kind}: ${JSON.stringify(hours)}`).toBeLessThanOrEqual(10);
    expect.soft(ratios.deliveryRows, JSON.stringify(medians)).toBeLessThanOrEqual(1.2);
  },
  3_600_000,
);
