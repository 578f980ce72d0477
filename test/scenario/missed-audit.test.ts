import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { mutate } from "../../src/simulator/control/mutations.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { callerOf } from "../../src/simulator/quota/quota.ts";
import { openView } from "../../src/simulator/views/view.ts";
import { audit } from "../../src/sync/audit/audit.ts";
import { type AuditReport, driftCount } from "../../src/sync/audit/report.ts";
import { scheduleAudits } from "../../src/sync/audit/schedule.ts";
import { InterruptedError } from "../../src/sync/problems/errors.ts";
import { RepositoryUnavailableError } from "../../src/sync/reads/pages.ts";
import { QuotaSpentError } from "../../src/upstream/protocol/errors.ts";
import { compare } from "../support/comparison.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

const LONG_MS = 60_000;

/** A mirror without a webhook, and the one repository that it copied. */
async function openCopied(issues = 60, pulls = 30) {
  const world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 11, repositories: 1, issues, pulls }),
  });
  await world.mirror(world.first);
  await world.settleMarks();
  const [owner = "", name = ""] = world.first.split("/");
  const repository = world.simulator.world.repositoryByName(owner, name)?.repository;
  if (!repository) throw new Error("The generated repository is not there");
  world.advance(LONG_MS);
  return { world, repository };
}

const change = ({ simulator }: TestWorld, json: Record<string, unknown>) =>
  mutate(
    simulator.world,
    openView({ world: simulator.world, apiUrl: simulator.url, htmlUrl: simulator.htmlUrl, roleOf: () => "admin" }),
    json,
  );

async function auditOnce(world: TestWorld, repositoryId: number, repair: boolean): Promise<AuditReport> {
  const report = await audit(world.ctx, { repositoryId, repair, signal: new AbortController().signal });
  if (!report) throw new Error("Nothing was audited");
  return report;
}

function first<T>(values: Iterable<T>, fits: (value: T) => boolean = () => true): T {
  for (const value of values) if (fits(value)) return value;
  throw new Error("The generated world has none");
}

test("an audit finds what nobody told and no list of changes shows, repairs it only if asked, and proves it for nothing", async () => {
  const { world, repository } = await openCopied();
  await using _ = world;
  const upstream = world.simulator.world;
  const full = world.first;
  const { rows } = repository;
  const issue = first(rows.issuesByCreated.ascending(), (one) => !one.pull && one.labelIds.length > 0);
  const other = first(rows.issuesByCreated.ascending(), (one) => !one.pull && one !== issue);
  const comment = first(upstream.comments.values(), (one) => one.issue !== issue && one.issue !== other);
  const reviewComment = first(upstream.reviewComments.values());
  const review = first(
    upstream.reviews.values(),
    (one) => one.id !== reviewComment.reviewId && one.state === "APPROVED",
  );
  const author = first(upstream.users.values(), (one) => one.id === other.authorId);
  const label = upstream.labels.get(issue.labelIds[0] as number);
  const milestone = first(upstream.milestones.values());
  const changes: Record<string, unknown>[] = [
    { op: "deleteComment", comment: comment.id },
    { op: "deleteReviewComment", comment: reviewComment.id },
    { op: "dismissReview", review: review.id },
    { op: "renameUser", login: author.login, to: "renamed-person" },
    { op: "deleteLabel", repository: full, label: label?.name },
    { op: "deleteMilestone", repository: full, milestone: milestone.number },
    { op: "deleteIssue", repository: full, number: issue.number },
    { op: "editIssue", repository: full, number: other.number, body: "edited in secret" },
    { op: "createLabel", repository: full, name: "brand-new" },
  ];
  for (const json of changes) change(world, json);

  await world.ctx.db.query(sql`
    insert into pull_request_reviews (repository_id, id, node_id, pull_number, state, document, seen_at, seen_by_read)
      select repository_id, id + 900000, node_id, pull_number, state, document, seen_at, seen_by_read
      from pull_request_reviews where id = ${review.id}`);

  const before = await compare(world.ctx, world.simulator, full);
  expect(before.differences.length).toBeGreaterThan(0);
  const found = await auditOnce(world, repository.id, false);
  expect(await compare(world.ctx, world.simulator, full)).toEqual(before);
  const lines = found.drift.map(({ kind, key, drift }) => `${kind} ${key} ${drift}`);
  expect(lines).toEqual(
    expect.arrayContaining([
      `issue_comment ${comment.id} gone`,
      `review_comment ${reviewComment.id} gone`,
      `review ${review.id} differs`,
      `review ${review.id + 900_000} gone`,
      `user ${author.id} differs`,
      `label ${label?.id} gone`,
      `milestone ${milestone.id} gone`,
      `issue ${issue.number} gone`,
      `issue ${other.number} differs`,
    ]),
  );
  expect(found.drift.find(({ kind }) => kind === "user")?.fields).toContain("login");
  expect(found.drift.find(({ kind, key }) => kind === "issue" && key === other.number)?.fields).toContain("body");

  world.advance(LONG_MS);
  await auditOnce(world, repository.id, true);
  await world.settleMarks();
  expect((await compare(world.ctx, world.simulator, full)).differences).toEqual([]);

  world.advance(LONG_MS);
  const second = await auditOnce(world, repository.id, true);
  expect(second.drift).toEqual([]);
  world.advance(LONG_MS);
  world.simulator.meter.reset();
  const third = await auditOnce(world, repository.id, true);
  expect(driftCount(third)).toBe(0);
  const meter = world.simulator.meter.read();
  // Requests: the repository itself and a page of pull requests' details. All lists are unchanged.
  expect(meter.routes["POST /graphql"]?.requests).toBe(1);
  expect(meter.charged - meter.points).toBeLessThanOrEqual(2);
  expect(meter.points).toBeLessThanOrEqual(2);
});

