/** A clock of ours that ran ahead for a while and was put right: the times that it left decide nothing afterwards. */
import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { deleteComment } from "../../src/simulator/changes/comments.ts";
import { editLabel } from "../../src/simulator/changes/labels.ts";
import { dismissReview } from "../../src/simulator/changes/reviews.ts";
import { mutate } from "../../src/simulator/control/mutations.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { openView } from "../../src/simulator/views/view.ts";
import { audit } from "../../src/sync/audit/audit.ts";
import { driftCount } from "../../src/sync/audit/report.ts";
import { scheduleAudits } from "../../src/sync/audit/schedule.ts";
import { sweep } from "../../src/sync/catch-up/sweep.ts";
import { putTimesRight } from "../../src/sync/following/times.ts";
import { compare } from "../support/comparison.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

const HOUR = 3_600_000;
const signal = new AbortController().signal;

/** A mirror that copied its repository, and audited it once, while its clock was two hours ahead. It is right now. */
async function openPutRight() {
  const world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 11, repositories: 1, issues: 40, pulls: 30 }),
  });
  world.advance(2 * HOUR);
  await world.mirror(world.first);
  await world.settleMarks();
  const [owner = "", name = ""] = world.first.split("/");
  const repository = world.simulator.world.repositoryByName(owner, name)?.repository;
  if (!repository) throw new Error("The generated repository is not there");
  await audit(world.ctx, { repositoryId: repository.id, repair: true, signal });
  await world.settleMarks();
  const aheadMs = world.ctx.clock.now().getTime() - Date.now();
  world.advance(-aheadMs);
  return { world, repository };
}

function first<T>(values: Iterable<T>, fits: (value: T) => boolean = () => true): T {
  for (const value of values) if (fits(value)) return value;
  throw new Error("The generated world has none");
}

/** Changes that move no `updated_at` of what shows them, and deletions. */
function change({ simulator, first: full }: TestWorld, ownerId: number): void {
  const upstream = simulator.world;
  const person = first(upstream.users.values(), ({ login }) => login !== full.split("/")[0] && login !== "ghost");
  const view = openView({ world: upstream, apiUrl: simulator.url, htmlUrl: simulator.htmlUrl, roleOf: () => "admin" });
  mutate(upstream, view, { op: "renameUser", login: person.login, to: "renamed-person" });
  const label = first(upstream.labels.values());
  editLabel(upstream, ownerId, label, { color: "123456" });
  dismissReview(
    upstream,
    ownerId,
    first(upstream.reviews.values(), ({ state }) => state === "APPROVED"),
  );
  deleteComment(upstream, ownerId, first(upstream.comments.values()));
}

test("an audit finds and repairs all that differs, and says equal only afterwards", async () => {
  const { world, repository } = await openPutRight();
  await using _ = world;
  change(world, repository.ownerId);
  const found = await audit(world.ctx, { repositoryId: repository.id, repair: false, anew: true, signal });
  const kinds = new Set(found?.drift.map(({ kind }) => kind));
  expect([...kinds].sort()).toEqual(expect.arrayContaining(["issue_comment", "label", "review", "user"]));
  await audit(world.ctx, { repositoryId: repository.id, repair: true, anew: true, signal });
  await world.settleMarks();
  expect((await compare(world.ctx, world.simulator, world.first)).differences).toEqual([]);
  const again = await audit(world.ctx, { repositoryId: repository.id, repair: false, anew: true, signal });
  expect(again && driftCount(again)).toBe(0);
});

test("webhooks are believed at once, as with a clock that was always right", async () => {
  const { world, repository } = await openPutRight();
  await using _ = world;
  await world.listen(world.first);
  const label = first(world.simulator.world.labels.values());
  editLabel(world.simulator.world, repository.ownerId, label, { color: "abcdef" });
  await world.settleMarks();
  expect((await world.get(`/repos/${world.first}/labels/${label.name}`)).body).toMatchObject({ color: "abcdef" });
});

test("nothing waits until the time is reached at which the clock was", async () => {
  const { world, repository } = await openPutRight();
  await using _ = world;
  const isAhead = async () => {
    const now = world.ctx.clock.now();
    const rows = await world.ctx.db.query<{ ahead: boolean }>(sql`
      select greatest(s.confirmed_at, s.caught_up_at, a.finished_at, a.started_at) > ${now} as ahead
        from repository_syncs s join audits a using (repository_id)`);
    return rows.map(({ ahead }) => ahead);
  };
  expect(await isAhead()).toEqual([true]);
  await putTimesRight(world.ctx);
  expect(await isAhead()).not.toContain(true);

  change(world, repository.ownerId);
  await sweep(world.ctx);
  await world.catchUp();
  await world.settleMarks();
  const { headers } = await world.get(`/repos/${world.first}/labels`);
  const confirmedAt = Date.parse(headers.get("x-tain-confirmed-at") ?? "");
  expect(confirmedAt).toBeLessThanOrEqual(world.ctx.clock.now().getTime());
  world.advance(25 * HOUR);
  await scheduleAudits(world.ctx);
  await world.settleMarks();
  expect((await compare(world.ctx, world.simulator, world.first)).differences).toEqual([]);
});
