import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import type { Context } from "../../src/context.ts";
import { enqueueAudits, enqueueBackfill, enqueueCatchUp } from "../../src/queues/queues.ts";
import { createComment } from "../../src/simulator/changes/comments.ts";
import { mutate } from "../../src/simulator/control/mutations.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { openView, type View } from "../../src/simulator/views/view.ts";
import { payloadOf } from "../../src/simulator/webhooks/payload.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import { auditPart, scheduleAudits } from "../../src/sync/audit/schedule.ts";
import { backfill, restartBackfill } from "../../src/sync/backfill/backfill.ts";
import { catchUp } from "../../src/sync/catch-up/catch-up.ts";
import { sweep } from "../../src/sync/catch-up/sweep.ts";
import { applyDeliveries } from "../../src/sync/deliveries/apply.ts";
import { removeSelection } from "../../src/sync/following/removal.ts";
import { addSelections, resolveSelections } from "../../src/sync/following/selection.ts";
import { remove } from "../../src/sync/following/state.ts";
import type { ReadAnswer } from "../../src/upstream/protocol/upstream.ts";
import { tell } from "../events/tell.ts";
import { withUpstream } from "../support/changed-upstream.ts";
import { compare } from "../support/comparison.ts";
import { printFigures } from "../support/figures.ts";
import { pass } from "../support/paced.ts";
import { until } from "../support/patience.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

/** A job about one repository. `prepare` brings the repository to the state that the job begins with. */
interface Job {
  name: string;
  prepare: (town: Town) => Promise<void>;
  run: (ctx: Context, job: { repositoryId: number }, signal: AbortSignal) => Promise<unknown>;
}

interface Town extends AsyncDisposable {
  world: TestWorld;
  ctx: Context;
  repositoryId: number;
  /** Adds a selection of the repository, and copies the repository to the end. */
  copy: () => Promise<void>;
  wish: () => Promise<void>;
}

/** How many removals the last test plays. The proof plays 200, and in the other tests goes through every answer. */
const REMOVALS = Number(process.env.REMOVALS ?? 4);
const MINUTE = 60_000;
/** Longer than these jobs take. */
const SPREAD_MS = 150;
const STEP = process.env.REMOVALS ? 1 : 4;

const { signal } = new AbortController();

const MISSING: ReadAnswer = { kind: "missing", status: 404, message: "Not Found" };

const JOBS: Job[] = [
  { name: "a first copy", prepare: ({ wish }) => wish(), run: backfill },
  {
    name: "a copy that is made again",
    prepare: async ({ ctx, repositoryId, copy }) => {
      await copy();
      await restartBackfill(ctx, repositoryId);
    },
    run: backfill,
  },
  {
    name: "a catch-up",
    prepare: async ({ world, copy }) => {
      await copy();
      // The repository has something of each kind to read.
      const upstream = world.simulator.world;
      for (const repository of upstream.repositories.values())
        for (const issue of repository.rows.issuesByCreated.ascending())
          createComment(upstream, repository.ownerId, issue, "news");
    },
    run: catchUp,
  },
  {
    name: "a catch-up of what was paused before its copy ended",
    prepare: async (town) => {
      const { ctx, world, repositoryId, wish } = town;
      // An earlier round may have copied the repository to the end.
      await removeSelection(ctx, world.first, { purge: true });
      await wish();
      expect(await stateOf(town)).toMatchObject({ state: "backfilling" });
      await backfill(withUpstream(ctx, { get: async () => MISSING }), { repositoryId }, signal);
      expect(await stateOf(town)).toMatchObject({ state: "paused" });
    },
    run: catchUp,
  },
  { name: "an audit", prepare: ({ copy }) => copy(), run: auditPart },
];

