/** The views for people who query the mirror: what they hold, and whom they show it. */
import { getViewSelectedFields, is } from "drizzle-orm";
import { getViewConfig, PgColumn, type PgView } from "drizzle-orm/pg-core";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as views from "../../db/schema/views.ts";
import { MIRROR_PARTS } from "../../src/config/parts.ts";
import { strip } from "../../src/mirror/store/template.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { asRole, connectTo } from "../support/database.ts";
import { markHistoriesDue, markPeopleDue, markRefsDue, markResourceListsDue } from "../support/due.ts";
import { passRound } from "../support/rounds.ts";
import { runWorkflow } from "../support/workflow-runs.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

/** Each view but `repositories`, the table of its rows, and what makes a row of the table none of the view. */
const VIEWS: Record<string, { table: string; hidden: string[] }> = {
  issues: { table: "issues", hidden: ["deleted_at = now()", "id = null", "is_pull_request = true"] },
  pull_requests: { table: "pull_requests", hidden: ["deleted_at = now()", "id = null"] },
  comments: { table: "issue_comments", hidden: ["deleted_at = now()"] },
  reviews: { table: "pull_request_reviews", hidden: ["deleted_at = now()", "state = 'PENDING'"] },
  review_comments: { table: "pull_request_review_comments", hidden: ["deleted_at = now()"] },
  labels: { table: "labels", hidden: ["deleted_at = now()"] },
  milestones: { table: "milestones", hidden: ["deleted_at = now()"] },
  users: { table: "users", hidden: ["deleted_at = now()"] },
  checks: { table: "check_runs", hidden: [] },
  releases: { table: "releases", hidden: ["deleted_at = now()"] },
  commits: { table: "commits", hidden: [] },
  refs: { table: "refs", hidden: ["deleted_at = now()", "sha = null"] },
  deployments: { table: "deployments", hidden: ["deleted_at = now()"] },
  workflows: { table: "workflows", hidden: ["deleted_at = now()"] },
  workflow_runs: { table: "workflow_runs", hidden: ["deleted_at = now()"] },
  workflow_jobs: { table: "workflow_jobs", hidden: ["deleted_at = now()"] },
  issue_events: { table: "issue_events", hidden: ["deleted_at = now()"] },
  collaborators: { table: "listed_people", hidden: ["id = 0"] },
  repository_teams: { table: "listed_people", hidden: [] },
  organization_members: { table: "listed_people", hidden: ["id = 0"] },
  team_members: { table: "listed_people", hidden: ["id = 0"] },
  events: { table: "events", hidden: ["id = null"] },
};
/** Not every repository is an organisation's. */
const OF_ORGANIZATIONS = ["repository_teams", "organization_members", "team_members"];
const OF_REPOSITORIES = Object.keys(VIEWS).filter((view) => view !== "users" && !OF_ORGANIZATIONS.includes(view));
const refused = { code: "42501" };

let world: TestWorld;
let owner: pg.Client;
let reader: pg.Client;
let names: string[];

beforeAll(async () => {
  world = await openWorld({
    env: { MIRROR: MIRROR_PARTS.join(), READ_TIMEOUT: "1m" },
    fill: ({ world: upstream }) =>
      void generateWorld(upstream, { seed: 7, repositories: 2, issues: 60, pulls: 40, code: { deployments: 4 } }),
  });
  names = [...world.simulator.world.repositories.values()]
    .filter(({ fork }) => !fork)
    .map((one) => world.simulator.world.fullName(one));
  await world.mirror(...names);
  await world.listen(...names);
  const live = world.simulator.startLive({ ratePerSecond: 0, seed: 3 });
  for (let step = 0; step < 40; step++) live.step();
  for (const name of names) runWorkflow(world, name);
  await world.settleMarks();
  await world.catchUp();
  await world.settleMarks();
  for (const due of [markResourceListsDue, markRefsDue, markHistoriesDue, markPeopleDue])
    await passRound(world, 60_000, due);
  owner = await connectTo(world.ctx.config.databaseUrl);
  reader = await connectTo(asRole(world.ctx.config.databaseUrl, "tain_reader"));
});
afterAll(async () => {
  await reader?.end();
  await owner?.end();
  await world?.[Symbol.asyncDispose]();
});

