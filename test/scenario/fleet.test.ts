import type { Job, Queue } from "bullmq";
import { expect, test } from "vitest";
import type { SettableClock } from "../../src/simulator/clock.ts";
import { generateWorld } from "../../src/simulator/generate.ts";
import { mutate } from "../../src/simulator/mutations.ts";
import type { Repository } from "../../src/simulator/records.ts";
import { openView } from "../../src/simulator/views/view.ts";
import { auditPart } from "../../src/sync/audit-schedule.ts";
import { backfill } from "../../src/sync/backfill.ts";
import { catchUp, scheduleCatchUps } from "../../src/sync/catch-up.ts";
import { refresh } from "../../src/sync/refresh.ts";
import { addSelections, resolveSelections } from "../../src/sync/selection.ts";
import { sweep } from "../../src/sync/sweep.ts";
import { QuotaSpentError } from "../../src/upstream/errors.ts";
import { compare } from "../support/comparison.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

const MINUTE = 60_000;
const signal = new AbortController().signal;
/** `TAIN_LARGE=1 npm test -- test/scenario/fleet` measures a thousand. */
const FLEET = process.env.TAIN_LARGE === "1" ? 1_000 : 24;

/** A mirror whose workers are the test, so that what waits for the quota waits by the simulated clock. */
interface Fleet {
  world: TestWorld;
  owner: string;
  repositories: Repository[];
  pass(ms: number): void;
  /** One simulated minute: time, a sweep, and all that it led to. */
  minute(): Promise<void>;
}

async function openFleet(): Promise<Fleet> {
  const world = await openWorld({
    workers: false,
    simulator: { worldOptions: { mergeableDelayMs: 0 } },
    fill: ({ world: upstream }) =>
      void generateWorld(upstream, { seed: 9, repositories: FLEET, issues: FLEET * 4, pulls: FLEET * 2 }),
  });
  const { ctx, simulator } = world;
  const repositories = [...simulator.world.repositories.values()].filter(({ fork }) => !fork);
  const pass = (ms: number) => {
    (simulator.world.clock as SettableClock).advance(ms);
    world.advance(ms);
  };
  const paced = async (work: () => Promise<unknown>): Promise<void> => {
    for (;;) {
      try {
        return void (await work());
      } catch (error) {
        if (!(error instanceof QuotaSpentError)) throw error;
        pass(Math.max(1_000, error.resetAt.getTime() - ctx.clock.now().getTime()));
      }
    }
  };
  const drain = async () => {
    for (;;) {
      const jobs: Job[] = [];
      const take = async <Data>(queue: Queue<Data>, run: (data: Data) => Promise<unknown>) => {
        for (const job of await queue.getWaiting()) {
          await job.remove();
          jobs.push(job);
          await paced(() => run(job.data as Data));
        }
      };
      await take(ctx.queues.catchUp, (data) => catchUp(ctx, data, signal));
      await take(ctx.queues.audit, (data) => auditPart(ctx, data, signal));
      await take(ctx.queues.refresh, (data) => refresh(ctx, data));
      if (jobs.length === 0) return;
    }
  };
  const minute = async () => {
    pass(MINUTE);
    try {
      await sweep(ctx);
    } catch (error) {
      if (!(error instanceof QuotaSpentError)) throw error; // It goes on in the next minute.
    }
    await drain();
  };

  await addSelections(
    ctx,
    repositories.map((one) => simulator.world.fullName(one)),
  );
  await paced(() => resolveSelections(ctx));
  for (const { id } of repositories) await paced(() => backfill(ctx, { repositoryId: id }, signal));
  // Two rounds: the first finds everything new, and what was read for that may move what is asked.
  for (let round = 0; round < 12; round++) await minute();
  return { world, owner: world.first.split("/")[0] as string, repositories, pass, minute };
}

