/** Single rows that upstream shows otherwise than its schema says, or not at all: they concern no other row. */
import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { addWorkflowRun, workflowOf } from "../../src/simulator/changes/actions.ts";
import { deleteComment } from "../../src/simulator/changes/comments.ts";
import { editIssue } from "../../src/simulator/changes/issues.ts";
import { editLabel } from "../../src/simulator/changes/labels.ts";
import { becomeOrganization } from "../../src/simulator/changes/users.ts";
import type { Simulator } from "../../src/simulator/control/running.ts";
import type { FaultSettings } from "../../src/simulator/faults/faults.ts";
import type { RowFault } from "../../src/simulator/faults/row-faults.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { addCode } from "../../src/simulator/generate/generate-code.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import type { PullIssue } from "../../src/simulator/world/records.ts";
import { isPull } from "../../src/simulator/world/world.ts";
import { auditPart } from "../../src/sync/audit/schedule.ts";
import { sweep } from "../../src/sync/catch-up/sweep.ts";
import { compare } from "../support/comparison.ts";
import { OWNER, UPSTREAM_TOKEN } from "../support/config.ts";
import { markChecksDue, markRefsDue, markResourceListsDue } from "../support/due.ts";
import { pass } from "../support/paced.ts";
import { passRound } from "../support/rounds.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

const PULLS = 12;

const pullsOf = ({ world }: Pick<Simulator, "world">) =>
  [...world.issues.values()].filter(isPull).sort((a, b) => a.number - b.number);

/** A copy of pull requests that have a review each, named after the pull request. */
async function openCopied(
  rowsOf: (pulls: readonly PullIssue[]) => readonly RowFault[],
  prepare: (simulator: Simulator, pulls: readonly PullIssue[]) => void = () => {},
  faults: FaultSettings = {},
): Promise<TestWorld> {
  const world = await openWorld({
    fill: (simulator) => {
      const { world: upstream } = simulator;
      generateWorld(upstream, { seed: 4, repositories: 1, issues: 2, pulls: PULLS, reviewsPerPull: 0, people: 5 });
      const pulls = pullsOf(simulator);
      for (const issue of pulls) {
        const at = issue.createdAt + 60;
        const body = `review of ${issue.number}`;
        upstream.addReview({
          issue,
          authorId: issue.authorId,
          state: "APPROVED",
          body,
          createdAt: at,
          submittedAt: at,
        });
      }
      prepare(simulator, pulls);
      simulator.setFaults({ rows: rowsOf(pulls), ...faults });
    },
  });
  await world.mirror(world.first);
  // Upstream has worked out by then what can be merged.
  (world.simulator.world.clock as SettableClock).advance(60_000);
  world.advance(60_000);
  await world.settleMarks();
  await world.catchUp();
  return world;
}

const differences = async (world: TestWorld) => (await compare(world.ctx, world.simulator, world.first)).differences;

const SOMETHING = "Something went wrong while executing your query";

/** Each odd in its own way, in GraphQL alone. */
function oddInGraphql(pulls: readonly PullIssue[]): RowFault[] {
  const numbers = [0, 2, 3, 5, 6, 8, PULLS - 1].map((place) => pulls[place]?.number);
  const [first, nullReview, nullField, faultyReview, lesser, faulty, last] = numbers;
  const faults: Omit<RowFault, "match">[] = [
    { where: { number: first }, kind: "null" },
    { where: { body: `review of ${nullReview}` }, kind: "null" },
    { where: { body: `review of ${nullField}` }, kind: "with", fields: { updatedAt: null } },
    { where: { body: `review of ${faultyReview}` }, kind: "null", error: SOMETHING },
    { where: { number: lesser }, kind: "with", fields: { additions: null } },
    { where: { number: faulty }, kind: "null", error: SOMETHING },
    { where: { number: last }, kind: "null" },
  ];
  return faults.map((fault) => ({ ...fault, match: "POST /graphql" }));
}
/** How many they are. */
const ODD = 7;

test("where GraphQL shows single rows as null, in part or with an error, REST reads those alone", async () => {
  await using world = await openCopied(oddInGraphql);
  const lists = world.simulator.meter.read().routes["GET /repos/:owner/:repo/pulls/:number/reviews"]?.requests ?? 0;
  // The copy reads them, and so does the catch-up, which reads again whatever changed within its overlap.
  expect(lists).toBeGreaterThanOrEqual(ODD);
  expect(lists).toBeLessThanOrEqual(2 * ODD);
  world.simulator.setFaults({});
  expect(await differences(world)).toEqual([]);
});