/** The rows of a list, or of an object that holds it. */
function rowsOf(body: unknown): Record<string, unknown>[] {
  const list = Array.isArray(body) ? body : Object.values(body as object).find(Array.isArray);
  return list as Record<string, unknown>[];
}

/** What a query answers after a change, which is then taken back. */
async function onceChanged(change: string, query: string): Promise<Record<string, unknown>[]> {
  await owner.query("begin");
  try {
    await owner.query(change);
    return (await owner.query(query)).rows;
  } finally {
    await owner.query("rollback");
  }
}

/** The columns of a view as programs see it. */
function describedColumns(view: PgView): { name: string; type: string; isNullable: boolean }[] {
  return Object.values(getViewSelectedFields(view)).flatMap((column) =>
    is(column, PgColumn)
      ? {
          name: column.name,
          type: `${column.getSQLType()}${"[]".repeat(column.dimensions ?? 0)}`,
          isNullable: !column.notNull,
        }
      : [],
  );
}

async function repositoriesIn(client: pg.Client, view: string): Promise<string[]> {
  const { rows } = await client.query(`select distinct repository from tain_v1.${view} order by 1`);
  return rows.map(({ repository }) => repository);
}

describe("what the views hold", () => {
  test("are those of this test", async () => {
    const { rows } = await reader.query("select viewname from pg_views where schemaname = 'tain_v1' order by 1");
    expect(rows.map(({ viewname }) => viewname)).toEqual(["repositories", ...Object.keys(VIEWS)].sort());
  });

  test("are described for programs, with their columns and types", async () => {
    const { rows } = await owner.query(`
      select c.relname as view, array_agg(format('%s %s', a.attname, format_type(a.atttypid, a.atttypmod)) order by a.attnum) as columns
        from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
        where c.relnamespace = 'tain_v1'::regnamespace group by c.relname order by c.relname`);
    const described = Object.values(views).map((view) => ({
      view: getViewConfig(view).name,
      columns: describedColumns(view).map(({ name, type }) => `${name} ${type}`),
    }));
    expect(described.toSorted((a, b) => (a.view < b.view ? -1 : 1))).toEqual(rows);
  });

  test("and hold no null where the description says that there is none", async () => {
    for (const view of Object.values(views)) {
      const needed = describedColumns(view).flatMap((column) => (column.isNullable ? [] : column.name));
      const { name } = getViewConfig(view);
      const { rows } = await owner.query(`select from tain_v1.${name} where num_nulls(${needed.join()}) > 0`);
      expect(rows, name).toEqual([]);
    }
  });

  test.each(["repositories", ...OF_REPOSITORIES])(
    "rows of all mirrored repositories, and no others: %s",
    async (view) => {
      expect(await repositoriesIn(reader, view)).toEqual(names.toSorted());
      const left = await onceChanged(
        `update repository_syncs set state = 'gone' where repository_id =
        (select id from repositories where full_name = '${names[0]}')`,
        `select distinct repository from tain_v1.${view}`,
      );
      expect(left).toEqual([{ repository: names[1] }]);
    },
  );

  test.each(
    Object.entries(VIEWS).flatMap(([view, { table, hidden }]) =>
      hidden.map((change) => [view, table, change] as const),
    ),
  )("%s without rows of %s once %s", async (view, table, change) => {
    expect(await onceChanged(`update ${table} set ${change}`, `select from tain_v1.${view}`)).toEqual([]);
  });

  test("the newest check run and status of each name at a commit", async () => {
    const { rows } = await reader.query("select kind, count(*)::int from tain_v1.checks group by kind order by kind");
    expect(rows.map(({ kind }) => kind)).toEqual(["check_run", "status"]);
    const newer = (table: string, changes: Record<string, string>) => `insert into ${table}
      select (json_populate_record(t, '${JSON.stringify(changes)}')).* from ${table} t limit 1`;
    const runs = (rows: Record<string, unknown>[]) => rows.map(({ id }) => Number(id));
    const of = "select id from tain_v1.checks order by id";
    const before = runs((await reader.query(of)).rows);
    const again = await onceChanged(newer("check_runs", { id: "9000000000000" }), of);
    expect(runs(again)).toContain(9_000_000_000_000);
    expect(again).toHaveLength(before.length);
    const said = await onceChanged(newer("commit_statuses", { id: "9000000000001", state: "failure" }), of);
    expect(runs(said)).toContain(9_000_000_000_001);
    expect(said).toHaveLength(before.length);
  });

  test("no jobs of a deleted run; runs and jobs of a workflow that is not held, without its name", async () => {
    expect(
      await onceChanged("update workflow_runs set deleted_at = now()", "select from tain_v1.workflow_jobs"),
    ).toEqual([]);
    for (const view of ["workflow_runs", "workflow_jobs"]) {
      const named = await owner.query(`select count(*) from tain_v1.${view} where workflow is not null`);
      const unnamed = `select count(*) from tain_v1.${view} where workflow is null`;
      expect(await onceChanged("delete from workflows", unnamed), view).toEqual(named.rows);
    }
  });

  test.each([
    ["issues", "answered_at", "hours_to_answer", "issue_comments"],
    ["pull_requests", "reviewed_at", "hours_to_review", "pull_request_reviews"],
  ])("when somebody else, no bot, first answered: %s", async (view, at, hours, said) => {
    const answered = `select from tain_v1.${view} where ${at} is not null and ${hours} is not null`;
    expect((await reader.query(answered)).rowCount).toBeGreaterThan(0);
    for (const change of [
      `update ${said} set deleted_at = now()`,
      `update ${said} set user_id = null; update ${view} set user_id = null`,
      "update users set type = 'Bot'",
    ])
      expect(await onceChanged(change, answered), change).toEqual([]);
    const { rows } = await reader.query(`select from tain_v1.${view} where (${at} is null) <> (${hours} is null)
      or abs(extract(epoch from ${at} - created_at) - 3600 * ${hours}) > 0.001`);
    expect(rows).toEqual([]);
  });

  test("how long what has ended took, and no time for the rest", async () => {
    for (const [view, end, hours] of [
      ["issues", "closed_at", "hours_to_close"],
      ["pull_requests", "merged_at", "hours_to_merge"],
    ]) {
      const { rows } = await reader.query(`select count(${hours})::int as ended, count(*)::int as all,
        bool_and(coalesce(abs(extract(epoch from ${end} - created_at) - 3600 * ${hours}) < 0.001, num_nulls(${end}, ${hours}) = 2)) as fit
        from tain_v1.${view}`);
      expect(rows[0].fit, view).toBe(true);
      expect(rows[0].ended).toBeGreaterThan(0);
      expect(rows[0].ended).toBeLessThan(rows[0].all);
    }
  });

  test("whose first pull request it is, and which reviews are of one's own", async () => {
    const { rows: firsts } = await reader.query(
      "select repository_id, author_id, number from tain_v1.pull_requests where is_first order by 1, 2",
    );
    const { rows: expected } =
      await reader.query(`select distinct on (repository_id, author_id) repository_id, author_id, number
      from tain_v1.pull_requests where author_id is not null order by repository_id, author_id, created_at, number`);
    expect(firsts).toEqual(expected);
    expect(
      await onceChanged(
        "update pull_requests set user_id = null",
        "select distinct is_first from tain_v1.pull_requests",
      ),
    ).toEqual([{ is_first: null }]);
    const own = "select distinct is_own from tain_v1.reviews order by 1";
    expect((await reader.query(own)).rows).toContainEqual({ is_own: false });
    expect(await onceChanged("update pull_requests set deleted_at = now()", own)).toEqual([{ is_own: null }]);
    expect(
      await onceChanged(
        `update pull_request_reviews v set user_id = p.user_id from pull_requests p
          where p.repository_id = v.repository_id and p.number = v.pull_number`,
        own,
      ),
    ).toEqual([{ is_own: true }]);
  });

  test.each([
    ["checks", "update check_runs set conclusion = $; delete from commit_statuses", ["timed_out", "startup_failure"]],
    ["checks", "update commit_statuses set state = $; delete from check_runs", ["error"]],
    ["workflow_runs", "update workflow_runs set conclusion = $", ["timed_out", "startup_failure"]],
    ["workflow_jobs", "update workflow_jobs set conclusion = $", ["timed_out"]],
  ])("what has failed: %s after %s", async (view, change, failed) => {
    const said = async (conclusion: string) =>
      await onceChanged(change.replace("$", conclusion), `select distinct has_failed from tain_v1.${view}`);
    for (const conclusion of ["failure", ...failed])
      expect(await said(`'${conclusion}'`), conclusion).toEqual([{ has_failed: true }]);
    for (const conclusion of ["'success'", ...(change.includes("status") ? ["'pending'"] : ["'cancelled'", "null"])])
      expect(await said(conclusion), conclusion).toEqual([{ has_failed: false }]);
  });

  test("a deployment's newest status", async () => {
    const state = async (change: string) =>
      await onceChanged(change, "select distinct state from tain_v1.deployments order by state");
    // Some have none yet.
    expect(await state("update deployment_statuses set state = 'queued'")).toEqual([
      { state: "queued" },
      { state: null },
    ]);
    expect(await state("update deployment_statuses set deleted_at = now()")).toEqual([{ state: null }]);
  });
});

