/**
 * What the first copy of commits, files, threads, checks, releases, branches and tags costs by upstream's own meter,
 * compared with the floor of docs/quota.md. Then the same for a second copy.
 */
import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { registerHook } from "../../src/cli/hooks/repository-hooks.ts";
import { MIRROR_PARTS } from "../../src/config/parts.ts";
import { enqueueBackfill } from "../../src/queues/queues.ts";
import { createStatus, editCheckRun, latestStatuses } from "../../src/simulator/changes/checks.ts";
import { editIssue } from "../../src/simulator/changes/issues.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { addCode } from "../../src/simulator/generate/generate-code.ts";
import { reviewThreads } from "../../src/simulator/graphql/review-thread.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import { history } from "../../src/simulator/world/commits.ts";
import type { PullIssue } from "../../src/simulator/world/records.ts";
import { isPull } from "../../src/simulator/world/world.ts";
import { restartBackfill } from "../../src/sync/backfill/backfill.ts";
import { sweep } from "../../src/sync/catch-up/sweep.ts";
import { checkDeliveries } from "../../src/sync/hook-deliveries/missed.ts";
import { dispatchMarks } from "../../src/sync/marks/marks.ts";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { markWholesDue } from "../support/due.ts";
import { printFigures } from "../support/figures.ts";
import { until } from "../support/patience.ts";
import { openWorld } from "../support/world.ts";

/** `PULLS=2000 npm test -- test/scenario/first-copy-of-parts` copies 2,000 pull requests. */
const PULLS = Number(process.env.PULLS ?? 12);
const SIZES = { branches: 300, releases: 200 };
const PAGE = 100;
const MINUTE = 60_000;
/** The most that a copy may cost, as a multiple of the floor. */
const MOST = 1.1;