/** Faults of all of GraphQL's answers about pull requests. */
const AMISS: Record<string, FaultSettings> = {
  "a page that does not say whether it is the last": {
    rows: [{ match: "/graphql", where: { hasNextPage: false }, kind: "with", fields: { hasNextPage: null } }],
  },
  "a page that names no place behind it": {
    rows: [
      {
        match: "/graphql",
        where: { hasNextPage: false },
        kind: "with",
        fields: { hasNextPage: true, endCursor: null },
      },
    ],
  },
};

test.each(Object.entries(AMISS))("where GraphQL answers with %s, REST reads the details", async (_name, faults) => {
  await using world = await openCopied(
    () => [],
    () => {},
    faults,
  );
  expect(await world.ctx.db.query(sql`select key from problems where task = 'part'`)).toEqual([]);
  world.simulator.setFaults({});
  expect(await differences(world)).toEqual([]);
});

test("a review whose id no key can be is named, and all others are stored", async () => {
  const huge = "9007199254740993";
  await using world = await openCopied(([pull]) => {
    const where = { body: `review of ${pull?.number}` };
    return [
      { match: "POST /graphql", where, kind: "with", fields: { fullDatabaseId: huge } },
      { match: "^GET", where, kind: "with", digits: { id: huge } },
    ];
  });
  const reviews = await world.ctx.db.query(sql`select count(*)::int as count from pull_request_reviews`);
  expect(reviews).toEqual([{ count: PULLS - 1 }]);
  const named = await world.ctx.db.query(sql`select task, substring(key from 'rows of \\w+') as rows from problems`);
  expect(named).toEqual([{ task: "refresh", rows: "rows of review" }]);
});

test("a pull request shown as null is found where an import gave an older one a later number", async () => {
  const firstNull = (pulls: readonly PullIssue[]): RowFault[] => [
    { match: "POST /graphql", where: { number: pulls[0]?.number }, kind: "null" },
  ];
  await using world = await openCopied(firstNull, ({ world: upstream }, [first]) => {
    if (!first) throw new Error("There is no pull request");
    const { repository, authorId } = first;
    const { head, base } = first.pull;
    const createdAt = first.createdAt - 86_400;
    upstream.addIssue({
      repository,
      authorId,
      title: "imported",
      createdAt,
      updatedAt: createdAt,
      pull: { head, base },
    });
  });
  world.simulator.setFaults({});
  expect(await differences(world)).toEqual([]);
});

test("an organisation that opened, merged and reviewed is shown as who did it", async () => {
  await using world = await openCopied(
    () => [],
    ({ world: upstream }, pulls) => {
      const merged = pulls.find(({ pull }) => pull.mergedAt !== null);
      if (!merged || merged.authorId === null) throw new Error("No pull request was merged");
      // The account of a person may become an organisation.
      becomeOrganization(upstream, upstream.user(merged.authorId));
      merged.pull.mergedById = merged.authorId;
    },
  );
  expect(await differences(world)).toEqual([]);
});

const YEAR_ZERO = "0000-12-31T16:00:00Z";
const NO_DAY = "2025-02-30T08:00:00Z";

