import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { deleteComment, editComment } from "../../src/simulator/changes/comments.ts";
import { deleteReviewComment } from "../../src/simulator/changes/reviews.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { backfill, restartBackfill } from "../../src/sync/backfill/backfill.ts";
import { analyzeCopied } from "../../src/sync/backfill/statistics.ts";
import { addSelections, resolveSelections } from "../../src/sync/following/selection.ts";
import { withUpstream } from "../support/changed-upstream.ts";
import { compare } from "../support/comparison.ts";
import { openWorld } from "../support/world.ts";

test("a generated repository is mirrored completely, nasty cases included", async () => {
  await using world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 1, issues: 250, pulls: 130 }),
  });
  await world.mirror(world.first);
  await world.settle();
  const { counts, differences } = await compare(world.ctx, world.simulator, world.first);
  expect(differences).toEqual([]);
  expect(counts.issues).toBeGreaterThanOrEqual(380);
});

/** A mirror that has copied nothing yet of its one repository. */
async function openUncopied(size: { issues: number; pulls: number; commentsPerIssue: number }) {
  const world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 1, ...size }),
    workers: false,
  });
  const { ctx } = world;
  await addSelections(ctx, [world.first]);
  await resolveSelections(ctx);
  const rowsOf = <Row>(statement: string) => ctx.db.query<Row>(sql.script(statement));
  const [row] = await rowsOf<{ id: number }>("select repository_id as id from repository_syncs");
  return {
    world,
    rowsOf,
    /** Calls `then` with each path once upstream has answered it. */
    copy: async (then: (path: string) => void | Promise<void>) => {
      const listening = withUpstream(ctx, {
        get: async (path, options) => {
          const answer = await ctx.upstream.get(path, options);
          await then(path);
          return answer;
        },
      });
      await backfill(listening, { repositoryId: Number(row?.id) }, new AbortController().signal);
    },
  };
}

test("comments that are deleted while a copy reads the list hide none of those behind them", async () => {
  const { world, rowsOf, copy } = await openUncopied({ issues: 100, pulls: 100, commentsPerIssue: 2 });
  await using _ = world;
  const upstream = world.simulator.world;
  const { comments, reviewComments } = upstream;
  expect(comments.size).toBeGreaterThan(200);
  expect(reviewComments.size).toBeGreaterThan(100);
  await copy((path) => {
    const [comment] = path.includes("/issues/comments?") ? comments.values() : [];
    if (comment) deleteComment(upstream, comment.issue.repository.ownerId, comment);
    const [reviewComment] = path.includes("/pulls/comments?") ? reviewComments.values() : [];
    if (reviewComment) deleteReviewComment(upstream, reviewComment.issue.repository.ownerId, reviewComment);
  });
  for (const [table, there] of [
    ["issue_comments", comments],
    ["pull_request_review_comments", reviewComments],
  ] as const) {
    const stored = new Set((await rowsOf<{ id: string }>(`select id from ${table}`)).map(({ id }) => Number(id)));
    expect([...there.keys()].filter((id) => !stored.has(id))).toEqual([]);
  }
});

test("a copy that reads by change tells how many pages are left, and counts what it meets twice once", async () => {
  const { world, rowsOf, copy } = await openUncopied({ issues: 150, pulls: 10, commentsPerIssue: 3 });
  await using _ = world;
  const phase = "select pages, expected_pages, resources from backfill_phases where phase = 'issue comments'";
  const progress: unknown[] = [];
  await copy(async (path) => {
    if (path.includes("/issues/comments?")) progress.push(...(await rowsOf(phase)));
  });
  const { size } = world.simulator.world.comments;
  const pages = Math.ceil(size / 100);
  expect(pages).toBeGreaterThan(3);
  expect(progress.slice(0, 3)).toEqual([
    { pages: 0, expected_pages: null, resources: 0 },
    { pages: 1, expected_pages: pages, resources: 100 },
    { pages: 2, expected_pages: pages, resources: expect.any(Number) },
  ]);
  expect(await rowsOf(phase)).toEqual([{ pages, expected_pages: pages, resources: size }]);
});

