import { describe, expect, test } from "vitest";
import { createComment } from "../../src/simulator/changes/comments.ts";
import { createIssue, editIssue, transferIssue } from "../../src/simulator/changes/issues.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import { catchUp } from "../../src/sync/catch-up/catch-up.ts";
import { withUpstream } from "../support/changed-upstream.ts";
import { compare } from "../support/comparison.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

/**
 * Two mirrored repositories. An issue moves from the first to the second with its comments, and no webhook tells of it.
 */
async function openTransferred() {
  const world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 21, repositories: 2, issues: 12, pulls: 4 }),
  });
  const { simulator } = world;
  const [from, to] = [...simulator.world.repositories.values()].filter((one) => !one.fork);
  if (!from || !to) throw new Error("The generated world has no two repositories");
  const issue = [...from.rows.issuesByCreated.ascending()].find((one) => !one.pull && one.thread.length > 0);
  if (!issue) throw new Error("Nothing was said under any issue");
  await world.mirror(simulator.world.fullName(from), simulator.world.fullName(to));
  await world.settleMarks();
  const pass = (ms: number) => {
    world.advance(ms);
    (simulator.world.clock as SettableClock).advance(ms);
  };
  pass(3_600_000);
  transferIssue(simulator.world, from.ownerId, issue, to);
  return {
    world,
    to,
    pass,
    differences: async () => (await compare(world.ctx, simulator, simulator.world.fullName(to))).differences,
  };
}

test("an issue that was transferred here without a word brings its comments by the next catch-up", async () => {
  const { world, differences } = await openTransferred();
  await using _ = world;
  await world.catchUp();
  await world.settleMarks();
  expect(await differences()).toEqual([]);
});

test("an issue that went on through a repository that is not mirrored is found where it is", async () => {
  await using world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 21, repositories: 3, issues: 12, pulls: 0 }),
  });
  const { simulator } = world;
  const [from, by, to] = [...simulator.world.repositories.values()].filter((one) => !one.fork);
  const issue = from && [...from.rows.issuesByCreated.ascending()][0];
  if (!issue || !by || !to) throw new Error("The generated world has no three repositories");
  const names = [from, to].map((one) => simulator.world.fullName(one));
  await world.mirror(...names);
  for (const name of names) await world.listen(name);
  const there = transferIssue(simulator.world, from.ownerId, issue, by);
  await world.settle();
  const path = `/repos/${names[0]}/issues/${issue.number}`;
  expect((await world.get(path)).status).toBe(404);
  const { number } = transferIssue(simulator.world, by.ownerId, there, to);
  await world.settle();
  const answer = await fetch(world.url + path, {
    headers: { authorization: `token ${world.token}`, "user-agent": "test" },
    redirect: "manual",
  });
  expect(answer.status).toBe(301);
  expect(answer.headers.get("location")).toBe(`${world.url}/repositories/${to.id}/issues/${number}`);
});

/** Doubts are settled by the mirror's clock alone. Webhooks of an upstream that is behind seem late, and move no counts. */
function keepUp({ ctx, simulator }: TestWorld): void {
  const clock = simulator.world.clock as SettableClock;
  clock.advance(ctx.clock.now().getTime() - clock.now());
}

/** What was charged since the meter was reset, by route; a question by GraphQL is a point. */
function chargedBy({ simulator }: TestWorld): Record<string, number> {
  return Object.fromEntries(
    Object.entries(simulator.meter.read().routes)
      .map(([route, { charged, points }]) => [route, points || charged] as const)
      .filter(([, cost]) => cost > 0),
  );
}

describe("upstream's words for a transferred issue leave open only what it brings along", () => {
  const COMMENTS = "GET /repos/:owner/:repo/issues/:number/comments";
  test.each([
    { state: "open", comments: 0, costs: {} },
    { state: "open", comments: 2, costs: { "POST /graphql": 1, [COMMENTS]: 1 } },
    // No word tells who has closed it, and the common question does.
    { state: "closed", comments: 0, costs: { "POST /graphql": 1 } },
    { state: "closed", comments: 2, costs: { "POST /graphql": 1, [COMMENTS]: 1 } },
    { state: "reopened", comments: 0, costs: { "POST /graphql": 1 } },
  ] as const)("$state, with $comments comments", async ({ state, comments, costs }) => {
    await using world = await openWorld({
      fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 21, repositories: 2, issues: 12, pulls: 0 }),
    });
    const { simulator } = world;
    const { world: upstream } = simulator;
    const [from, to] = [...upstream.repositories.values()].filter((one) => !one.fork);
    if (!from || !to) throw new Error("The generated world has no two repositories");
    const names = [from, to].map((one) => upstream.fullName(one));
    const made = { repository: from, title: "it moves", body: null, labelIds: [] };
    const issue = createIssue(upstream, from.ownerId, made);
    for (let at = 0; at < comments; at++) createComment(upstream, from.ownerId, issue, "said before");
    if (state !== "open") editIssue(upstream, from.ownerId, issue, { state: "closed" });
    if (state === "reopened") editIssue(upstream, from.ownerId, issue, { state: "open" });
    await world.mirror(...names);
    await world.listen(...names);
    await world.settleMarks();
    keepUp(world);
    simulator.meter.reset();
    transferIssue(upstream, from.ownerId, issue, to);
    await world.settleMarks();
    const charged = chargedBy(world);
    // Whether the old one is gone is asked too.
    const asked = { "POST /graphql": 1, ...costs };
    expect(charged).toEqual(asked);
    for (const name of names) expect((await compare(world.ctx, simulator, name)).differences).toEqual([]);
  });
});

test("a milestone no longer counts an issue that went elsewhere, and its counts are asked for with other doubts", async () => {
  await using world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 21, repositories: 2, issues: 12, pulls: 4 }),
  });
  const { simulator } = world;
  const { world: upstream } = simulator;
  const [from, to] = [...upstream.repositories.values()].filter((one) => !one.fork);
  const milestone = [...upstream.milestones.values()].find((one) => one.repository === from);
  if (!from || !to || !milestone) throw new Error("The generated world has no two repositories with a milestone");
  const issue = createIssue(upstream, from.ownerId, { repository: from, title: "it moves", body: null, labelIds: [] });
  editIssue(upstream, from.ownerId, issue, { milestoneId: milestone.id });
  const names = [from, to].map((one) => upstream.fullName(one));
  await world.mirror(...names);
  await world.listen(...names);
  await world.settleMarks();
  keepUp(world);
  simulator.meter.reset();
  transferIssue(upstream, from.ownerId, issue, to);
  await world.settleMarks();
  expect(chargedBy(world)).toEqual({ "POST /graphql": 1 });
  for (const name of names) expect((await compare(world.ctx, simulator, name)).differences).toEqual([]);
});

test("a catch-up that fails over the comments of a transferred issue meets it again", async () => {
  const { world, to, pass, differences } = await openTransferred();
  await using _ = world;
  pass(3_600_000);
  createIssue(world.simulator.world, to.ownerId, { repository: to, title: "later", body: null, labelIds: [] });
  const failing = withUpstream(world.ctx, {
    get: async (path, options) => {
      if (/\/issues\/\d+\/comments\?/.test(path)) throw new Error("Upstream is away");
      return world.ctx.upstream.get(path, options);
    },
  });
  const { signal } = new AbortController();
  await expect(catchUp(failing, { repositoryId: to.id }, signal)).rejects.toThrow("is away");
  // The mirror leaves what has failed alone for a while.
  pass(60_000);
  await world.catchUp();
  await world.settleMarks();
  expect(await differences()).toEqual([]);
});
