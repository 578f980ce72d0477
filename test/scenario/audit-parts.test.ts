/** An audit goes by parts: what upstream says of one list says nothing about the repository, or about another list. */
import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { deleteComment } from "../../src/simulator/changes/comments.ts";
import { deleteIssue, editIssue } from "../../src/simulator/changes/issues.ts";
import { editRepository } from "../../src/simulator/changes/repositories.ts";
import { deleteReviewComment } from "../../src/simulator/changes/reviews.ts";
import type { HttpFault } from "../../src/simulator/faults/faults.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { audit } from "../../src/sync/audit/audit.ts";
import { auditPart } from "../../src/sync/audit/schedule.ts";
import { makeEvents } from "../../src/sync/found/make.ts";
import { readAnew, upstreamPathOf } from "../../src/sync/reads/read-anew.ts";
import type { ReadAnswer } from "../../src/upstream/protocol/upstream.ts";
import { askAt } from "../support/asking.ts";
import { withUpstream } from "../support/changed-upstream.ts";
import { compare } from "../support/comparison.ts";
import { pass } from "../support/paced.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

const signal = new AbortController().signal;
const MINUTE = 60_000;

async function openCopied(pulls = 6) {
  const world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 5, repositories: 1, issues: 12, pulls }),
    env: { RATE_LIMIT_ANONYMOUS: "0" },
  });
  await world.mirror(world.first);
  await world.settleMarks();
  const [owner = "", name = ""] = world.first.split("/");
  const repository = world.simulator.world.repositoryByName(owner, name)?.repository;
  if (!repository) throw new Error("The generated repository is not there");
  pass(world, MINUTE);
  return { world, repository };
}

/** How the repository stands for everybody: its state, who sees it, and the events of visibility that were made. */
async function repositoryVersion(world: TestWorld) {
  await makeEvents(world.ctx);
  pass(world, 10 * MINUTE);
  await makeEvents(world.ctx);
  const [row] = await world.ctx.db.query<{ state: string; private: boolean }>(sql`
    select s.state, r.private from repository_syncs s join repositories r on r.id = s.repository_id`);
  const told = await world.ctx.db.query<{ action: string }>(sql`
    select action from deliveries where event = 'repository' and action in ('privatized', 'publicized')`);
  const anonymous = (await askAt(world.url, "GET", `/repos/${world.first}/issues`, {})).status;
  return { ...row, anonymous, told };
}

const PUBLIC = { state: "live", private: false, anonymous: 200, told: [] };

test("pull requests that are switched off are left out, and all else is compared, repaired and shown as before", async () => {
  const { world, repository } = await openCopied();
  await using _ = world;
  editRepository(world.simulator.world, repository.ownerId, repository, { hasPullRequests: false });
  const comment = [...world.simulator.world.comments.values()].find(({ issue }) => issue.repository === repository);
  if (!comment) throw new Error("The generated world has no comment");
  deleteComment(world.simulator.world, repository.ownerId, comment);

  await auditPart(world.ctx, { repositoryId: repository.id }, signal);
  expect(await repositoryVersion(world)).toEqual(PUBLIC);
  const [run] = await world.ctx.db.query<{ finished: boolean; left: string[] }>(sql`
    select finished_at is not null as finished,
      array(select part->>'part' from json_array_elements(report::json->'notCompared') part) as left from audits`);
  expect(run).toEqual({ finished: true, left: ["pulls", "review comments", "reviews"] });
  const rows = await world.ctx.db.query(
    sql`select deleted_at is not null as gone from issue_comments where id = ${comment.id}`,
  );
  expect(rows).toEqual([{ gone: true }]);

  const [known] = await world.ctx.db.query<{ id: number }>(sql`
    select id::float8 as id from pull_request_review_comments limit 1`);
  const wanted = { kind: "review_comment", repositoryId: repository.id, key: known?.id ?? 0 } as const;
  const mirrored = await world.ctx.jobReads.repository(repository.id);
  const path = (await upstreamPathOf(world.ctx, wanted)) ?? "";
  expect(await readAnew(world.ctx, wanted, mirrored ?? null, path, { priority: "refresh" })).toMatchObject({
    outcome: "kept",
  });

  // Nothing was taken for deleted meanwhile, and once they are switched on again all is as it is at upstream.
  editRepository(world.simulator.world, repository.ownerId, repository, { hasPullRequests: true });
  pass(world, MINUTE);
  const report = await audit(world.ctx, { repositoryId: repository.id, repair: true, signal });
  expect(report?.notCompared).toEqual([]);
  await world.settleMarks();
  expect((await compare(world.ctx, world.simulator, world.first)).differences).toEqual([]);
});

const LISTS = ["labels", "milestones", "issues", "pulls", "issues/comments", "pulls/comments"];
const ANSWERS: Readonly<Record<string, Partial<HttpFault>>> = {
  "404": { kind: "refusal", as: "absent" },
  "403": { kind: "refusal", as: "permission" },
  "410": { kind: "status", status: 410 },
} as Record<string, Partial<HttpFault>>;

test("a 404, 403 or 410 on one list ends no audit and hides nothing, whichever list it is", async () => {
  const { world, repository } = await openCopied();
  await using _ = world;
  for (const [at, list] of LISTS.entries()) {
    const fault = Object.values(ANSWERS)[at % 3] as HttpFault;
    world.simulator.setFaults({ http: [{ ...fault, match: `^GET /repositories/${repository.id}/${list}$` }] });
    const report = await audit(world.ctx, { repositoryId: repository.id, repair: true, anew: true, signal });
    expect([list, report?.finishedAt === null, report?.notCompared.length]).toEqual([
      list,
      false,
      list === "pulls" ? 2 : 1,
    ]);
    expect(report?.drift).toEqual([]);
    pass(world, MINUTE);
  }
  world.simulator.setFaults({});
  expect(await repositoryVersion(world)).toEqual(PUBLIC);
});

