/** A copy goes live with the parts that upstream shows of a repository, and says which parts upstream does not show. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { loadStatus } from "../../src/health/status.ts";
import type { FaultSettings } from "../../src/simulator/faults/faults.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import type { Issue } from "../../src/simulator/world/records.ts";
import { audit } from "../../src/sync/audit/audit.ts";
import { driftCount } from "../../src/sync/audit/report.ts";
import { backfill } from "../../src/sync/backfill/backfill.ts";
import { catchUp } from "../../src/sync/catch-up/catch-up.ts";
import { removeSelection } from "../../src/sync/following/removal.ts";
import { addSelections, resolveSelections } from "../../src/sync/following/selection.ts";
import { wakeRested } from "../../src/sync/problems/wake.ts";
import { QuotaSpentError } from "../../src/upstream/protocol/errors.ts";
import { withUpstream } from "../support/changed-upstream.ts";
import { compare } from "../support/comparison.ts";
import { paced, pass } from "../support/paced.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

const signal = new AbortController().signal;
const HOUR = 3_600_000;

/** A mirror of so many repositories. */
async function openMirrorOf(repositories: number): Promise<TestWorld> {
  return await openWorld({
    fill: ({ world: upstream }) =>
      void generateWorld(upstream, { seed: 5, repositories, issues: 12, pulls: 24, commentsPerIssue: 1 }),
    workers: false,
  });
}

let shared: TestWorld;
beforeAll(async () => {
  shared = await openMirrorOf(1);
});
afterAll(async () => await shared?.[Symbol.asyncDispose]());

/** A mirror that has copied nothing of its repositories, and has forgotten what earlier tests did. */
async function openUncopied(world = shared) {
  const { ctx, simulator } = world;
  simulator.setFaults({});
  // After a day the mirror asks again for the parts that upstream lacked.
  pass(world, 25 * HOUR);
  await removeSelection(ctx, world.first, { purge: true });
  const originals = [...simulator.world.repositories.values()].filter(({ fork }) => !fork);
  const names = originals.map((one) => simulator.world.fullName(one));
  await addSelections(ctx, names);
  await resolveSelections(ctx);
  const rows = await ctx.db.query<{ id: number }>(sql`
    select repository_id as id from repository_syncs order by repository_id`);
  const ids = rows.map(({ id }) => Number(id));
  const status = async () => (await loadStatus(ctx, async () => [])).repositories;
  const pulls = [...simulator.world.issues.values()].filter((row) => row.pull);
  /** Works as a queue does: it tries a few times within seconds, and then no more. */
  const copy = async (repositoryId = ids[0] ?? 0) => {
    for (let tries = 1; ; tries++) {
      try {
        return await paced(world, () => backfill(ctx, { repositoryId }, signal));
      } catch (error) {
        if (tries === 6) throw error;
      }
    }
  };
  return { world, ctx, simulator, ids, pulls, status, copy };
}

const numbersOf = (pulls: readonly Issue[]) => pulls.map(({ number }) => number);

test.each<{ what: string; faults: (pulls: readonly Issue[]) => FaultSettings }>([
  { what: "is off", faults: () => ({ http: [{ match: "POST /graphql", kind: "status", status: 404 }] }) },
  {
    what: "is forbidden",
    faults: () => ({ http: [{ match: "POST /graphql", kind: "refusal", as: "permission" }] }),
  },
  {
    what: "lacks a field, as an older server's does",
    faults: () => ({ graphql: { lacks: [{ type: "PullRequestReview", field: "fullDatabaseId" }] } }),
  },
  {
    what: "runs out of time however little is asked",
    faults: (pulls) => ({ graphql: { timeoutPulls: numbersOf(pulls) } }),
  },
  { what: "numbers pull requests no more", faults: () => ({ graphql: { timeoutAtWork: 0 } }) },
  {
    what: "fails at a field of some pull requests",
    faults: (pulls) => ({ graphql: { failPulls: numbersOf(pulls.slice(3, 6)) } }),
  },
  {
    what: "gives some up for the work that they are",
    faults: () => ({ graphql: { resourceLimitAtWork: 9 } }),
  },
])("where GraphQL $what, a copy becomes live with what REST shows", async ({ faults }) => {
  const { world, simulator, pulls, status, copy } = await openUncopied();
  simulator.setFaults(faults(pulls));
  await copy();
  expect(await status()).toMatchObject([{ state: "live", problem: null }]);
  expect((await compare(world.ctx, simulator, world.first)).differences).toEqual([]);

  // An audit goes on in the same way. It also repairs fields that only GraphQL or single reads show.
  const [pull] = pulls;
  const repositoryId = pull?.repository.id ?? 0;
  world.advance(60_000);
  await world.ctx.db.query(sql`
    update pull_requests set detail = jsonb_set(detail::jsonb, '{additions}', '77777')::json
      where repository_id = ${repositoryId} and number = ${pull?.number ?? 0}`);
  const report = await audit(world.ctx, { repositoryId, repair: true, signal });
  expect(report?.finishedAt).not.toBeNull();
  expect(report && driftCount(report)).toBeGreaterThan(0);
  expect((await compare(world.ctx, simulator, world.first)).differences).toEqual([]);

  // A catch-up goes on in the same way.
  world.advance(60_000);
  await catchUp(world.ctx, { repositoryId: pulls[0]?.repository.id ?? 0 }, signal);
  expect(await status()).toMatchObject([{ state: "live", problem: null }]);
});

