import { generateKeyPairSync } from "node:crypto";
import type { Job, Queue } from "bullmq";
import { expect, test } from "vitest";
import { mutate } from "../../src/simulator/control/mutations.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { openView } from "../../src/simulator/views/view.ts";
import type { Repository } from "../../src/simulator/world/records.ts";
import { AUDIT_TICK_MS, auditPart, scheduleAudits } from "../../src/sync/audit/schedule.ts";
import { backfill } from "../../src/sync/backfill/backfill.ts";
import { catchUp, scheduleCatchUps } from "../../src/sync/catch-up/catch-up.ts";
import { sweep } from "../../src/sync/catch-up/sweep.ts";
import { addSelections, resolveSelections } from "../../src/sync/following/selection.ts";
import { checkDeliveries } from "../../src/sync/hook-deliveries/missed.ts";
import { Refreshes } from "../../src/sync/refresh/refresh.ts";
import { QuotaSpentError } from "../../src/upstream/protocol/errors.ts";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { compare } from "../support/comparison.ts";
import { printFigures } from "../support/figures.ts";
import { paced, pass } from "../support/paced.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

const MINUTE = 60_000;
const signal = new AbortController().signal;
/** `TAIN_LARGE=1 npm test -- test/scenario/fleet` measures a thousand repositories. */
const isLarge = process.env.TAIN_LARGE === "1";
const FLEET = isLarge ? 1_000 : 24;
const LONGEST_MS = isLarge ? 3_600_000 : LONG_TEST_MS;
/** How long nothing happens. Each sweep in this time may cost a request, a query or a point. */
const IDLE_MINUTES = isLarge ? 60 : 15;
const SWEEPS = IDLE_MINUTES / 5;

const pair = generateKeyPairSync("rsa", { modulusLength: 2048 });
const APP_PRIVATE_KEY = String(pair.privateKey.export({ type: "pkcs1", format: "pem" }));

/** A mirror whose jobs the test itself does. So work that waits for quota waits by the simulated clock. */
interface Fleet {
  world: TestWorld;
  repositories: Repository[];
  pass(ms: number): void;
  /**
   * Moves on to the next whole simulated minute. Then it does what the scheduler asks for in that minute, and all that
   * follows.
   */
  minute(): Promise<void>;
}

async function openFleet({ as, largeFleet }: { as: "token" | "App"; largeFleet?: number | undefined }): Promise<Fleet> {
  const world = await openWorld({
    workers: false,
    env: as === "App" ? { UPSTREAM_TOKEN: "", APP_ID: "4711", APP_PRIVATE_KEY } : {},
    fill: ({ world: upstream, apps }) => {
      // With the token, each kind of change needs a repository of its own.
      const size = as === "App" && !isLarge ? FLEET / 2 : FLEET;
      const filled = generateWorld(upstream, { seed: 9, repositories: size, issues: size * 4, pulls: size * 2 });
      const account = upstream.user(filled.repositories[0]?.ownerId ?? 0).login;
      const keys = [String(pair.publicKey.export({ type: "spki", format: "pem" }))];
      apps.create({ id: 4711, slug: "mirror", events: ["issues", "label"], installations: [{ account }], keys });
    },
  });
  const { ctx, simulator } = world;
  const app = simulator.apps.byIssuer(4711);
  if (app && as === "App")
    simulator.apps.edit(app, { webhook: { url: `${world.url}/webhooks`, secret: "test-webhook-secret" } });
  const repositories = [...simulator.world.repositories.values()].filter(({ fork }) => !fork);
  const refreshes = new Refreshes(ctx);
  const drain = async () => {
    for (;;) {
      const jobs: Job[] = [];
      const take = async <Data>(queue: Queue<Data>, run: (data: Data) => Promise<unknown>) => {
        for (const job of await queue.getWaiting()) {
          await job.remove();
          jobs.push(job);
          await paced(world, () => run(job.data as Data));
        }
      };
      await take(ctx.queues.catchUp, (data) => catchUp(ctx, data, signal));
      await take(ctx.queues.audit, (data) => auditPart(ctx, data, signal));
      await take(ctx.queues.refresh, (data) => refreshes.refresh(data));
      if (jobs.length === 0) return;
    }
  };
  // Work that the pace holds up goes on as soon as it may, as a worker's job does. Work that is left at the end of the
  // minute goes on in the next.
  const sweepOn = async () => {
    const end = ctx.clock.now().getTime() + MINUTE;
    for (;;) {
      try {
        return await sweep(ctx, largeFleet === undefined ? {} : { largeFleet });
      } catch (error) {
        if (!(error instanceof QuotaSpentError) || error.resetAt.getTime() >= end) throw error;
        pass(world, Math.max(1, error.resetAt.getTime() - ctx.clock.now().getTime()));
      }
    }
  };
  const tasks: [everyMs: number, task: () => Promise<unknown>][] = [
    [MINUTE, () => resolveSelections(ctx)],
    [ctx.config.sweepIntervalMs / 4, sweepOn],
    [ctx.config.catchUpIntervalMs, () => scheduleCatchUps(ctx)],
    [ctx.config.deliveryCheckIntervalMs, () => checkDeliveries(ctx)],
    [AUDIT_TICK_MS, () => scheduleAudits(ctx)],
  ];
  let minutes = 0;
  const minute = async () => {
    const now = ctx.clock.now().getTime();
    pass(world, MINUTE - (now % MINUTE));
    minutes += 1;
    for (const [everyMs, task] of tasks) {
      if ((minutes * MINUTE) % everyMs !== 0) continue;
      try {
        await task();
      } catch (error) {
        if (!(error instanceof QuotaSpentError)) throw error; // The work goes on in the next minute.
      }
    }
    await drain();
  };

  if (as === "token") {
    await addSelections(
      ctx,
      repositories.map((one) => simulator.world.fullName(one)),
    );
  }
  await paced(world, () => resolveSelections(ctx));
  const waiting = [...repositories];
  const copy = async () => {
    for (let one = waiting.pop(); one; one = waiting.pop()) {
      const { id } = one;
      await paced(world, () => backfill(ctx, { repositoryId: id }, signal));
    }
  };
  await Promise.all([copy(), copy(), copy(), copy()]);
  // Two rounds. The first finds everything new, and what it reads may change what the next one asks for.
  for (let round = 0; round < 12; round++) await minute();
  pass(world, 60 * MINUTE); // The test gets a quota window of its own.
  for (let round = 0; round < 6; round++) await minute();
  return { world, repositories, pass: (ms) => pass(world, ms), minute };
}

