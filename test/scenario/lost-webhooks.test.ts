import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { createComment, editComment } from "../../src/simulator/changes/comments.ts";
import { createIssue, editIssue } from "../../src/simulator/changes/issues.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import { isPull } from "../../src/simulator/world/world.ts";
import { sweep } from "../../src/sync/catch-up/sweep.ts";
import { withUpstream } from "../support/changed-upstream.ts";
import { compare } from "../support/comparison.ts";
import { pass } from "../support/paced.ts";
import { openWorld } from "../support/world.ts";

const MINUTE = 60_000;
/** `SEEDS=20 npm test -- test/scenario/lost-webhooks` tries more seeds. */
const seeds = Array.from({ length: Number(process.env.SEEDS ?? 1) }, (_, index) => index + 1);

/**
 * A list shows these changes only if they move `updated_at`, which GitHub's documentation leaves open. If they do not,
 * only an audit finds those that no webhook told of: see `missed-audit.test.ts`.
 */
const SHOWN_BY_LISTS = { lock: true, pin: true, typeChange: true };

test.each(seeds.flatMap((seed) => [0.3, 1].map((drop) => ({ seed, drop }))))(
  "of a stream of changes (seed $seed) the share $drop of all webhooks is lost without a trace: one sweep interval later the mirror is equal to upstream",
  async ({ seed, drop }) => {
    await using world = await openWorld({
      simulator: { worldOptions: { bumps: SHOWN_BY_LISTS } },
      fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 1, issues: 60, pulls: 30 }),
    });
    const { clock } = world.simulator.world;
    const pass = (ms: number) => {
      (clock as SettableClock).advance(ms);
      world.advance(ms);
    };
    await world.mirror(world.first);
    await world.listen(world.first);
    await world.settleMarks();
    for (let minute = 0; minute < 5; minute++) {
      pass(MINUTE);
      await sweep(world.ctx);
      await world.settle();
    }
    world.simulator.setFaults({ seed, webhooks: { drop } });
    const live = world.simulator.startLive({ ratePerSecond: 0, seed });
    for (let step = 0; step < 150; step++) {
      live.step();
      if (step % 10 === 0) pass(1_000);
    }
    await world.settle();
    for (let minute = 0; minute < 5; minute++) {
      pass(MINUTE);
      await sweep(world.ctx);
      await world.settle();
    }
    await world.settleMarks();
    const [repository] = [...world.simulator.world.repositories.values()].filter(({ fork }) => !fork);
    // A new contributor becomes one in everything that they ever wrote. Only an audit asks for that.
    const { differences } = await compare(
      world.ctx,
      world.simulator,
      String(repository?.id),
      (_kind, path) => path === "author_association",
    );
    expect(differences).toEqual([]);
  },
);

test("a change whose webhook was lost is found though the dates of upstream's answers are hours behind", async () => {
  await using world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 12, repositories: 1, issues: 6, pulls: 2 }),
  });
  const upstream = world.simulator.world;
  const behind = withUpstream(world.ctx, {
    graphql: async (...asked) => {
      const answer = await world.ctx.upstream.graphql(...asked);
      return { ...answer, upstreamNow: new Date(answer.upstreamNow.getTime() - 300 * MINUTE) };
    },
  });
  const sweepAfter = async (ms: number) => {
    pass(world, ms);
    await sweep(behind);
    await world.settle();
  };
  await world.mirror(world.first);
  await world.listen(world.first);
  await world.settleMarks();
  for (let minute = 0; minute < 6; minute++) await sweepAfter(MINUTE);
  const issue = [...upstream.issues.values()].find((one) => !isPull(one));
  if (!issue) throw new Error("There is no issue");
  // Webhooks tell of the repository.
  editIssue(upstream, issue.repository.ownerId, issue, { body: "told" });
  await world.settle();
  for (let minute = 0; minute < 3; minute++) await sweepAfter(MINUTE);
  world.simulator.setFaults({ lacksEvents: ["issues"] });
  editIssue(upstream, issue.repository.ownerId, issue, { title: "lost" });
  await world.settle();
  world.simulator.setFaults({});
  for (let minute = 0; minute < 3; minute++) await sweepAfter(MINUTE);
  expect(await world.ctx.db.count(sql`select from issues where title = 'lost'`)).toBe(1);
});

test("where many repositories lose webhooks, what no look shows is found in the others, too", async () => {
  await using world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 12, repositories: 4, issues: 8, pulls: 4 }),
  });
  const upstream = world.simulator.world;
  const repositories = [...upstream.repositories.values()].filter(({ fork }) => !fork);
  const names = repositories.map((one) => upstream.fullName(one));
  for (const name of names) await world.mirror(name);
  await world.listen(...names);
  await world.settleMarks();
  const issues = repositories.map((repository) =>
    createIssue(upstream, repository.ownerId, { repository, title: "Lively" }),
  );
  const lively = async (minutes: number) => {
    for (let minute = 0; minute < minutes; minute++) {
      for (const issue of issues) createComment(upstream, issue.repository.ownerId, issue, `Told in minute ${minute}`);
      await world.settle();
      pass(world, MINUTE);
      await sweep(world.ctx);
      await world.settle();
    }
  };
  await lively(6);
  const [calm, ...others] = issues;
  const lossy = others.flatMap(
    (lively) => lively.repository.rows.byNumber.find((one) => one && one !== lively && !isPull(one)) ?? [],
  );
  const [comment] = [...upstream.comments.values()].filter(({ issue }) => issue === calm);
  if (!comment) throw new Error("There is no comment");
  world.simulator.setFaults({ lacksEvents: ["issues", "issue_comment"] });
  for (const issue of lossy) editIssue(upstream, issue.repository.ownerId, issue, { title: "Lost" });
  editComment(upstream, comment.issue.repository.ownerId, comment, "No look shows this");
  world.simulator.setFaults({});
  await lively(10);
  expect(await world.ctx.db.count(sql`select from issues where title = 'Lost'`)).toBe(3);
  const shown = await world.get(`/repositories/${calm?.repository.id}/issues/comments/${comment.id}`);
  expect(shown.body).toMatchObject({ body: "No look shows this" });
});