async function openTown(): Promise<Town> {
  const world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 1, issues: 3, pulls: 3 }),
    workers: false,
  });
  const { ctx } = world;
  const wish = async () => {
    await addSelections(ctx, [world.first]);
    await resolveSelections(ctx);
  };
  await wish();
  const rows = await ctx.db.query<{ id: number }>(sql`select repository_id as id from repository_syncs`);
  const repositoryId = Number(rows[0]?.id);
  return {
    world,
    ctx,
    repositoryId,
    wish,
    copy: async () => {
      await wish();
      await backfill(ctx, { repositoryId }, signal);
    },
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
}

/** Several tests share one town. Before each test the repository was just selected, and nothing of it is copied yet. */
function shareTown(): () => Town {
  let town: Town;
  beforeAll(async () => {
    town = await openTown();
  });
  afterAll(async () => await town?.[Symbol.asyncDispose]());
  beforeEach(async () => {
    await removeSelection(town.ctx, town.world.first, { purge: true });
    await town.wish();
  });
  return () => town;
}

/**
 * Runs the job, and removes the repository after upstream's `nth` answer. Answers what was asked of upstream
 * afterwards, and whether there was an `nth` answer at all.
 */
async function removeBehind(
  { ctx, world, repositoryId, wish }: Town,
  run: Job["run"],
  nth: number,
  { purge = false, isHidden = false, thenWish = false } = {},
): Promise<{ askedLater: string[]; wasRemoved: boolean }> {
  let asked = 0;
  let wasRemoved = false;
  const askedLater: string[] = [];
  const asking = async <T>(what: string, ask: () => Promise<T>): Promise<T> => {
    if (wasRemoved) askedLater.push(what);
    asked += 1;
    const isNth = asked === nth;
    const answer = await ask();
    if (!isNth) return answer;
    expect(await removeSelection(ctx, world.first, { purge })).toEqual([world.first]);
    wasRemoved = true;
    if (thenWish) await wish();
    return answer;
  };
  // This test does not measure how fast upstream lets the mirror go.
  pass(world, MINUTE);
  const listening = withUpstream(ctx, {
    get: (path, options) =>
      asking(path, async () => {
        const answer = await ctx.upstream.get(path, options);
        return isHidden && asked === nth ? MISSING : answer;
      }),
    graphql: (document, variables, options) =>
      asking(document, () => ctx.upstream.graphql(document, variables, options)),
  });
  await run(listening, { repositoryId }, signal);
  return { askedLater, wasRemoved };
}

function adminView({ simulator }: TestWorld): View {
  const { world, url, htmlUrl } = simulator;
  return openView({ world, apiUrl: url, htmlUrl, roleOf: () => "admin" });
}

async function stateOf({ ctx, repositoryId }: Town): Promise<unknown> {
  const rows = await ctx.db.query(sql`
    select state, problem from repository_syncs where repository_id = ${repositoryId}`);
  return rows[0] ?? null;
}

const REMOVED = { state: "gone", problem: "removed here" };

/** The tables that still hold something of the repository, each with its count of rows. */
async function leftOf({ ctx, repositoryId }: Town): Promise<string[]> {
  const tables = ["issues", "pull_requests", "issue_comments", "labels", "backfill_phases", "audits", "audit_pages"];
  const rows = await Promise.all(
    [...tables, "repository_syncs"].map(async (table) => {
      const rowCount = await ctx.db.count(
        sql`select from ${sql.identifier(table)} where repository_id = ${repositoryId}`,
      );
      return rowCount ? [`${rowCount} ${table}`] : [];
    }),
  );
  return rows.flat();
}