interface Shown {
  path: string;
  view: string;
  columns: string;
  /** A resource as the API shows it, in these columns. */
  row(one: never): unknown;
}
type Person = { login: string } | null;
const login = (person: Person | undefined) => person?.login ?? null;

const SHOWN: Shown[] = [
  {
    path: "issues?state=all&",
    view: "issues",
    columns: "number, title, state, author, labels, assignees, milestone, comments, closed_at, html_url",
    row: (one: {
      [key: string]: unknown;
      user: Person;
      labels: { name: string }[];
      assignees: { login: string }[];
      milestone: { title: string } | null;
      pull_request?: object;
    }) => ({
      number: one.number,
      title: one.title,
      state: one.state,
      author: login(one.user),
      labels: one.labels.map(({ name }) => name).sort(),
      assignees: one.assignees.map((each) => each.login).sort(),
      milestone: one.milestone?.title ?? null,
      comments: one.comments,
      closed_at: one.closed_at,
      html_url: one.html_url,
    }),
  },
  {
    path: "pulls?state=all&",
    view: "pull_requests",
    columns: "number, title, draft, author, labels, head_label, head_sha, base_ref, merged_at, html_url",
    row: (one: {
      [key: string]: unknown;
      user: Person;
      labels: { name: string }[];
      head: { label: string; sha: string };
      base: { ref: string };
    }) => ({
      number: one.number,
      title: one.title,
      draft: one.draft,
      author: login(one.user),
      labels: one.labels.map(({ name }) => name).sort(),
      head_label: one.head.label,
      head_sha: one.head.sha,
      base_ref: one.base.ref,
      merged_at: one.merged_at,
      html_url: one.html_url,
    }),
  },
  ...[
    { path: "issues/comments?", view: "comments" },
    { path: "pulls/comments?", view: "review_comments" },
  ].map((each) => ({
    ...each,
    columns: "id::float8, author, body, created_at, html_url",
    row: (one: { [key: string]: unknown; user: Person }) => ({
      id: one.id,
      author: login(one.user),
      body: one.body,
      created_at: one.created_at,
      html_url: one.html_url,
    }),
  })),
  {
    path: "milestones?state=all&",
    view: "milestones",
    columns: "number, title, state, creator, open_issues, closed_issues, due_on, html_url",
    row: (one: { [key: string]: unknown; creator: Person }) => ({
      number: one.number,
      title: one.title,
      state: one.state,
      creator: login(one.creator),
      open_issues: one.open_issues,
      closed_issues: one.closed_issues,
      due_on: one.due_on,
      html_url: one.html_url,
    }),
  },
  {
    path: "labels?",
    view: "labels",
    columns: "name, color, description",
    row: ({ name, color, description }: Record<string, unknown>) => ({ name, color, description }),
  },
  {
    path: "releases?",
    view: "releases",
    columns: "tag_name, name, draft, author, published_at, html_url",
    row: (one: { [key: string]: unknown; author: Person }) => ({
      tag_name: one.tag_name,
      name: one.name,
      draft: one.draft,
      author: login(one.author),
      published_at: one.published_at,
      html_url: one.draft ? null : one.html_url,
    }),
  },
  {
    path: "actions/workflows?",
    view: "workflows",
    columns: "id::float8, name, path, state, created_at, updated_at",
    row: ({ id, name, path, state, created_at, updated_at }: Record<string, unknown>) => ({
      ...{ id, name, path, state, created_at, updated_at },
    }),
  },
  {
    path: "actions/runs?",
    view: "workflow_runs",
    columns:
      "id::float8, workflow_id::float8, name, event, head_sha, run_number, conclusion, actor, updated_at, html_url",
    row: (one: { [key: string]: unknown; actor: Person }) => ({
      id: one.id,
      workflow_id: one.workflow_id,
      name: one.name,
      event: one.event,
      head_sha: one.head_sha,
      run_number: one.run_number,
      conclusion: one.conclusion,
      actor: login(one.actor),
      updated_at: one.updated_at,
      html_url: one.html_url,
    }),
  },
  {
    path: "deployments?",
    view: "deployments",
    columns: "id::float8, sha, ref, environment, creator, updated_at",
    row: (one: { [key: string]: unknown; creator: Person }) => ({
      id: one.id,
      sha: one.sha,
      ref: one.ref,
      environment: one.environment,
      creator: login(one.creator),
      updated_at: one.updated_at,
    }),
  },
];