test("dates that Postgres does not know stop no copy, no sweep and no catch-up", async () => {
  await using world = await openWorld({
    fill: (simulator) => {
      const { world: upstream } = simulator;
      generateWorld(upstream, { seed: 4, repositories: 1, issues: 6, pulls: 4, people: 5 });
      const [repository] = upstream.repositories.values();
      const numbers = [...upstream.issues.values()].map(({ number }) => number);
      const comments = [...upstream.comments.values()].map(({ id }) => id);
      const dated = (match: string, where: Record<string, unknown>, fields: Record<string, string>) =>
        ({ match, where, fields, kind: "with" }) as const;
      simulator.setFaults({
        rows: [
          ...numbers.map((number) => dated("^GET", { number }, { created_at: YEAR_ZERO, updated_at: NO_DAY })),
          ...numbers.map((number) => dated("/graphql", { number }, { updatedAt: YEAR_ZERO })),
          ...comments.map((id) => dated("^GET", { id }, { created_at: YEAR_ZERO, updated_at: YEAR_ZERO })),
          dated("/graphql", { databaseId: repository?.id }, { updatedAt: YEAR_ZERO, pushedAt: NO_DAY }),
        ],
      });
    },
  });
  await world.mirror(world.first);
  for (let times = 0; times < 3; times++) {
    world.advance(world.ctx.config.sweepIntervalMs);
    await sweep(world.ctx);
    await world.settle();
  }
  await world.catchUp();
  expect(await world.ctx.db.query(sql`select task, problem from problems`)).toEqual([]);
  const { body } = await world.get(`/repos/${world.first}/issues?state=all&per_page=100`);
  expect(body).toHaveLength(10);
  expect((body as { created_at: string }[]).every(({ created_at }) => created_at === YEAR_ZERO)).toBe(true);
});

test("rows without a time are stored as they are, and hide no later change", async () => {
  let changed = () => {};
  await using world = await openWorld({
    fill: (simulator) => {
      const { world: upstream } = simulator;
      generateWorld(upstream, { seed: 4, repositories: 1, issues: 6, pulls: 4, people: 5 });
      const [issue, other] = [...upstream.issues.values()].filter((one) => !isPull(one));
      const [pull] = pullsOf(simulator);
      const [comment] = upstream.comments.values();
      if (!issue || !other || !pull || !comment) throw new Error("The world is too small");
      const fields = { created_at: null, updated_at: null };
      const timeless = (where: Record<string, unknown>) => ({ match: "^GET", where, fields, kind: "with" }) as const;
      simulator.setFaults({
        rows: [
          timeless({ number: issue.number }),
          timeless({ number: pull.number }),
          timeless({ id: comment.id }),
          { match: "/graphql", where: { number: issue.number }, fields: { updatedAt: null }, kind: "with" },
        ],
      });
      changed = () => editIssue(upstream, other.authorId ?? 0, other, { title: "changed" });
    },
  });
  await world.mirror(world.first);
  const { body } = await world.get(`/repos/${world.first}/issues?state=all&per_page=100`);
  const rows = body as { updated_at: string | null; title: string }[];
  expect([rows.length, rows.filter(({ updated_at }) => updated_at === null).length]).toEqual([10, 2]);
  changed();
  for (let times = 0; times < 2; times++) {
    pass(world, world.ctx.config.sweepIntervalMs * 2);
    await sweep(world.ctx);
    await world.settle();
  }
  expect(await world.ctx.db.query(sql`select task, problem from problems`)).toEqual([]);
  expect(await world.ctx.db.count(sql`select from issues where title = 'changed'`)).toBe(1);
});

test("an issue or pull request without an id is named, and not silently left out", async () => {
  await using world = await openWorld({
    fill: (simulator) => {
      generateWorld(simulator.world, { seed: 4, repositories: 1, issues: 2, pulls: 3, people: 5 });
      const where = { number: pullsOf(simulator)[1]?.number };
      simulator.setFaults({ rows: [{ match: "^GET", where, kind: "without", keys: ["id"] }] });
    },
  });
  await world.mirror(world.first);
  await world.settle();
  const named = await world.ctx.db.query<{ problem: string }>(sql`select problem from problems where task = 'refresh'`);
  expect(named.map(({ problem }) => problem).toSorted()).toEqual([
    "This issue came without id",
    "This pull_request came without id",
  ]);
});

test("a repository that does not say whether it is private is shown to nobody who may not see private ones", async () => {
  await using world = await openCopied(
    () => [],
    () => {},
    { rows: [{ match: "^GET", where: { fork: false }, kind: "with", fields: { private: null } }] },
  );
  const anonymous = await fetch(`${world.url}/repos/${world.first}`, { headers: { "user-agent": "test" } });
  expect([anonymous.status, (await world.get(`/repos/${world.first}`)).status]).toEqual([404, 200]);
});