test("what a first copy says is copied is there, at each of its requests", async () => {
  const { world, rowsOf, copy } = await openUncopied({ issues: 60, pulls: 130, commentsPerIssue: 2 });
  await using _ = world;
  const held = ["issues", "pull_requests", "issue_comments", "pull_request_reviews", "pull_request_review_comments"]
    .concat("labels", "milestones")
    // The list of issues shows a side of pull requests that are still to be read.
    .map((table) => `(select count(*) from ${table} where deleted_at is null and id is not null)`);
  const figures = async () =>
    await rowsOf<{ counted: number; held: number }>(
      `select (select coalesce(sum(resources), 0)::int from backfill_phases) as counted, (${held.join(" + ")})::int as held`,
    );
  const told: { counted: number; held: number }[] = [];
  await copy(async () => void told.push(...(await figures())));
  told.push(...(await figures()));
  // A list by change goes on from the second in which a page ends. A row of that second that the page had not is missed.
  expect(told.filter(({ counted, held }) => counted > held || counted < held - 1)).toEqual([]);
  expect(new Set(told.map(({ held }) => held)).size).toBeGreaterThan(7);
  expect((await rowsOf("select from pull_request_reviews")).length).toBeGreaterThan(10);
});

const LONG_LIST = { issues: 60, pulls: 1, commentsPerIssue: 24 };

test("a long list of comments costs a request for each page, and hardly one in ten more; again it costs nothing", async () => {
  const { world, rowsOf, copy } = await openUncopied(LONG_LIST);
  await using _ = world;
  const { size } = world.simulator.world.comments;
  const pages = Math.ceil(size / 100);
  expect(pages).toBeGreaterThan(11);
  const asked: string[] = [];
  const isComments = (path: string) => path.includes("/issues/comments?");
  const charged = () => world.simulator.meter.read().routes["GET /repos/:owner/:repo/issues/comments"]?.charged ?? 0;
  await copy((path) => void (isComments(path) && asked.push(new URLSearchParams(path).get("page") ?? "first")));
  expect(asked.slice(0, 12)).toEqual(["first", "10", "9", "8", "7", "6", "5", "4", "3", "2", "first", "first"]);
  expect(charged()).toBeLessThanOrEqual(pages + 1);
  const phase = "select pages, expected_pages, resources from backfill_phases where phase = 'issue comments'";
  expect(await rowsOf(phase)).toEqual([
    { pages: expect.any(Number), expected_pages: expect.any(Number), resources: size },
  ]);

  await restartBackfill(world.ctx, [...world.simulator.world.repositories.keys()][0] ?? 0);
  world.simulator.meter.reset();
  await copy(() => {});
  expect(charged()).toBe(0);
});

test("comments that change or are deleted while a window of a long list is read hide none", async () => {
  const { world, rowsOf, copy } = await openUncopied(LONG_LIST);
  await using _ = world;
  const upstream = world.simulator.world;
  const there = upstream.comments;
  let reads = 0;
  await copy((path) => {
    const [first, ...others] = path.includes("/issues/comments?") ? there.values() : [];
    if (!first) return;
    reads += 1;
    const { ownerId } = first.issue.repository;
    deleteComment(upstream, ownerId, first);
    // The edited comment may be on any page. Its edit moves it to the end of the list.
    const moved = others[(reads * 97) % others.length];
    if (moved) editComment(upstream, ownerId, moved, `edited ${reads}`);
  });
  expect(reads).toBeGreaterThan(11);
  const stored = new Set((await rowsOf<{ id: string }>("select id from issue_comments")).map(({ id }) => Number(id)));
  expect([...there.keys()].filter((id) => !stored.has(id))).toEqual([]);
});

test("a copy that broke off in a window goes on there", async () => {
  const { world, rowsOf, copy } = await openUncopied(LONG_LIST);
  await using _ = world;
  const asked: string[] = [];
  const isComments = (path: string) => path.includes("/issues/comments?");
  const cut = copy((path) => {
    if (isComments(path)) asked.push(path);
    if (asked.length === 5) throw new Error("cut off");
  });
  await expect(cut).rejects.toThrow("cut off");
  const before = asked.splice(0);
  await copy((path) => void (isComments(path) && asked.push(path)));
  expect(asked[0]).toBe(before[4]);
  expect(asked.filter((path) => before.slice(1, 4).includes(path))).toEqual([]);
  const [stored] = await rowsOf<{ count: number }>("select count(*)::int as count from issue_comments");
  expect(stored?.count).toBe(world.simulator.world.comments.size);
});