test("a fleet that is idle for an hour costs a request for each sweep, and every kind of change is found within five minutes without a webhook", async () => {
  const { world, repositories, minute, pass } = await openFleet();
  await using _closed = world;
  const { ctx, simulator } = world;
  pass(60 * MINUTE); // A window of the quota of its own.
  for (let round = 0; round < 5; round++) await minute();

  simulator.meter.reset();
  for (let round = 0; round < 60; round++) {
    await minute();
    if (round % 5 === 4) await scheduleCatchUps(ctx);
  }
  const { requests, notModified, charged, points, primaryLimited, secondaryLimited, routes } = simulator.meter.read();
  console.log(
    JSON.stringify({
      repositories: repositories.length,
      requests,
      notModified,
      charged,
      points,
      primaryLimited,
      secondaryLimited,
    }),
  );
  expect(charged, JSON.stringify(routes)).toBeLessThanOrEqual(12);
  expect(points).toBeLessThanOrEqual(12);
  expect(primaryLimited + secondaryLimited).toBe(0);

  const view = openView({
    world: simulator.world,
    apiUrl: simulator.url,
    htmlUrl: simulator.htmlUrl,
    roleOf: () => "admin",
  });
  const change = (json: Record<string, unknown>) => mutate(simulator.world, view, json);
  const rows = <Row>(of: Iterable<Row>, repositoryOf: (row: Row) => Repository) =>
    Map.groupBy(of, (row) => repositoryOf(row).id);
  const undeleted = <Row extends { deleted: boolean }>(of: Iterable<Row>) => [...of].filter(({ deleted }) => !deleted);
  const comments = rows(undeleted(simulator.world.comments.values()), ({ issue }) => issue.repository);
  const onDiffs = rows(undeleted(simulator.world.reviewComments.values()), ({ issue }) => issue.repository);

  const anIssue = (one: Repository) => [...one.rows.issuesByCreated.ascending()][0] ?? { number: 0 };

  /** Each kind of change happens in a repository of its own, to the row that was quiet the longest. */
  const kinds: [string, (one: Repository, name: string) => Record<string, unknown> | null][] = [
    [
      "an issue edited",
      (one, repository) => ({ op: "editIssue", repository, number: anIssue(one).number, title: "changed" }),
    ],
    ["an issue opened", (_, repository) => ({ op: "createIssue", repository, title: "another" })],
    [
      "an issue deleted",
      (one, repository) => {
        const [issue] = [...one.rows.issuesByCreated.ascending()].filter(({ pull }) => !pull);
        return issue ? { op: "deleteIssue", repository, number: issue.number } : null;
      },
    ],
    [
      "a label renamed",
      (one, repository) => {
        const [label] = one.rows.labels.values();
        return label ? { op: "editLabel", repository, label: label.name, name: "other words" } : null;
      },
    ],
    [
      "a label recoloured",
      (one, repository) => {
        const [label] = one.rows.labels.values();
        return label ? { op: "editLabel", repository, label: label.name, color: "012345" } : null;
      },
    ],
    ["a label made", (_, repository) => ({ op: "createLabel", repository, name: "brand new" })],
    [
      "a label deleted",
      (one, repository) => {
        const [label] = one.rows.labels.values();
        return label ? { op: "deleteLabel", repository, label: label.name } : null;
      },
    ],
    ["a milestone made", (_, repository) => ({ op: "createMilestone", repository, title: "brand new" })],
    [
      "a milestone edited",
      (one, repository) => {
        const [milestone] = one.rows.milestones.values();
        return milestone
          ? { op: "editMilestone", repository, milestone: milestone.number, title: "other words" }
          : null;
      },
    ],
    [
      "a milestone deleted",
      (one, repository) => {
        const [milestone] = one.rows.milestones.values();
        return milestone ? { op: "deleteMilestone", repository, milestone: milestone.number } : null;
      },
    ],
    [
      "a comment made",
      (one, repository) => ({ op: "createComment", repository, number: anIssue(one).number, body: "said" }),
    ],
    [
      "a comment edited",
      (one, repository) => {
        const [comment] = comments.get(one.id) ?? [];
        return comment ? { op: "editComment", repository, comment: comment.id, body: "said otherwise" } : null;
      },
    ],
    [
      "a comment deleted",
      (one, repository) => {
        const [comment] = comments.get(one.id) ?? [];
        return comment ? { op: "deleteComment", repository, comment: comment.id } : null;
      },
    ],
    [
      "a review made",
      (one, repository) => {
        const pull = [...one.rows.issuesByCreated.ascending()].find((issue) => issue.pull && issue.state === "open");
        return pull ? { op: "createReview", repository, number: pull.number, state: "COMMENTED", body: "seen" } : null;
      },
    ],
    [
      "a comment on a diff edited",
      (one, repository) => {
        const [comment] = onDiffs.get(one.id) ?? [];
        return comment ? { op: "editReviewComment", repository, comment: comment.id, body: "said otherwise" } : null;
      },
    ],
    [
      "a comment on a diff deleted",
      (one, repository) => {
        const [comment] = onDiffs.get(one.id) ?? [];
        return comment ? { op: "deleteReviewComment", repository, comment: comment.id } : null;
      },
    ],
    ["a repository renamed", (_, repository) => ({ op: "renameRepository", repository, name: "renamed" })],
    ["a repository archived", (_, repository) => ({ op: "archiveRepository", repository })],
  ];
  // The first is the busiest by far, and what is archived cannot change. What can happen in few repositories has the first choice.
  const left = new Set(repositories.slice(1).filter(({ archived }) => !archived));
  const candidates = ([, of]: (typeof kinds)[number]) =>
    [...left].filter((one) => of(one, simulator.world.fullName(one)) !== null);
  const happened: { kind: string; one: Repository }[] = [];
  for (const kind of kinds.toSorted((a, b) => candidates(a).length - candidates(b).length)) {
    const [one] = candidates(kind);
    if (!one) throw new Error(`No repository is left for ${kind[0]}`);
    left.delete(one);
    change(kind[1](one, simulator.world.fullName(one)) as Record<string, unknown>);
    happened.push({ kind: kind[0], one });
  }
  for (let round = 0; round < 5; round++) await minute();
  const differences: Record<string, string[]> = {};
  for (const { kind, one } of happened) {
    const found = await compare(ctx, simulator, String(one.id));
    if (found.differences.length > 0) differences[kind] = found.differences.slice(0, 3);
  }
  expect(differences).toEqual({});
}, 1_200_000);