describe("a view's rows are what the API shows", () => {
  test.each(SHOWN)("$view", async ({ path, view, columns, row }) => {
    for (const name of names) {
      const shown: Record<string, unknown>[] = [];
      for (let page = 1; ; page++) {
        const { status, body } = await world.get(`/repos/${name}/${path}per_page=100&page=${page}`);
        expect(status).toBe(200);
        const rows = rowsOf(body);
        if (rows.length === 0) break;
        shown.push(...rows);
      }
      const expected = shown
        .filter((one) => view !== "issues" || !("pull_request" in one))
        .map((one) => row(one as never));
      const { rows } = await reader.query(`select ${columns} from tain_v1.${view} where repository = $1`, [name]);
      expect(inOrder(rows)).toEqual(inOrder(expected));
      expect(rows.length).toBeGreaterThan(0);
    }
  });

  test("jobs lead to their pages, and have their runs' commits", async () => {
    const { rows } = await reader.query(
      "select repository, id, run_id::float8, head_sha, name, conclusion, html_url from tain_v1.workflow_jobs order by id limit 3",
    );
    for (const { repository, id, ...rest } of rows)
      expect((await world.get(`/repos/${repository}/actions/jobs/${id}`)).body).toMatchObject(rest);
    expect(rows).toHaveLength(3);
  });

  test("reviews and check runs lead to their pages", async () => {
    const { rows: reviews } = await reader.query(
      "select repository, number, id, html_url, state from tain_v1.reviews order by repository_id, id limit 3",
    );
    for (const { repository, number, id, ...rest } of reviews)
      expect((await world.get(`/repos/${repository}/pulls/${number}/reviews/${id}`)).body).toMatchObject(rest);
    const { rows: runs } = await reader.query(
      "select repository, id, html_url, conclusion, sha from tain_v1.checks where kind = 'check_run' order by id limit 3",
    );
    for (const { repository, id, sha, ...rest } of runs)
      expect((await world.get(`/repos/${repository}/check-runs/${id}`)).body).toMatchObject({ ...rest, head_sha: sha });
    expect(reviews.length + runs.length).toBe(6);
  });

  function inOrder(rows: unknown[]): string[] {
    const withoutMs = (text: string) => text.replaceAll(/(T[\d:]+)\.000Z/g, "$1Z");
    return rows.map((one) => withoutMs(JSON.stringify(one))).sort();
  }
});