test("what an older server lacks is asked once, and not again for the next repository", async () => {
  await using two = await openMirrorOf(2);
  const { world, ctx, simulator, ids, copy, status } = await openUncopied(two);
  simulator.setFaults({ graphql: { lacks: [{ type: "PullRequestReview", field: "fullDatabaseId" }] } });
  const refused: string[] = [];
  const listening = withUpstream(ctx, {
    graphql: async (document, variables, options) => {
      try {
        return await ctx.upstream.graphql(document, variables, options);
      } catch (error) {
        refused.push(String(error));
        throw error;
      }
    },
  });
  await backfill(listening, { repositoryId: ids[0] ?? 0 }, signal);
  await backfill(listening, { repositoryId: ids[1] ?? 0 }, signal);
  expect(refused).toEqual([expect.stringContaining("Field 'fullDatabaseId' doesn't exist")]);
  expect((await status()).map(({ state }) => state)).toEqual(["live", "live"]);

  // After a day the mirror tries again, because the server may have been upgraded.
  simulator.setFaults({});
  world.advance(25 * HOUR);
  await copy(ids[1]);
  expect(await ctx.db.query(sql`select what from upstream_lacks`)).toHaveLength(1);
});

test("a token without the permission for pull requests mirrors issues, and the status names what is missing until it comes", async () => {
  const { world, ctx, simulator, ids, status, copy } = await openUncopied();
  simulator.setFaults({
    http: [
      { match: "GET /repositories/\\d+/pulls", kind: "refusal", as: "permission" },
      { match: "POST /graphql", kind: "refusal", as: "permission" },
    ],
  });
  await copy();
  const [shown] = await status();
  expect(shown?.state).toBe("live");
  expect(shown?.problem).toMatch(/its pulls are missing: .*403.*Resource not accessible/);
  expect(shown?.problem).toMatch(/its review comments are missing/);
  expect(await ctx.db.query(sql`select count(*)::int as count from issues`)).toEqual([{ count: 36 }]);

  // Each answer names what is missing. So nobody takes an empty list for one that is really empty.
  const missing = async () => (await world.get(`/repos/${world.first}/pulls`)).headers.get("x-tain-missing");
  expect(await missing()).toBe("pulls, review comments, reviews");

  // A catch-up asks for the parts that are there, and confirms them.
  world.advance(20_000);
  await catchUp(ctx, { repositoryId: ids[0] ?? 0 }, signal);
  expect(await status()).toMatchObject([{ state: "live", problem: shown?.problem }]);
  expect(await missing()).toBe("pulls, review comments, reviews");

  // Once the permission is there, the missing parts are copied whole.
  simulator.setFaults({});
  world.advance(2 * HOUR);
  await wakeRested(ctx);
  expect(await ctx.queues.catchUp.getJobCounts("waiting", "prioritized")).not.toEqual({ waiting: 0, prioritized: 0 });
  await catchUp(ctx, { repositoryId: ids[0] ?? 0 }, signal);
  await copy();
  expect(await status()).toMatchObject([{ state: "live", problem: null }]);
  expect(await missing()).toBeNull();
  expect((await compare(ctx, simulator, world.first)).differences).toEqual([]);
  await ctx.queues.catchUp.obliterate({ force: true });
  await wakeRested(ctx);
  expect(await ctx.queues.catchUp.count()).toBe(0);
});