test("what the repository's own read did not show is told to nobody as a change of its visibility", async () => {
  const { world, repository } = await openCopied();
  await using _ = world;
  world.simulator.setFaults({
    http: [{ kind: "refusal", as: "absent", match: `^GET /repositories/${repository.id}(/|$)` }],
  });
  await auditPart(world.ctx, { repositoryId: repository.id }, signal).catch(() => undefined);
  expect(await repositoryVersion(world)).toEqual({ state: "paused", private: true, anonymous: 404, told: [] });
  // As after a catch-up's 404, a refresh asks again, and not the next catch-up alone.
  world.simulator.setFaults({});
  await world.settleMarks();
  expect(await repositoryVersion(world)).toEqual(PUBLIC);
});

test("a single 404 of a list is asked about again after the replicas' lag, and then ever more seldom", async () => {
  const { world, repository } = await openCopied();
  await using _ = world;
  const [pull] = world.simulator.world.pulls.values();
  if (!pull) throw new Error("The generated world has no pull request");
  const problems = () =>
    world.ctx.db.query<{ failures: number; waitS: number }>(sql`
      select failures, extract(epoch from next_at - failed_at)::int as "waitS" from problems where task = 'part'`);
  world.simulator.setFaults({ http: [{ match: "GET /repositories/\\d+/pulls$", kind: "refusal", as: "absent" }] });
  for (const [failures, least, most] of [
    [1, 11, 15],
    [2, 200, 400],
    [3, 400, 800],
  ] as const) {
    editIssue(world.simulator.world, repository.ownerId, pull, { title: `title ${failures}` });
    await world.catchUp();
    const [problem] = await problems();
    expect(problem?.failures).toBe(failures);
    expect(problem?.waitS).toBeGreaterThanOrEqual(least);
    expect(problem?.waitS).toBeLessThanOrEqual(most);
    pass(world, (problem?.waitS ?? 0) * 1_000 + 1_000);
  }
  world.simulator.setFaults({});
  await world.catchUp();
  expect(await problems()).toEqual([]);
  expect((await compare(world.ctx, world.simulator, world.first)).differences).toEqual([]);
});

test("what counts an issue that an audit finds gone is asked again, since a replica that lagged may have told of it", async () => {
  // The list of pull requests would show the repository once more.
  const { world, repository } = await openCopied(0);
  await using _ = world;
  const { ctx, simulator } = world;
  const upstream = simulator.world;
  const issue = [...upstream.issues.values()].find(
    (one) => one.repository === repository && !one.pull && one.state === "open",
  );
  const milestone = [...upstream.milestones.values()].find((one) => one.repository === repository);
  if (!issue || !milestone) throw new Error("The generated world has no open issue, or no milestone");
  editIssue(upstream, repository.ownerId, issue, { milestoneId: milestone.id });
  await world.catchUp();
  await world.settleMarks();
  const lagging = [`/repositories/${repository.id}?page=1`, `/repositories/${repository.id}/milestones?`];
  const before = new Map<string, ReadAnswer>();
  const behind = withUpstream(ctx, {
    get: async (path, options) => {
      const answer = before.get(path) ?? (await ctx.upstream.get(path, options));
      if (lagging.some((one) => path.startsWith(one))) before.set(path, answer);
      return answer;
    },
  });
  await audit(behind, { repositoryId: repository.id, repair: true, signal });
  deleteIssue(upstream, repository.ownerId, issue);
  pass(world, 10 * MINUTE);
  await audit(behind, { repositoryId: repository.id, repair: true, signal });
  await world.settleMarks();
  expect((await compare(ctx, simulator, world.first)).differences).toEqual([]);
});

test("what counts a comment that an audit finds gone is asked again, since a replica that lagged may have told of it", async () => {
  const { world, repository } = await openCopied();
  await using _ = world;
  const { ctx, simulator } = world;
  const upstream = simulator.world;
  const comments = [...upstream.comments.values()].filter(({ issue }) => issue.repository === repository);
  const ofIssue = comments.find(({ issue }) => !issue.pull);
  const ofPull = comments.find(({ issue }) => issue.pull);
  const [reviewComment] = [...upstream.reviewComments.values()].filter(({ issue }) => issue.repository === repository);
  if (!ofIssue || !ofPull || !reviewComment) throw new Error("The generated world lacks a comment");
  const lagging = ["issues?", "pulls?"].map((list) => `/repositories/${repository.id}/${list}`);
  const before = new Map<string, ReadAnswer>();
  const behind = withUpstream(ctx, {
    get: async (path, options) => {
      const answer = await ctx.upstream.get(path, options);
      const shown = before.get(path) ?? answer;
      if (lagging.some((one) => path.startsWith(one))) before.set(path, shown);
      return { ...shown, seenAt: ctx.clock.now(), upstreamNow: ctx.clock.now() };
    },
  });
  await audit(behind, { repositoryId: repository.id, repair: true, signal });
  deleteComment(upstream, repository.ownerId, ofIssue);
  deleteComment(upstream, repository.ownerId, ofPull);
  deleteReviewComment(upstream, repository.ownerId, reviewComment);
  pass(world, 10 * MINUTE);
  await audit(behind, { repositoryId: repository.id, repair: true, signal });
  await world.settleMarks();
  expect((await compare(ctx, simulator, world.first)).differences).toEqual([]);
});