/** What the time in which nothing happens costs, by upstream's meter. */
async function idleTime({ world, repositories, minute }: Fleet, as: "token" | "App") {
  const { meter } = world.simulator;
  meter.reset();
  for (let round = 0; round < IDLE_MINUTES; round++) await minute();
  const { callers, requests, notModified, points, primaryLimited, secondaryLimited, errors, routes } = meter.read();
  const charged = (bucket: string) =>
    Object.entries(callers)
      .filter(([caller]) => !caller.startsWith("app:"))
      .reduce((sum, [, buckets]) => sum + (buckets[bucket]?.charged ?? 0), 0);
  const cost = {
    ...{ repositories: repositories.length, requests, notModified, rest: charged("core"), queries: charged("graphql") },
    ...{ points, asTheApp: callers["app:4711"]?.core?.requests ?? 0, errors, primaryLimited, secondaryLimited },
  };
  printFigures("idle hour", { as, asked: cost.rest + cost.queries, ...cost });
  const dear = Object.entries(routes).filter(([, tally]) => tally.charged > 0);
  return { ...cost, why: JSON.stringify(Object.fromEntries(dear)) };
}

test(
  "with a GitHub App's installation idle time costs a request for each sweep",
  async () => {
    const fleet = await openFleet({ as: "App" });
    await using _closed = fleet.world;
    const cost = await idleTime(fleet, "App");
    expect(cost.rest + cost.queries, cost.why).toBeLessThanOrEqual(SWEEPS);
    expect(cost.points).toBeLessThanOrEqual(SWEEPS);
    expect(cost.queries).toBeGreaterThan(0);
    expect(cost.errors + cost.primaryLimited + cost.secondaryLimited).toBe(0);
  },
  LONGEST_MS,
);

test.each([
  ...(isLarge ? [] : [{ milestones: "by REST", largeFleet: undefined, points: SWEEPS }]),
  { milestones: "by GraphQL", largeFleet: isLarge ? undefined : FLEET / 2, points: isLarge ? 100 : SWEEPS },
])(
  "with a token alone, milestones $milestones, idle time costs $points points at most, and every kind of change is found within five minutes without a webhook",
  async ({ largeFleet, points }) => {
    const fleet = await openFleet({ as: "token", largeFleet });
    const { world, repositories, minute } = fleet;
    await using _closed = world;
    const { ctx, simulator } = world;
    const cost = await idleTime(fleet, "token");
    expect(cost.rest, cost.why).toBeLessThanOrEqual(SWEEPS);
    expect(cost.points).toBeLessThanOrEqual(points);
    expect(cost.errors + cost.primaryLimited + cost.secondaryLimited).toBe(0);

    const view = openView({
      world: simulator.world,
      apiUrl: simulator.url,
      htmlUrl: simulator.htmlUrl,
      roleOf: () => "admin",
    });
    const change = (json: Record<string, unknown>) => mutate(simulator.world, view, json);
    const rows = <Row>(of: Iterable<Row>, repositoryOf: (row: Row) => Repository) =>
      Map.groupBy(of, (row) => repositoryOf(row).id);
    const undeleted = <Row extends { deleted: boolean }>(of: Iterable<Row>) =>
      [...of].filter(({ deleted }) => !deleted);
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
          return pull
            ? { op: "createReview", repository, number: pull.number, state: "COMMENTED", body: "seen" }
            : null;
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
    // The first repository is the busiest by far, and archived ones cannot change. The kinds of change that fit the
    // fewest repositories choose first.
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
  },
  LONGEST_MS,
);
