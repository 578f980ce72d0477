import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { type Context, openContext } from "../../src/context.ts";
import { generateWorld } from "../../src/simulator/generate.ts";
import { audit } from "../../src/sync/audit/audit.ts";
import { driftCount } from "../../src/sync/audit/report.ts";
import { backfill } from "../../src/sync/backfill/backfill.ts";
import { addSelections, resolveSelections } from "../../src/sync/following/selection.ts";
import { InterruptedError } from "../../src/sync/following/while-mirrored.ts";
import { GraphqlTooHeavyError } from "../../src/upstream/client/errors.ts";
import type { Upstream } from "../../src/upstream/client/upstream.ts";
import { compare } from "../support/comparison.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

const PULLS = 300;

/** A page of pull requests that was asked for: of what size, and for how many points; "too heavy" if it was refused so. */
type AskedPage = [size: number, cost: number | null | "too heavy"];

/** A mirror that knows of a repository of three hundred pull requests, and has copied nothing of it. */
async function openUncopied({ chargeCounts }: { chargeCounts: boolean }) {
  const world = await openWorld({
    simulator: { quota: { chargeCounts }, worldOptions: { mergeableDelayMs: 0 } },
    fill: ({ world: upstream }) => {
      const none = { issues: 0, commentsPerIssue: 0, reviewsPerPull: 0 };
      generateWorld(upstream, { seed: 3, repositories: 1, pulls: PULLS, people: 5, ...none });
    },
    workers: false,
  });
  await addSelections(world.ctx, [world.first]);
  await resolveSelections(world.ctx);
  const [repository] = await rowsOf<{ id: string }>(world, "select repository_id as id from repository_syncs");
  return { world, repositoryId: Number(repository?.id) };
}

async function rowsOf<Row>({ ctx }: TestWorld, statement: string): Promise<Row[]> {
  return await ctx.db.query<Row>(sql.script(statement));
}

/** The same context, whose pages of pull requests are told to `hear` as upstream answers them. */
function overheard(ctx: Context, hear: (page: AskedPage) => void): Context {
  const { upstream } = ctx;
  const graphql: Upstream["graphql"] = async (document, variables, options) => {
    const { first } = variables as { first?: number };
    try {
      const answer = await upstream.graphql<never>(document, variables, options);
      if (first !== undefined) hear([first, answer.cost]);
      return answer;
    } catch (error) {
      if (first !== undefined && error instanceof GraphqlTooHeavyError) hear([first, "too heavy"]);
      throw error;
    }
  };
  const listening = new Proxy(upstream, {
    get(_, name: keyof Upstream) {
      return name === "graphql" ? graphql : upstream[name].bind(upstream);
    },
  });
  return { ...ctx, upstream: listening };
}

/** Runs it in a context of its own, as another process would; stops it after the first page of pull requests if asked to. */
async function pagesOf(
  world: TestWorld,
  run: (ctx: Context, signal: AbortSignal) => Promise<unknown>,
  { stops }: { stops: boolean },
): Promise<AskedPage[]> {
  await using resources = new AsyncDisposableStack();
  const ctx = await openContext(world.ctx.config, resources, { name: "another", clock: world.ctx.clock });
  const asked: AskedPage[] = [];
  const stopping = new AbortController();
  const listening = overheard(ctx, (page) => {
    asked.push(page);
    if (stops) stopping.abort();
  });
  if (stops) await expect(run(listening, stopping.signal)).rejects.toThrow(InterruptedError);
  else await run(listening, stopping.signal);
  return asked;
}

test.each<{ reading: string; chargeCounts: boolean; stored: "now" | "earlier"; pages: AskedPage[]; expected: number }>([
  {
    reading: "nothing for counts of commits",
    chargeCounts: false,
    stored: "now",
    pages: [
      [100, 1],
      [100, 1],
      [100, 1],
    ],
    expected: 3,
  },
  {
    reading: "for counts of commits",
    chargeCounts: true,
    stored: "now",
    pages: [
      [100, 2],
      [74, 1],
      [74, 1],
      [74, 1],
    ],
    expected: 4,
  },
  {
    reading: "for counts of commits, and an earlier version read the first page,",
    chargeCounts: true,
    stored: "earlier",
    pages: [
      [100, 2],
      [100, 2],
      [74, 1],
      [74, 1],
    ],
    expected: 4,
  },
])(
  "where upstream charges $reading pages are as large as a point buys, also after a restart between two",
  async ({ chargeCounts, stored, pages, expected }) => {
    const { world, repositoryId } = await openUncopied({ chargeCounts });
    await using _ = world;
    const copy = (ctx: Context, signal: AbortSignal) => backfill(ctx, { repositoryId }, signal);
    const copied = await pagesOf(world, copy, { stops: true });
    // What earlier versions stored says otherwise, or not at all, how large a page is.
    if (stored === "earlier")
      await rowsOf(
        world,
        `update backfill_phases set cursor = (cursor::jsonb - 'pageSize' || '{"withCommits": true}')::text where phase = 'reviews'`,
      );
    copied.push(...(await pagesOf(world, copy, { stops: false })));
    expect(copied).toEqual(pages);
    expect(
      await rowsOf(world, "select pages, resources, expected_pages from backfill_phases where phase = 'reviews'"),
    ).toEqual([{ pages: pages.length, resources: PULLS, expected_pages: expected }]);
    expect((await compare(world.ctx, world.simulator, world.first)).differences).toEqual([]);

    // Otherwise what the copy has just read counts as no older than what the audit reads.
    world.advance(60_000);
    const check = async (ctx: Context, signal: AbortSignal) => {
      const report = await audit(ctx, { repositoryId, repair: false, signal });
      expect(report && driftCount(report)).toBe(0);
    };
    const audited = await pagesOf(world, check, { stops: true });
    if (stored === "earlier") await rowsOf(world, "update audits set cursor = cursor::jsonb ->> 'after'");
    audited.push(...(await pagesOf(world, check, { stops: false })));
    expect(audited).toEqual(pages);
  },
);

test("a page that is too heavy is halved, and the one after it is asked for whole again", async () => {
  const { world, repositoryId } = await openUncopied({ chargeCounts: true });
  await using _ = world;
  world.simulator.setFaults({ graphql: { timeoutAtWork: 70 } });
  const copy = (ctx: Context, signal: AbortSignal) => backfill(ctx, { repositoryId }, signal);
  const asked = await pagesOf(world, copy, { stops: false });
  const halved: AskedPage[] = [
    [100, "too heavy"],
    [50, 1],
  ];
  // Half a page is cheap, so it does not show that a whole page is dear. The last fifty come as a whole page, which
  // does.
  expect(asked).toEqual([...Array.from({ length: 5 }, () => halved).flat(), [100, 2]]);
  expect((await compare(world.ctx, world.simulator, world.first)).differences).toEqual([]);
});