test("a worker that knows no windows goes on where the window begins, and leaves no place that is believed later", async () => {
  const { world, rowsOf, copy } = await openUncopied(LONG_LIST);
  await using _ = world;
  const asked: string[] = [];
  const isComments = (path: string) => path.includes("/issues/comments?");
  const cutAt = (count: number) =>
    copy((path) => {
      if (isComments(path)) asked.push(path);
      if (asked.length === count) throw new Error("cut off");
    });
  await expect(cutAt(5)).rejects.toThrow("cut off");
  const phase = "from backfill_phases where phase = 'issue comments'";
  const [stored] = await rowsOf<{ cursor: string; window_place: string }>(`select cursor, window_place ${phase}`);
  expect(stored?.cursor).toContain(asked[0]);
  expect(JSON.parse(stored?.window_place ?? "")).toMatchObject({ page: 7 });

  // A copy that moves on to the next page stores its address alone.
  await world.ctx.db.query(sql`
    update backfill_phases set cursor = ${`${stored?.cursor}&page=2`} where phase = 'issue comments'`);
  asked.length = 0;
  await expect(cutAt(1)).rejects.toThrow("cut off");
  expect(asked.map((path) => new URLSearchParams(path).get("page"))).toEqual(["2"]);
});

test("a copy that broke off goes on behind the last page that it stored", async () => {
  const { world, copy } = await openUncopied({ issues: 150, pulls: 10, commentsPerIssue: 3 });
  await using _ = world;
  const asked: string[] = [];
  const isComments = (path: string) => path.includes("/issues/comments?");
  const cut = copy((path) => {
    asked.push(path);
    if (asked.filter(isComments).length === 3) throw new Error("cut off");
  });
  await expect(cut).rejects.toThrow("cut off");
  const before = asked.splice(0);
  await copy((path) => void asked.push(path));
  // The page that was cut off was not stored, but all before it were. A copy reads the repository itself each time.
  const pages = asked.filter((path) => path.includes("?"));
  expect(pages.filter((path) => before.includes(path))).toEqual([before.at(-1)]);
});

test("at its end Postgres knows the sizes of the tables that it filled, and is not asked again for little", async () => {
  const { world, rowsOf, copy } = await openUncopied({ issues: 150, pulls: 60, commentsPerIssue: 2 });
  await using _ = world;
  const tables = ["issues", "issue_comments", "pull_requests"];
  // Postgres' own analyze, where it comes first, would leave the copy nothing to do.
  for (const table of tables) await rowsOf(`alter table ${table} set (autovacuum_enabled = false)`);
  const looked = "select relname as name, analyze_count as times from pg_stat_user_tables where analyze_count > 0";
  expect(await rowsOf(looked)).toEqual([]);
  // Connections report what they changed within a second. A long copy has done so; this short one waits for it.
  await copy(async (path) => {
    if (!path.includes("/pulls/comments?")) return;
    for (const table of tables) await reported(rowsOf, table);
  });
  const times = new Map((await rowsOf<{ name: string; times: string }>(looked)).map((row) => [row.name, row.times]));
  expect([...times.keys()]).toEqual(expect.arrayContaining(tables));
  await analyzeCopied(world.ctx);
  const again = await rowsOf<{ name: string; times: string }>(`${looked} and relname = 'issues'`);
  expect(again).toEqual([{ name: "issues", times: times.get("issues") }]);
});

async function reported(rowsOf: (statement: string) => Promise<unknown[]>, table: string): Promise<void> {
  const counted = `select from pg_stat_user_tables where relname = '${table}' and n_mod_since_analyze > 50`;
  await expect.poll(() => rowsOf(counted), { timeout: 15_000 }).toHaveLength(1);
}