test("a row that shows a later time than its place in the list tells hides none that stand behind it", async () => {
  let count = 0;
  await using world = await openWorld({
    fill: (simulator) => {
      const { world: upstream } = simulator;
      generateWorld(upstream, { seed: 8, repositories: 1, issues: 60, pulls: 0, people: 5, commentsPerIssue: 8 });
      const comments = [...upstream.comments.values()].toSorted((a, b) => a.updatedAt - b.updatedAt);
      const [first, last] = [comments[0], comments.at(-1)];
      if (!first || !last || comments.length <= 200) throw new Error(`There are ${comments.length} comments`);
      count = comments.length;
      const updated_at = new Date(last.updatedAt * 1_000).toISOString().replace(".000Z", "Z");
      const match = "^GET [^?]*/issues/comments\\?";
      simulator.setFaults({ rows: [{ match, where: { id: first.id }, kind: "with", fields: { updated_at } }] });
    },
  });
  await world.mirror(world.first);
  expect(await world.ctx.db.count(sql`select from issue_comments`)).toBe(count);
});

test("an audit compares and repairs all rows but those that cannot be read, and takes none of these for deleted", async () => {
  await using world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 5, repositories: 1, issues: 12, pulls: 2 }),
  });
  await world.mirror(world.first);
  await world.settleMarks();
  pass(world, 60_000);
  const { world: upstream } = world.simulator;
  const [repository] = upstream.repositories.values();
  if (!repository) throw new Error("There is no repository");
  const [oddLabel, renamed] = repository.rows.labels.values();
  const [oddComment, deleted] = upstream.comments.values();
  const [oddIssue, hugeIssue] = upstream.issues.values();
  const [oddMilestone] = repository.rows.milestones.values();
  if (!oddLabel || !renamed || !oddComment || !deleted || !oddIssue || !hugeIssue || !oddMilestone)
    throw new Error("The world is too small");
  world.simulator.setFaults({
    rows: [
      { match: "/labels\\?", where: { name: oddLabel.name }, kind: "null" },
      { match: "/milestones\\?", where: { title: oddMilestone.title }, kind: "null" },
      { match: "/issues/comments\\?", where: { id: oddComment.id }, kind: "null" },
      { match: "/issues\\?", where: { number: oddIssue.number }, kind: "without", keys: ["title"] },
      { match: "/issues\\?", where: { id: hugeIssue.id }, kind: "with", fields: { number: 3_000_000_000 } },
    ],
  });
  deleteComment(upstream, repository.ownerId, deleted);
  editLabel(upstream, repository.ownerId, renamed, { name: "another name" });

  await auditPart(world.ctx, { repositoryId: repository.id }, new AbortController().signal);
  const found = await world.ctx.db.query(sql`
    select finished_at is not null as finished, d->>'kind' as kind, d->>'drift' as drift
      from audits, json_array_elements(report::json->'drift') d`);
  expect(found).toEqual([
    { finished: true, kind: "label", drift: "differs" },
    { finished: true, kind: "issue", drift: "differs" },
    { finished: true, kind: "issue_comment", drift: "gone" },
  ]);
  await world.settleMarks();
  const named = () =>
    world.ctx.db.query<{ key: string; cause: string }>(sql`
    select substring(key from 'rows of (\\w+)') as key, cause from problems order by 1`);
  const cause = "unavailable";
  const kinds = ["issue", "issue_comment", "label", "milestone"];
  expect(await named()).toEqual(kinds.map((key) => ({ key, cause })));
  world.simulator.setFaults({});
  expect(await differences(world)).toEqual([]);
  pass(world, 60_000);
  await auditPart(world.ctx, { repositoryId: repository.id }, new AbortController().signal);
  expect(await named()).toEqual([]);
});

/** How many rows a copy has of each part that hangs on commits, all of its rounds done. */
async function copiedParts(rows: readonly RowFault[]) {
  await using world = await openWorld({
    env: { MIRROR: "checks,refs" },
    fill: (simulator) => {
      generateWorld(simulator.world, { seed: 7, repositories: 1, issues: 3, pulls: 6 });
      for (const one of simulator.world.repositories.values())
        addCode(simulator.world, one, {}, 7, simulator.world.now());
      simulator.setFaults({ rows });
    },
  });
  await world.mirror(world.first);
  for (const markDue of [markRefsDue, markChecksDue]) await passRound(world, 3_600_000, markDue);
  expect(await world.ctx.db.query(sql`select key, problem from problems`)).toEqual([]);
  const [counts] = await world.ctx.db.query<Record<string, number>>(sql`
    select (select count(*)::int from refs where kind = 'heads') as heads,
      (select count(*)::int from refs where kind = 'tags') as tags, (select count(*)::int from check_runs) as runs,
      (select count(*)::int from check_suites) as suites, (select count(*)::int from commit_statuses) as statuses`);
  return counts ?? {};
}