describe("who may read some repositories only", () => {
  const ROLE = "views_of_one";
  let one: pg.Client;

  beforeAll(async () => {
    await owner.query(`create role ${ROLE}`);
    await owner.query(`insert into reader_repositories (repository_id, role)
      select id, '${ROLE}' from repositories where full_name = '${names[1]}'`);
    await owner.query(
      `grant usage on schema tain_v1 to ${ROLE}; grant select on all tables in schema tain_v1 to ${ROLE}`,
    );
    one = await connectTo(asRole(world.ctx.config.databaseUrl, ROLE));
  });
  afterAll(async () => {
    await one?.end();
    await owner?.query(`drop owned by ${ROLE}; drop role ${ROLE}; delete from reader_repositories`);
  });

  test.each(["repositories", ...OF_REPOSITORIES])("sees no other in %s", async (view) => {
    expect(await repositoriesIn(one, view)).toEqual([names[1]]);
    const whole = (client: pg.Client) =>
      client.query(`select v::text as row from tain_v1.${view} v where repository = $1 order by 1`, [names[1]]);
    expect((await whole(one)).rows).toEqual((await whole(reader)).rows);
  });

  test("sees the accounts that wrote or are assigned there", async () => {
    const { rows } = await one.query("select login from tain_v1.users order by id");
    const { rows: known } = await reader.query(
      `select login from tain_v1.users where id in (
          select author_id from tain_v1.issues where repository = $1
          union select author_id from tain_v1.pull_requests where repository = $1
          union select author_id from tain_v1.comments where repository = $1
          union select author_id from tain_v1.reviews where repository = $1
          union select author_id from tain_v1.review_comments where repository = $1)
        or login in (select unnest(assignees) from tain_v1.issues where repository = $1)
        or login in (select unnest(assignees) from tain_v1.pull_requests where repository = $1) order by id`,
      [names[1]],
    );
    expect(rows).toEqual(known);
    const { rows: all } = await reader.query("select from tain_v1.users");
    expect(rows.length).toBeLessThan(all.length);
  });

  test("is told neither of drafts nor of another repository's commits, and who reads all is", async () => {
    const seenAfter = async (change: string, query: string) => {
      await owner.query("begin");
      try {
        expect((await owner.query(change)).rowCount).toBeGreaterThan(0);
        const { rows: all } = await owner.query(query);
        await owner.query(`set local role ${ROLE}`);
        return [all, (await owner.query(query)).rows];
      } finally {
        await owner.query("rollback");
      }
    };
    const { rows } = await one.query("select tag_name, draft from tain_v1.releases where not draft limit 1");
    const tag = rows[0]?.tag_name;
    const releases = `select tag_name from tain_v1.releases where repository = '${names[1]}' and tag_name = '${tag}'`;
    expect((await one.query(releases)).rows).toEqual([{ tag_name: tag }]);
    expect(
      await seenAfter(
        `update releases r set draft = true from repositories o
        where o.id = r.repository_id and o.full_name = '${names[1]}' and r.tag_name = '${tag}'`,
        releases,
      ),
    ).toEqual([[{ tag_name: tag }], []]);

    const [event] = (await one.query("select id from tain_v1.issue_events limit 1")).rows;
    const named = `select commit_id from tain_v1.issue_events where id = ${event?.id}`;
    const commit = "c".repeat(40);
    const of = (fullName: string) => {
      const api = world.ctx.config.upstreamUrl;
      const { fields } = strip(
        { commit_url: `${api}/repos/${fullName}/commits/${commit}` },
        { api, fullName: String(names[1]) },
      );
      const document = JSON.stringify(fields);
      return `update issue_events set commit_id = '${commit}', document = '${document}' where id = ${event?.id}`;
    };
    expect(await seenAfter(of(String(names[1])), named)).toEqual([[{ commit_id: commit }], [{ commit_id: commit }]]);
    expect(await seenAfter(of("other/secret"), named)).toEqual([[{ commit_id: commit }], [{ commit_id: null }]]);
  });

  test("reads no table, and no other view", async () => {
    const { rows } = await owner.query<{ name: string }>(
      "select 'public.' || quote_ident(relname) as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'v', 'p')",
    );
    expect(rows.length).toBeGreaterThan(50);
    for (const { name } of rows) await expect(one.query(`select from ${name}`), name).rejects.toMatchObject(refused);
  });

  test("calls no function that reads for it", async () => {
    const { rows } = await owner.query<{ name: string }>(`
      select oid::regprocedure::text as name from pg_proc
        where pronamespace in ('public'::regnamespace, 'tain_v1'::regnamespace) and prosecdef
          and has_function_privilege('${ROLE}', oid, 'execute')`);
    expect(rows).toEqual([]);
  });

  test.each(["repositories", ...Object.keys(VIEWS)])("is told nothing of others by a condition: %s", async (view) => {
    // A cheap function of the caller's own is tried on rows before what costs more.
    await one.query(`create or replace function pg_temp.tell(tain_v1.${view}) returns boolean language plpgsql cost 0.0000001 as
      $$ begin raise notice '%', $1; return true; end $$`);
    const told: string[] = [];
    const note = ({ message }: { message?: string | undefined }) => told.push(message ?? "");
    one.on("notice", note);
    const { rows } = await one.query(`select from tain_v1.${view} v where pg_temp.tell(v)`);
    one.off("notice", note);
    expect(told).toHaveLength(rows.length);
    if (!OF_ORGANIZATIONS.includes(view)) expect(told.length).toBeGreaterThan(0);
    expect(told.filter((row) => row.includes(names[0] ?? ""))).toEqual([]);
  });

  test("and writes nothing", async () => {
    for (const view of Object.keys(VIEWS))
      await expect(one.query(`delete from tain_v1.${view}`), view).rejects.toMatchObject({
        code: expect.stringMatching(/^(42501|55000)$/),
      });
  });

  test("a member sees the same; a role of no repository, nothing; and nobody once the repository is gone", async () => {
    await owner.query(`create role views_member in role ${ROLE}; create role views_none;
      grant usage on schema tain_v1 to views_none; grant select on all tables in schema tain_v1 to views_none`);
    try {
      const member = await connectTo(asRole(world.ctx.config.databaseUrl, "views_member"));
      expect(await repositoriesIn(member, "issues")).toEqual([names[1]]);
      await member.end();
      const none = await connectTo(asRole(world.ctx.config.databaseUrl, "views_none"));
      for (const view of ["repositories", ...Object.keys(VIEWS)])
        expect((await none.query(`select from tain_v1.${view}`)).rowCount, view).toBe(0);
      await none.end();
    } finally {
      await owner.query("drop owned by views_none; drop role views_member, views_none");
    }
    await owner.query("begin");
    await owner.query("update repository_syncs set state = 'gone'");
    await owner.query(`set local role ${ROLE}`);
    for (const view of ["repositories", ...Object.keys(VIEWS)])
      expect((await owner.query(`select from tain_v1.${view}`)).rowCount, view).toBe(0);
    await owner.query("rollback");
  });
});