test("a row that claims a later moment than upstream ever had is put right", async () => {
  const { world, repository } = await openCopied(10, 3);
  await using _ = world;
  await world.ctx.db.query(sql`
    update issues
      set title = 'invented', updated_at = now() + interval '1 year', document = (jsonb_set(jsonb_set(document::jsonb, '{title}', '"invented"'), '{updated_at}', '"2031-01-01T00:00:00Z"'))::json
      where repository_id = ${repository.id} and number = (select min(number) from issues
      where repository_id = ${repository.id})`);
  const report = await auditOnce(world, repository.id, true);
  expect(report.counts.issue).toBe(1);
  expect((await compare(world.ctx, world.simulator, world.first)).differences).toEqual([]);
});

test("a list that upstream does not show, and a quota that is spent, are no deletions; the audit goes on where it stopped", async () => {
  const { world, repository } = await openCopied(30, 5);
  await using _ = world;
  change(world, { op: "blockRepository", repository: world.first, reason: "dmca" });
  await expect(auditOnce(world, repository.id, true)).rejects.toThrow(RepositoryUnavailableError);
  change(world, { op: "blockRepository", repository: world.first });
  expect((await compare(world.ctx, world.simulator, world.first)).differences).toEqual([]);

  const slice = await audit(world.ctx, {
    repositoryId: repository.id,
    repair: true,
    signal: new AbortController().signal,
    maxPages: 3,
  });
  expect(slice).toMatchObject({ finishedAt: null, pages: 3 });
  const comment = first(world.simulator.world.comments.values());
  change(world, { op: "deleteComment", comment: comment.id });
  const token = world.simulator.tokens.find(UPSTREAM_TOKEN);
  if (!token) throw new Error("Upstream does not know the mirror's token");
  const caller = callerOf(token, "");
  world.simulator.quota.setRemaining(caller, "core", 0);
  await expect(auditOnce(world, repository.id, true)).rejects.toThrow(QuotaSpentError);
  expect(await countTombstones(world)).toBe(0);
  world.simulator.quota.setRemaining(caller, "core", 5_000);
  world.advance(2 * 3_600_000);
  const stopped = new AbortController();
  const why = new Error("The process stops");
  stopped.abort(why);
  const interrupted = audit(world.ctx, { repositoryId: repository.id, repair: true, signal: stopped.signal });
  await expect(interrupted).rejects.toThrow(InterruptedError);
  await expect(interrupted).rejects.toMatchObject({ cause: why });
  const rest = await auditOnce(world, repository.id, true);
  expect(rest.startedAt).toBe(slice?.startedAt);
  expect(rest.finishedAt).not.toBeNull();
  expect((await compare(world.ctx, world.simulator, world.first)).differences).toEqual([]);
});

test("audits are given out once a period, in parts, and repair what they find", async () => {
  const { world, repository } = await openCopied(30, 5);
  await using _ = world;
  const finishedAt = async () =>
    (await world.ctx.db.query<{ finished_at: Date | null }>(sql`select finished_at from audits`))[0]?.finished_at;
  await scheduleAudits(world.ctx);
  await world.settle();
  expect(await finishedAt()).toBeUndefined(); // The copy is too young to be audited.
  const comment = first(world.simulator.world.comments.values());
  change(world, { op: "deleteComment", comment: comment.id });
  world.advance(25 * 3_600_000);
  await scheduleAudits(world.ctx);
  await world.settleMarks();
  const done = await finishedAt();
  expect(done).toBeInstanceOf(Date);
  expect((await compare(world.ctx, world.simulator, world.first)).differences).toEqual([]);
  await scheduleAudits(world.ctx);
  await world.settle();
  expect(await finishedAt()).toEqual(done);

  world.advance(25 * 3_600_000);
  change(world, { op: "blockRepository", repository: world.first, reason: "dmca" });
  await scheduleAudits(world.ctx);
  await world.settle();
  const rows = await world.ctx.db.query(sql`
    select state from repository_syncs where repository_id = ${repository.id}`);
  expect(rows).toEqual([{ state: "paused" }]);
  expect(await countTombstones(world)).toBe(1);
});

/** `SEEDS=20 npm test -- test/scenario/missed-audit` tries more seeds. */
const seeds = Array.from({ length: Number(process.env.SEEDS ?? 1) }, (_, index) => index + 1);

test.each(seeds)(
  "seed %i: after a stream of changes of every kind that no webhook told of, one catch-up and one audit make the mirror equal",
  async (seed) => {
    const { world, repository } = await openCopied(40, 20);
    await using _ = world;
    const live = world.simulator.startLive({ ratePerSecond: 0, seed });
    for (let step = 0; step < 200; step++) live.step();
    await world.catchUp();
    await world.settleMarks();
    world.advance(LONG_MS);
    await auditOnce(world, repository.id, true);
    await world.settleMarks();
    const name = world.simulator.world.fullName(repository);
    expect((await compare(world.ctx, world.simulator, name)).differences).toEqual([]);
  },
);

async function countTombstones({ ctx }: TestWorld): Promise<number> {
  const rows = await ctx.db.query<{ count: number }>(sql`
    select ((select count(*) from issues where deleted_at is not null) + (select count(*) from issue_comments
      where deleted_at is not null))::int as count`);
  return rows[0]?.count ?? 0;
}