test("a branch, check run or status that upstream's lists show as null concerns no other", async () => {
  const { heads = 0, tags = 0, runs = 0, suites = 0, statuses = 0 } = await copiedParts([]);
  for (const count of [heads, tags, runs, suites, statuses]) expect(count).toBeGreaterThan(0);
  const odd = await copiedParts([
    { match: "/branches\\?", where: { name: "main" }, kind: "null" },
    { match: "/check-runs\\?", where: { status: "completed" }, kind: "null" },
    { match: "/statuses\\?", where: { state: "success" }, kind: "null" },
  ]);
  expect(odd).toEqual({ heads, tags, runs: expect.any(Number), suites, statuses: expect.any(Number) });
  expect(odd.runs).toBeLessThan(runs);
  expect(odd.statuses).toBeLessThan(statuses);
});

/** The lists of parts, with the key under which each has its rows beside a count, and the table of these. */
const PART_LISTS = [
  { path: "/releases", key: null, table: sql`releases` },
  { path: "/deployments", key: null, table: sql`deployments` },
  { path: "/issues/events", key: null, table: sql`issue_events` },
  { path: "/actions/workflows", key: "workflows", table: sql`workflows` },
  { path: "/actions/runs", key: "workflow_runs", table: sql`workflow_runs` },
];
const NO_TIMES = [null, "", YEAR_ZERO, NO_DAY, "2041-05-05T05:05:05Z", 1_700_000_000, "+012345-01-01T00:00:00Z"];

test("rows of parts whose times no column holds are stored as they are, and their lists are read again", async () => {
  const counts = new Map<string, number>();
  await using world = await openWorld({
    env: { MIRROR: "actions,deployments,releases,issue-events" },
    fill: async (simulator) => {
      generateWorld(simulator.world, { seed: 7, repositories: 1, issues: 6, pulls: 4, issueEvents: true });
      const [repository] = simulator.world.repositories.values();
      if (!repository) throw new Error("There is no repository");
      const sizes = { releases: 9, deployments: 9, workflowRuns: 9 };
      addCode(simulator.world, repository, sizes, 7, simulator.world.now());
      const rows: RowFault[] = [];
      simulator.tokens.create({ token: UPSTREAM_TOKEN, login: OWNER, repositories: "all", write: true });
      for (const { path, key } of PART_LISTS) {
        const address = `${simulator.url}/repositories/${repository.id}${path}?per_page=100`;
        const headers = { "user-agent": "test", authorization: `token ${UPSTREAM_TOKEN}` };
        const body = await (await fetch(address, { headers })).json();
        const listed = (key === null ? body : Object(body)[key]) as { id: number }[];
        expect([path, listed.length > 0]).toEqual([path, true]);
        counts.set(path, listed.length);
        for (const [at, time] of NO_TIMES.entries())
          rows.push({
            match: `^GET [^?]*${path}\\?`,
            where: { id: listed[at]?.id ?? 0 },
            kind: "with",
            fields: { created_at: time, updated_at: time },
          });
      }
      simulator.setFaults({ rows });
    },
  });
  await world.mirror(world.first);
  for (let times = 0; times < 2; times++) await passRound(world, 3_600_000, markResourceListsDue);
  const { world: upstream } = world.simulator;
  const [repository] = upstream.repositories.values();
  if (!repository) throw new Error("There is no repository");
  const workflow = workflowOf(upstream, { repository, name: "CI" });
  addWorkflowRun(upstream, repository.ownerId, { workflow, headSha: "c".repeat(40) });
  counts.set("/actions/runs", (counts.get("/actions/runs") ?? 0) + 1);
  await passRound(world, 3_600_000, markResourceListsDue);
  expect(await world.ctx.db.query(sql`select key, problem from problems`)).toEqual([]);
  for (const { path, table } of PART_LISTS)
    expect([path, await world.ctx.db.count(sql`select from ${table} where deleted_at is null`)]).toEqual([
      path,
      counts.get(path),
    ]);
});