describe.each(JOBS)("$name", (job) => {
  const shared = shareTown();

  test("does not undo a removal that comes after any of upstream's answers", async () => {
    const town = shared();
    for (let nth = 1; ; nth++) {
      await job.prepare(town);
      const { askedLater, wasRemoved } = await removeBehind(town, job.run, nth);
      if (!wasRemoved) return expect(nth).toBeGreaterThan(1);
      expect({ nth, askedLater, now: await stateOf(town) }).toEqual({ nth, askedLater: [], now: REMOVED });
      expect((await town.world.get(`/repos/${town.world.first}/issues`)).status).toBe(404);
    }
  });

  test("does not undo a removal when upstream does not show the repository", async () => {
    const town = shared();
    for (let nth = 1; ; nth += STEP) {
      await job.prepare(town);
      const { askedLater, wasRemoved } = await removeBehind(town, job.run, nth, { isHidden: true });
      if (!wasRemoved) return;
      expect({ nth, askedLater, now: await stateOf(town) }).toEqual({ nth, askedLater: [], now: REMOVED });
    }
  });

  test("leaves no row of a repository that is purged meanwhile", async () => {
    const town = shared();
    for (let nth = 1; ; nth += STEP) {
      await job.prepare(town);
      const { askedLater, wasRemoved } = await removeBehind(town, job.run, nth, { purge: true });
      if (!wasRemoved) return;
      expect({ nth, askedLater, left: await leftOf(town) }).toEqual({ nth, askedLater: [], left: [] });
    }
  });

  test("leaves a repository that was purged and is wished for again to be copied from the beginning", async () => {
    const town = shared();
    for (let nth = 1; ; nth += STEP) {
      await job.prepare(town);
      const { wasRemoved } = await removeBehind(town, job.run, nth, { purge: true, thenWish: true });
      if (!wasRemoved) return;
      // A copy begins again by itself.
      if (job.run !== backfill)
        expect({ nth, now: await stateOf(town) }).toMatchObject({ now: { state: "backfilling" } });
      await backfill(town.ctx, { repositoryId: town.repositoryId }, signal);
      const { differences } = await compare(town.ctx, town.world.simulator, town.world.first);
      expect({ nth, differences }).toEqual({ nth, differences: [] });
    }
  });
});

describe("without a job", () => {
  const shared = shareTown();

  test.each(["its name", "all of its owner"])(
    "a wish for %s that is removed while it is resolved begins nothing",
    async (which) => {
      const town = shared();
      const { ctx, world } = town;
      const pattern = which === "its name" ? world.first : `${world.first.split("/")[0]}/*`;
      for (const purge of [false, true]) {
        await removeSelection(ctx, world.first, { purge });
        const before = await stateOf(town);
        await addSelections(ctx, [pattern]);
        let isRemoved = false;
        const listening = withUpstream(ctx, {
          get: async (path, options) => {
            const answer = await ctx.upstream.get(path, options);
            await removeSelection(ctx, pattern, { purge });
            isRemoved = true;
            return answer;
          },
        });
        await resolveSelections(listening);
        expect(isRemoved).toBe(true);
        expect(await stateOf(town)).toEqual(
          before && { state: "gone", problem: expect.toBeOneOf([null, "removed here"]) },
        );
      }
    },
  );

  test("a repository that was removed is not copied again without a wish", async () => {
    const town = shared();
    const { ctx, repositoryId, world } = town;
    await town.copy();
    await removeSelection(ctx, world.first, { purge: false });
    expect(await restartBackfill(ctx, repositoryId)).toBe(false);
    expect(await stateOf(town)).toEqual(REMOVED);
  });

  test("Postgres lets nothing but a new wish lead out of a removal, and no pause be without a reason", async () => {
    const town = shared();
    const { ctx, repositoryId, world } = town;
    const write = (change: string) =>
      ctx.db.query(sql`update repository_syncs set ${sql.script(change)} where repository_id = ${repositoryId}`);
    await removeSelection(ctx, world.first, { purge: false });
    for (const state of ["live", "paused", "backfilling"])
      await expect(write(`state = '${state}'`)).rejects.toThrow(
        `repository ${repositoryId} was removed: it does not become ${state} without a new wish`,
      );
    await expect(write("state = 'live', added_at = now()")).rejects.toMatchObject({ code: "23514" });
    await expect(write("state = 'elsewhere', added_at = now()")).rejects.toMatchObject({ code: "23514" });
    await write("state = 'backfilling', problem = null, added_at = now()");
    await expect(write("state = 'paused'")).rejects.toMatchObject({ constraint: "repository_syncs_pause" });
  });

  // This test comes last: there is no repository after it.
  test("a webhook that says it was deleted does not take the place of a removal", async () => {
    const town = shared();
    const { ctx, repositoryId, world } = town;
    await town.copy();
    const upstream = world.simulator.world;
    (upstream.clock as SettableClock).advance(1_000);
    const repository = upstream.repositories.get(repositoryId);
    if (!repository) throw new Error("Upstream has no repository");
    const deletion = { event: "repository", action: "deleted", repository, senderId: repository.ownerId } as const;
    const payload = payloadOf(adminView(world), deletion);
    mutate(upstream, adminView(world), { op: "deleteRepository", repository: world.first });
    await tell(world, { event: "repository", payload });
    const rows = await ctx.db.query<{ id: string }>(sql`select id from deliveries where event = 'repository'`);
    const ids = rows.map(({ id }) => id);
    expect(ids).toHaveLength(1);
    let applied: Promise<unknown> | undefined;
    await ctx.db.transaction(async (tx) => {
      await remove(tx, [repositoryId]);
      applied = applyDeliveries(ctx, ids);
      await until("the delivery waits for the removal", async () => {
        const waiting = sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
        return (await ctx.db.count(waiting)) === 1;
      });
    });
    await applied;
    expect(await stateOf(town)).toEqual(REMOVED);
  });
});

