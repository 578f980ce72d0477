import { expect, test } from "vitest";
import { createIssue, transferIssue } from "../../src/simulator/changes/issues.ts";
import type { SettableClock } from "../../src/simulator/clock.ts";
import { generateWorld } from "../../src/simulator/generate.ts";
import { catchUp } from "../../src/sync/catch-up/catch-up.ts";
import { withUpstream } from "../support/changed-upstream.ts";
import { compare } from "../support/comparison.ts";
import { openWorld } from "../support/world.ts";

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
