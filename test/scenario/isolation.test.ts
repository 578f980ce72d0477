/** A fleet without webhooks in which some repositories fail for good, each in a way of its own. */
import type { Job, Queue } from "bullmq";
import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { loadStatus } from "../../src/health/status.ts";
import { editIssue } from "../../src/simulator/changes/issues.ts";
import type { HttpFault } from "../../src/simulator/faults/faults.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import type { Repository } from "../../src/simulator/world/records.ts";
import { AUDIT_TICK_MS, auditPart, scheduleAudits } from "../../src/sync/audit/schedule.ts";
import { backfill } from "../../src/sync/backfill/backfill.ts";
import { catchUp, scheduleCatchUps } from "../../src/sync/catch-up/catch-up.ts";
import { sweep } from "../../src/sync/catch-up/sweep.ts";
import { addSelections, resolveSelections } from "../../src/sync/following/selection.ts";
import { checkDeliveries } from "../../src/sync/hook-deliveries/missed.ts";
import { dispatchMarks } from "../../src/sync/marks/marks.ts";
import { Refreshes } from "../../src/sync/refresh/refresh.ts";
import { QuotaSpentError } from "../../src/upstream/protocol/errors.ts";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { printFigures } from "../support/figures.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

const MINUTE = 60_000;
const signal = new AbortController().signal;
/** How many repositories there are: `FLEET=200 npm test -- test/scenario/isolation` plays a larger fleet. */
const FLEET = Number(process.env.FLEET ?? 24);
/** How long costs are counted. */
const COUNTED_MINUTES = FLEET > 24 ? 60 : 30;
const LONGEST_MS = (LONG_TEST_MS * Math.max(24, FLEET)) / 24;

/** Each fault, and the paths below a repository that have it. `words` are what the owner finds in the status. */
const WAYS: readonly [what: string, fault: HttpFault, path: string, words: RegExp][] = [
  ["403 by a permission", { kind: "refusal", as: "permission" }, "(/|$)", /Resource not accessible/],
  ["403 by SAML", { kind: "refusal", as: "saml" }, "(/|$)", /SAML enforcement/],
  ["403 by a list of addresses", { kind: "refusal", as: "ip-allow-list" }, "(/|$)", /IP allow list/],
  ["404", { kind: "refusal", as: "absent" }, "(/|$)", /404/],
  ["451", { kind: "refusal", as: "dmca" }, "(/|$)", /451/],
  ["422 on a page", { kind: "refusal", as: "deep-page" }, "/issues/comments", /pagination is limited/],
  ["500 on a list", { kind: "status", status: 500 }, "/labels", /failed with 500/],
  ["502 on pull requests", { kind: "status", status: 502 }, "/pulls$", /failed with 502/],
  ["403 on pull requests alone", { kind: "refusal", as: "permission" }, "/pulls", /Resource not accessible/],
  ["500 on a single pull request", { kind: "status", status: 500 }, "/pulls/\\d+$", /failed with 500/],
];

interface Fleet {
  world: TestWorld;
  repositories: Repository[];
  /** Lets the time pass, then does what the scheduler asks for and all that follows. */
  round(ms: number): Promise<void>;
}

async function openFleet(): Promise<Fleet> {
  const world = await openWorld({
    workers: false,
    simulator: { quota: { limits: { core: 1_000_000, graphql: 1_000_000 } } },
    fill: ({ world: upstream }) =>
      void generateWorld(upstream, { seed: 9, repositories: FLEET, issues: FLEET * 4, pulls: FLEET * 3 }),
  });
  const { ctx, simulator } = world;
  const repositories = [...simulator.world.repositories.values()].filter(({ fork }) => !fork);
  const refreshes = new Refreshes(ctx);
  const pass = (ms: number) => {
    (simulator.world.clock as SettableClock).advance(ms);
    world.advance(ms);
  };
  /** Works as a queue does: it tries a few times within seconds, and then no more. */
  const persist = async (run: () => Promise<unknown>): Promise<void> => {
    for (let tries = 1; tries <= 8; tries++) {
      try {
        return void (await run());
      } catch (error) {
        if (!(error instanceof QuotaSpentError)) continue;
        pass(Math.max(1_000, error.resetAt.getTime() - ctx.clock.now().getTime()));
      }
    }
  };
  const drain = async () => {
    for (let some = 1; some > 0; ) {
      some = 0;
      const take = async <Data>(queue: Queue<Data>, run: (data: Data) => Promise<unknown>) => {
        for (const job of (await queue.getJobs(["waiting", "prioritized"])) as Job<Data>[]) {
          await job.remove();
          some += 1;
          await persist(() => run(job.data));
        }
      };
      await take(ctx.queues.backfill, (data) => backfill(ctx, data, signal));
      await take(ctx.queues.catchUp, (data) => catchUp(ctx, data, signal));
      await take(ctx.queues.audit, (data) => auditPart(ctx, data, signal));
      await take(ctx.queues.refresh, (data) => refreshes.refresh(data));
    }
  };
  const tasks: [everyMs: number, task: () => Promise<unknown>][] = [
    [MINUTE, () => resolveSelections(ctx)],
    [ctx.config.sweepIntervalMs / 4, () => sweep(ctx)],
    [ctx.config.catchUpIntervalMs, () => scheduleCatchUps(ctx)],
    [ctx.config.deliveryCheckIntervalMs, () => checkDeliveries(ctx)],
    [AUDIT_TICK_MS, () => scheduleAudits(ctx)],
    [MINUTE, () => dispatchMarks(ctx)],
  ];
  let now = 0;
  const round = async (ms: number) => {
    pass(ms);
    const before = now;
    now += ms;
    for (const [everyMs, task] of tasks) {
      if (Math.floor(now / everyMs) === Math.floor(before / everyMs)) continue;
      try {
        await task();
      } catch (error) {
        if (!(error instanceof Error)) throw error; // A task that fails is asked for again at its next time.
      }
    }
    await drain();
  };
  await addSelections(
    ctx,
    repositories.map((one) => simulator.world.fullName(one)),
  );
  await resolveSelections(ctx);
  await drain();
  for (let rounds = 0; rounds < 6; rounds++) await round(5 * MINUTE);
  return { world, repositories, round };
}