test("a repository that shows neither issues nor pull requests does not become live, and says why", async () => {
  const { simulator, status, copy } = await openUncopied();
  simulator.setFaults({
    http: [{ match: "GET /repositories/\\d+/(issues|pulls)", kind: "refusal", as: "permission" }],
  });
  await copy();
  const [shown] = await status();
  expect(shown?.state).toBe("backfilling");
  expect(shown?.problem).toMatch(/its copy fails: Upstream shows neither issues nor pull requests: .*403/);
});

test("what another mirror names as missing is missing here, although its list is there and empty", async () => {
  const { world, ctx, ids, status } = await openUncopied();
  const mirror = withUpstream(ctx, {
    get: async (path, options) => {
      const answer = await ctx.upstream.get(path, options);
      const isEmpty = answer.kind === "ok" && /\/(labels|milestones)\?/.test(path);
      return { ...answer, ...(isEmpty ? { body: [] } : {}), missing: ["labels", "milestones"] };
    },
  });
  await paced(world, () => backfill(mirror, { repositoryId: ids[0] ?? 0 }, signal));
  const [shown] = await status();
  expect(shown?.state).toBe("live");
  expect(shown?.problem).toMatch(/its labels are missing: Upstream is a mirror itself/);
  const { headers } = await world.get(`/repos/${world.first}/labels`);
  expect(headers.get("x-tain-missing")).toBe("labels, milestones");
});

test("issues that are off leave pull requests, and a repository that is hidden meanwhile pauses", async () => {
  const { world, simulator, ids, status, copy } = await openUncopied();
  simulator.setFaults({ http: [{ match: "GET /repositories/\\d+/issues$", kind: "status", status: 410 }] });
  await copy();
  const [shown] = await status();
  expect([shown?.state, shown?.problem]).toEqual([
    "live",
    expect.stringMatching(/its issues are missing: Upstream does not show/),
  ]);

  simulator.setFaults({ http: [{ match: `GET /repositories/${ids[0]}`, kind: "refusal", as: "absent" }] });
  world.advance(60_000);
  await catchUp(world.ctx, { repositoryId: ids[0] ?? 0 }, signal).catch(() => undefined);
  expect((await status())[0]?.state).toBe("paused");
});

test("a spent quota of GraphQL holds up the details alone, and not the lists", async () => {
  const { ctx, ids } = await openUncopied();
  const spent = withUpstream(ctx, {
    graphql: async () => {
      throw new QuotaSpentError("graphql", new Date(ctx.clock.now().getTime() + HOUR));
    },
  });
  await expect(backfill(spent, { repositoryId: ids[0] ?? 0 }, signal)).rejects.toThrow(QuotaSpentError);
  const rows = await ctx.db.query(sql`select phase from backfill_phases where finished_at is null`);
  expect(rows).toEqual([{ phase: "reviews" }]);
});

test("a copy that goes on reads the details from their beginning, also when the process ends as it is asked for", async () => {
  const { ctx, ids, copy } = await openUncopied();
  const [repositoryId = 0] = ids;
  await copy();
  await ctx.db.query(
    sql`update backfill_phases set finished_at = null, cursor = 'behind a few' where phase = 'reviews'`,
  );
  const stands = () =>
    ctx.db.query(sql`
      select s.state, b.cursor from repository_syncs s join backfill_phases b using (repository_id) where b.phase = 'reviews'`);
  // This is the state that a process leaves which ends between two statements.
  await ctx.db.query(sql`
    create function fail() returns trigger language plpgsql as $$ begin raise 'the process ends'; end $$`);
  await ctx.db.query(sql`
    create trigger fails before update on backfill_phases for each row execute function fail()`);
  await expect(catchUp(ctx, { repositoryId }, signal)).rejects.toThrow("the process ends");
  expect(await stands()).toEqual([{ state: "live", cursor: "behind a few" }]);
  await ctx.db.query(sql`drop trigger fails on backfill_phases`);
  await catchUp(ctx, { repositoryId }, signal);
  expect(await stands()).toEqual([{ state: "backfilling", cursor: null }]);
});