test(
  `${REMOVALS} removals beside a copy, a catch-up and an audit under way are never undone`,
  async () => {
    await using world = await openWorld({
      fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 21, repositories: 3, issues: 9, pulls: 9 }),
    });
    const { ctx, simulator } = world;
    const repositories = [...simulator.world.repositories.values()].filter(({ fork }) => !fork);
    const names = repositories.map((repository) => simulator.world.fullName(repository));
    const [copied, followed, audited] = repositories.map(({ id }) => ({ repositoryId: id }));
    if (!copied || !followed || !audited) throw new Error("The generated world has no three repositories");
    const { backfill: copies, catchUp: catchUps, audit: audits } = ctx.queues;
    const found = async () => await ctx.db.query(sql`select distinct state, problem from repository_syncs`);
    let met = 0;
    for (let round = 0; round < REMOVALS; round++) {
      await world.mirror(...names);
      await world.settle();
      await restartBackfill(ctx, copied.repositoryId);
      await Promise.all([
        enqueueBackfill(ctx, copied),
        enqueueCatchUp(ctx, followed),
        enqueueAudits(ctx, [audited.repositoryId]),
      ]);
      await Promise.all(
        names.map(async (name, at) => {
          // Each repository is removed at another point of its job.
          await delay((round * 7 + at * 13) % SPREAD_MS);
          met += Number(((await [copies, catchUps, audits][at]?.getActiveCount()) ?? 0) > 0);
          await removeSelection(ctx, name, { purge: round % 4 === 3 });
        }),
      );
      await world.settle();
      const asked = simulator.meter.read().requests;
      await resolveSelections(ctx);
      await sweep(ctx);
      await scheduleAudits(ctx);
      await world.catchUp();
      expect({ round, found: await found() }).toEqual({ round, found: round % 4 === 3 ? [] : [REMOVED] });
      for (const name of names) expect((await world.get(`/repos/${name}/issues`)).status).toBe(404);
      expect({ round, asked: simulator.meter.read().requests }).toEqual({ round, asked });
    }
    printFigures("removals", { removals: REMOVALS * names.length, besideJobs: met });
    // If hardly any removal met a job, nothing would be proved.
    expect(met).toBeGreaterThanOrEqual(REMOVALS);
  },
  REMOVALS * 30_000,
);