/** Changes an issue in each of these repositories. Answers after how many minutes all changes are shown. */
async function minutesUntilShown({ world, round }: Fleet, of: readonly Repository[], title: string): Promise<number> {
  const { ctx, simulator } = world;
  for (const one of of) {
    const issue = [...one.rows.issuesByCreated.ascending()].find(({ pull }) => !pull);
    if (issue) editIssue(simulator.world, one.ownerId, issue, { title });
  }
  const changed = of.filter((one) => [...one.rows.issuesByCreated.ascending()].some(({ pull }) => !pull)).length;
  for (let minutes = 1; minutes <= 30; minutes++) {
    await round(MINUTE);
    const shown = await ctx.db.count(
      sql`select from issues where title = ${title} and repository_id = any(${of.map(({ id }) => id)}::bigint[])`,
    );
    if (shown === changed) return minutes;
  }
  return Number.POSITIVE_INFINITY;
}

test(
  "repositories that fail for good, each in its own way, delay no other, say why, and cost twelve requests an hour at most",
  async () => {
    const fleet = await openFleet();
    await using world = fleet.world;
    const { ctx, simulator } = world;
    const hasPull = (one: Repository) => [...one.rows.issuesByCreated.ascending()].some(({ pull }) => pull);
    // The first repository is the busiest by far, and archived ones cannot change.
    const usable = fleet.repositories.filter((one, at) => at > 0 && !one.archived && hasPull(one));
    const broken = usable.slice(0, Math.max(WAYS.length, Math.round(FLEET / 10)));
    const healthy = usable.slice(broken.length);
    expect([broken.length >= WAYS.length, healthy.length > 3]).toEqual([true, true]);
    const asBefore = await minutesUntilShown(fleet, healthy, "before");

    const wayOf = (at: number) => WAYS[at % WAYS.length] ?? WAYS[0];
    simulator.setFaults({
      http: broken.map((one, at) => ({
        ...wayOf(at)?.[1],
        match: `^GET /repositories/${one.id}${wayOf(at)?.[2]}`,
      })) as HttpFault[],
    });
    // Something changes in each repository, so the mirror has a reason to read all of it, single pull requests
    // included.
    for (const one of broken) {
      for (const issue of one.rows.issuesByCreated.ascending())
        editIssue(simulator.world, one.ownerId, issue, { title: "changed behind the fault" });
      const [pull] = [...one.rows.issuesByCreated.ascending()].filter(({ pull }) => pull);
      const at = ctx.clock.now();
      await ctx.db.query(sql`insert into refresh_marks (kind, repository_id, key, asked_at, not_before)
        values ('pull_request', ${one.id}, ${pull?.number ?? 0}, ${at}, ${at}) on conflict do nothing`);
    }
    const whenBroken = await minutesUntilShown(fleet, healthy, "while others begin to fail");
    for (let rounds = 0; rounds < 30; rounds++) await fleet.round(5 * MINUTE);

    simulator.meter.reset();
    for (let minutes = 0; minutes < COUNTED_MINUTES; minutes++) await fleet.round(MINUTE);
    const { repositories } = simulator.meter.read();
    const costs = broken.map(({ id }, at) => {
      const { requests = 0, notModified = 0 } = repositories[String(id)] ?? {};
      return { way: wayOf(at)?.[0], requests: requests - notModified };
    });
    const forGood = await minutesUntilShown(fleet, healthy, "while others fail for good");
    printFigures("isolation", {
      ...{ repositories: FLEET, broken: broken.length, asBefore, whenBroken, forGood },
      dearest: Math.max(...costs.map(({ requests }) => requests)),
      costs,
    });
    const status = await loadStatus(ctx, async () => []);
    const problems = broken.map((one, at) => {
      const name = simulator.world.fullName(one);
      const problem = status.repositories.find(({ owner, name: own }) => `${owner}/${own}` === name)?.problem ?? "";
      return wayOf(at)?.[3].test(problem) ? "said" : `${wayOf(at)?.[0]}: ${problem}`;
    });
    expect(problems).toEqual(broken.map(() => "said"));
    expect(costs.filter(({ requests }) => requests > COUNTED_MINUTES / 5)).toEqual([]);
    expect(Math.max(whenBroken, forGood)).toBeLessThanOrEqual(Math.max(asBefore, 5));
    expect(status.repositories.filter(({ problem }) => problem !== null)).toHaveLength(broken.length);

    // The mirror follows a repository again within its longest wait once the fault has ended.
    simulator.setFaults({});
    for (let rounds = 0; rounds < 10; rounds++) await fleet.round(30 * MINUTE);
    const after = await loadStatus(ctx, async () => []);
    expect(after.repositories.filter(({ problem }) => problem !== null)).toEqual([]);
  },
  LONGEST_MS,
);