test(
  "all parts are copied for hardly more than the requests that no client can do without, and again for nothing",
  async () => {
    await using world = await openWorld({
      env: { MIRROR: MIRROR_PARTS.join() },
      fill: ({ world: filled }) => {
        generateWorld(filled, { seed: 7, repositories: 1, issues: 5, pulls: PULLS });
        for (const one of filled.repositories.values()) addCode(filled, one, SIZES, 7, filled.now());
      },
      copiedWithinMs: LONG_TEST_MS / 2,
    });
    const { simulator, ctx, first } = world;
    const [owner = "", name = ""] = first.split("/");
    const repository = simulator.world.repositoryByName(owner, name)?.repository;
    if (!repository) throw new Error("The generated repository is not there");
    await world.mirror(first);
    // Upstream lists what it sent to a hook of Tain's own. So Tain knows this hook from its first delivery on.
    expect(await registerHook(ctx, { id: repository.id, owner, name }, `${world.url}/webhooks`)).toBeNull();
    // The first delivery is about an issue. One about a pull request would have its parts copied at once.
    const issue = [...repository.rows.issuesByCreated.ascending()].find(({ pull }) => !pull);
    if (issue) editIssue(simulator.world, repository.ownerId, issue, { title: "told" });
    await world.settle();
    await sweep(ctx);
    await world.settleMarks();

    const pass = async (ms: number) => {
      (simulator.world.clock as SettableClock).advance(ms);
      world.advance(ms);
      await checkDeliveries(ctx);
      await markWholesDue(ctx);
      await ctx.queues.refresh.clean(0, 10_000, "delayed");
      await dispatchMarks(ctx);
      // Each turn asks for the next one, so waiting here may take as long as the whole copy.
      await until(
        "nothing is being read",
        async () =>
          Object.values(await ctx.queues.refresh.getJobCounts("waiting", "active")).every((jobs) => jobs === 0),
        LONG_TEST_MS,
      );
    };
    const copied = async (first: () => Promise<void> = async () => {}) => {
      simulator.meter.reset();
      await first();
      // Work that has to wait for quota is asked for again after the reset.
      let rounds = 0;
      for (let left = 1; left > 0 || rounds < 2; rounds++) {
        if (rounds > 40) throw new Error("The parts are not copied after so many rounds");
        await pass(20 * MINUTE);
        left = await ctx.db.count(sql`select from refresh_marks where kind in ('lists', 'checks', 'releases', 'refs')`);
      }
      const { callers, routes } = simulator.meter.read();
      const buckets = Object.values(callers);
      const requests = buckets.reduce((sum, each) => sum + (each.core?.charged ?? 0), 0);
      const points = buckets.reduce((sum, each) => sum + (each.graphql?.points ?? 0), 0);
      return { requests, points, routes, rounds };
    };

    const pulls = [...repository.rows.issuesByCreated.ascending()].filter((one): one is PullIssue => isPull(one));
    const open = pulls.filter(({ state }) => state === "open");
    const pages = (rows: number) => Math.max(1, Math.ceil(rows / PAGE));
    const code = simulator.world.code.of(repository);
    const isChecked = (sha: string) => (code.suites.get(sha)?.length ?? 0) + (code.statuses.get(sha)?.length ?? 0) > 0;
    const heads = new Set(open.map(({ pull }) => pull.head.sha).filter(isChecked));
    const lists = pulls.reduce((sum, { pull }) => sum + pages(pull.commits) + pages(pull.changedFiles), 0);
    // Three lists for each head that has checks. The default branch also needs its head, because nothing sums its
    // checks up.
    const checked = 3 * heads.size + 4;
    // Releases: the list, and the latest one. Branches and tags: where all of them point to, and the list of each.
    const releases = pages(code.releases.size) + 1;
    const refs = 1 + pages(repository.branches.size) + 1 + pages(code.tags.size);
    // Each list of threads and the first comment of each thread count as one request, and a hundred of these are a
    // point.
    const threads = pulls.map((pull) => reviewThreads(pull).length).filter((count) => count > 0);
    const threadPoints = Math.ceil(threads.reduce((sum, count) => sum + 1 + count, 0) / 100);
    // The history, and the files of each of its newest thirty.
    const head = repository.branches.get(repository.defaultBranch) ?? "";
    const commits = [...history(simulator.world, repository, head)].length;
    // Who can be assigned and who has access; of an organisation also the teams there, and four lists of its own.
    const people = simulator.world.user(repository.ownerId).type === "Organization" ? 7 : 2;
    const floor = lists + checked + releases + refs + people + pages(commits) + Math.min(30, commits);
    const once = await copied();
    const costs = (form: RegExp) =>
      Object.entries(once.routes).reduce((sum, [route, { charged }]) => (form.test(route) ? sum + charged : sum), 0);
    const own = { releases: costs(/\/releases/), refs: costs(/\/(branches|tags|git\/matching-refs)/) };
    const held = await ctx.db.count(sql`select from mirrored_lists where read_at is not null`);
    // Every run and status is completed first. No event says that a run has begun, so a head with an open one would be
    // asked about every few minutes.
    for (const run of [...code.suites.values()].flat().flatMap(({ runs }) => runs))
      if (run.status !== "completed")
        editCheckRun(simulator.world, repository.ownerId, run, { status: "completed", conclusion: "success" });
    for (const { state, sha, context } of [...code.statuses.values()].flatMap(latestStatuses))
      if (state === "pending")
        createStatus(simulator.world, repository.ownerId, { repository, sha, context, state: "success" });
    const copyAgain = async () => {
      await restartBackfill(ctx, repository.id);
      await enqueueBackfill(ctx, { repositoryId: repository.id });
      await until(
        "the copy is made again",
        async () => (await ctx.db.count(sql`select from repository_syncs where state = 'live'`)) > 0,
        LONG_TEST_MS,
      );
    };
    // This copy also meets what webhooks have told meanwhile.
    await copyAgain();
    await pass(70 * MINUTE);
    await pass(70 * MINUTE);
    // Counts what a repeated copy asks for, and what the parts cost while hours go by.
    const again = await copied(async () => {
      await copyAgain();
      await pass(70 * MINUTE);
    });
    printFigures("first copy of parts", {
      pulls: pulls.length,
      open: open.length,
      checked: heads.size,
      branches: repository.branches.size,
      releases: code.releases.size,
      tags: code.tags.size,
      threads: threads.reduce((sum, count) => sum + count, 0),
      floor,
      threadPoints,
      first: { requests: once.requests, points: once.points },
      again: { requests: again.requests, points: again.points },
    });
    expect(held).toBe(3 * pulls.length);
    expect(own).toEqual({ releases, refs });
    const rows = async (table: string) => await ctx.db.count(sql`select from ${sql.identifier(table)}`);
    expect([await rows("releases"), await rows("refs")]).toEqual([
      code.releases.size,
      repository.branches.size + code.tags.size,
    ]);
    expect(once.requests, JSON.stringify(once.routes)).toBeLessThanOrEqual(Math.ceil(floor * MOST));
    expect(again.requests, JSON.stringify(again.routes)).toBe(0);
    // Three queries confirm the sums of checks, the lengths of lists and how threads stand, in each round. Two things
    // add a fifth to the points for threads: the least that a query is charged, and lists shorter than the longest of
    // their 25 pull requests.
    const confirmed = ({ rounds }: typeof once) => 3 * rounds * pages(open.length);
    expect(once.points).toBeLessThanOrEqual(confirmed(once) + Math.ceil(1.2 * threadPoints) + 2);
    expect(again.points).toBe(0);
  },
  process.env.PULLS ? 6 * LONG_TEST_MS : LONG_TEST_MS,
);
