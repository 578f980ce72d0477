import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { storeMarks } from "../../src/mirror/store/marks.ts";
import { createReview, createReviewComment, deleteReviewComment } from "../../src/simulator/changes/reviews.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import type { PullIssue, ReviewComment } from "../../src/simulator/world/records.ts";
import { backfill } from "../../src/sync/backfill/backfill.ts";
import { applyDeliveries } from "../../src/sync/deliveries/apply.ts";
import { addSelections, resolveSelections } from "../../src/sync/following/selection.ts";
import { fetchAndStorePullDetails } from "../../src/sync/reads/pull-details.ts";
import { Refreshes } from "../../src/sync/refresh/refresh.ts";
import { openWorld } from "../support/world.ts";

/**
 * A mirror that listens and whose jobs the test itself does, a pull request at upstream, and what the mirror shows of
 * it.
 */
async function openPull() {
  const world = await openWorld({
    workers: false,
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 1, issues: 6, pulls: 2 }),
  });
  const { simulator, ctx } = world;
  const pull = [...simulator.world.issues.values()].find((one): one is PullIssue => one.pull !== null);
  const by = pull?.authorId;
  if (!pull || !by) throw new Error("There is no pull request by an account that still exists");
  await addSelections(ctx, [world.first]);
  await resolveSelections(ctx);
  await backfill(ctx, { repositoryId: pull.repository.id }, new AbortController().signal);
  await world.listen(world.first);
  const pass = (ms: number) => {
    world.advance(ms);
    (simulator.world.clock as SettableClock).advance(ms);
  };
  pass(60_000);
  /**
   * The deliveries that wait after this change, that of a comment's creation before that of its deletion. Upstream
   * sends them at once, so they arrive in any order.
   */
  const received = async (change: () => void): Promise<string[]> => {
    change();
    await simulator.quiet();
    const rows = await ctx.db.query<{ id: string }>(sql`
      select id from deliveries where status = 'pending' and event <> 'ping' order by action, id`);
    return rows.map(({ id }) => id);
  };
  return {
    world,
    pull,
    by,
    pass,
    received,
    apply: async (change: () => void) => void (await applyDeliveries(ctx, await received(change))),
    comment: () => createReviewComment(simulator.world, by, pull, { body: "why", path: "README.md" }),
    async counted(): Promise<unknown> {
      const { body } = await world.get(`/repos/${world.first}/pulls/${pull.number}`);
      return (body as { review_comments: unknown }).review_comments;
    },
    async marked(): Promise<string[]> {
      const rows = await ctx.db.query<{ kind: string }>(sql`select kind from refresh_marks order by kind, key`);
      return rows.map(({ kind }) => kind);
    },
  };
}

test("comments on a diff are counted as their webhooks come, and upstream is asked only whether a deleted one is gone", async () => {
  const { world, by, apply, comment, counted, marked } = await openPull();
  await using _ = world;
  const [before, marks] = [(await counted()) as number, await marked()];
  const made: ReviewComment[] = [];
  await apply(() => void made.push(comment(), comment()));
  expect(await counted()).toBe(before + 2);
  expect(await marked()).toEqual(marks);
  await apply(() => deleteReviewComment(world.simulator.world, by, made[0] as ReviewComment));
  expect(await counted()).toBe(before + 1);
  expect(await marked()).toEqual([...marks, "review_comment"]);
});

test("a comment is counted if its webhook comes after the details of its pull request were read", async () => {
  const { world, pull, pass, comment, received, counted } = await openPull();
  await using _ = world;
  const before = (await counted()) as number;
  const ids = await received(() => void comment());
  pass(60_000);
  const repository = await world.ctx.jobReads.repository(pull.repository.id);
  if (!repository) throw new Error("The repository is not mirrored");
  await fetchAndStorePullDetails(world.ctx, repository, [pull.number], "catch-up");
  pass(60_000);
  expect(await counted()).toBe(before);
  expect([...(await applyDeliveries(world.ctx, ids)).values()]).toEqual(ids.map(() => "applied"));
  expect(await counted()).toBe(before + 1);
});

test("the comments of one review are all counted, when several workers apply them at the same time", async () => {
  const { world, pull, by, received, counted } = await openPull();
  await using _ = world;
  const before = (await counted()) as number;
  const comments = ["a", "b", "c", "d", "e", "f"].map((body) => ({ body, path: "README.md" }));
  const ids = await received(
    () => void createReview(world.simulator.world, by, pull, { state: "COMMENTED", comments }),
  );
  expect(ids).toHaveLength(1 + comments.length);
  await Promise.all(ids.map((id) => applyDeliveries(world.ctx, [id])));
  expect(await counted()).toBe(before + comments.length);
});

test("a count that upstream gave stands while the webhooks of some of those comments are still to come", async () => {
  const { world, pull, pass, comment, received, counted } = await openPull();
  await using _ = world;
  const before = (await counted()) as number;
  const ids = await received(() => {
    comment();
    comment();
  });
  pass(60_000);
  const key = { kind: "pull_request" as const, repositoryId: pull.repository.id, key: pull.number };
  await storeMarks(world.ctx.db, [{ ...key, askedAt: new Date(0), notBefore: new Date(0) }]);
  expect(await new Refreshes(world.ctx).refresh(key)).toBe("merged");
  expect(await counted()).toBe(before + 2);
  for (const id of ids) {
    await applyDeliveries(world.ctx, [id]);
    expect(await counted()).toBe(before + 2);
  }
});

test.each(["together", "the last first"])("a comment that is gone by now is not counted (%s)", async (order) => {
  const { world, by, comment, received, counted } = await openPull();
  await using _ = world;
  const before = (await counted()) as number;
  const ids = await received(() => deleteReviewComment(world.simulator.world, by, comment()));
  for (const some of order === "together" ? [ids] : ids.toReversed().map((id) => [id])) {
    await applyDeliveries(world.ctx, some);
    expect(await counted()).toBe(before);
  }
});
