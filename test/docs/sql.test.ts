import { readFileSync } from "node:fs";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { connectTo } from "../support/database.ts";
import { runWorkflow } from "../support/workflow-runs.ts";
import { openWorld, type TestWorld } from "../support/world.ts";
import { asGrafanaSends, dashboard, panelQueries } from "./grafana.ts";
import { type Block, blocksOf, readPage } from "./markdown.ts";

const ROLE = "tain_reader";
const page = readPage("docs/sql.md");
const questions = blocksOf(page).filter(({ language }) => language === "sql");
const ofTables = blocksOf(readFileSync(new URL("sql-of-tables.md", import.meta.url), "utf8"));

/** The columns of each question's answer, by its heading. */
const answers: Record<string, string[]> = {
  "Which open issues carry which label, and how old are they?": [
    "repository",
    "label",
    "open_issues",
    "oldest",
    "median_age",
  ],
  "Which open issues has nobody answered?": ["repository", "number", "title", "author", "created_at"],
  "Which pull requests wait for a review, and for how long?": [
    "repository",
    "number",
    "title",
    "author",
    "created_at",
    "waiting",
  ],
  "How long do issues take to get a first answer, and to be closed?": [
    "month",
    "opened",
    "answered",
    "closed",
    "hours_to_answer",
    "hours_to_close",
  ],
  "How long do pull requests take to be merged?": ["month", "merged", "median_hours", "p90_hours"],
  "Who reviews most?": ["author", "pull_requests", "approvals", "changes_requested", "comments"],
  "Which open issues have gone quiet?": ["repository", "number", "title", "labels", "comments", "updated_at"],
  "How far is each milestone?": ["repository", "title", "state", "due_on", "open_issues", "closed_issues", "percent"],
  "Which open pull requests fail a check?": ["repository", "number", "title", "name", "conclusion", "html_url"],
  "Which workflows fail most, and how long do they take?": ["repository", "workflow", "runs", "failed", "median_time"],
  "Which jobs wait longest for a runner, and run longest?": [
    "repository",
    "workflow",
    "job",
    "jobs",
    "median_wait",
    "median_time",
  ],
  "Who made their first pull request, and when?": [
    "repository",
    "author",
    "number",
    "title",
    "created_at",
    "merged_at",
  ],
  "What has happened since yesterday?": ["received_at", "repository", "event", "action", "number"],
  "How far behind is the mirror?": ["repository", "mirror_state", "mirror_problem", "confirmed"],
};

interface Person {
  id: number;
  type: string;
}

interface Truth {
  repository: { full_name: string };
  issues: {
    number: number;
    state: string;
    user: Person | null;
    pull_request?: object;
    labels: { name: string }[];
    milestone: { number: number } | null;
  }[];
  pulls: { number: number; state: string; draft: boolean; user: Person | null }[];
  comments: { issue_url: string; user: Person | null }[];
  reviews: { pull_request_url: string; state: string; user: Person | null }[];
  milestones: { number: number; title: string }[];
}

let world: TestWorld;
let reader: pg.Client;
let truths: Truth[];

beforeAll(async () => {
  world = await openWorld({
    env: { MIRROR: "checks,actions" },
    fill: ({ world: upstream }) =>
      void generateWorld(upstream, { seed: 7, repositories: 2, issues: 120, pulls: 60, code: {} }),
  });
  const names = ((await state("")) as unknown as { full_name: string; fork: boolean }[])
    .filter(({ fork }) => !fork)
    .map((each) => each.full_name);
  await world.mirror(...names);
  await world.listen(...names);
  // So that there are tombstones, settled deliveries and changes of today.
  const live = world.simulator.startLive({
    ratePerSecond: 0,
    seed: 3,
    kinds: ["open", "comment", "deleteComment", "deleteIssue", "deleteLabel", "close", "review"],
  });
  for (let step = 0; step < 60; step++) live.step();
  for (const name of names) runWorkflow(world, name);
  await world.settleMarks();
  await world.catchUp();
  await world.settleMarks();
  truths = (await Promise.all(names.map((name) => state(`?repository=${name}`)))).flat();

  reader = new pg.Client({ connectionString: world.ctx.config.databaseUrl, options: `-c role=${ROLE}` });
  await reader.connect();
});

afterAll(async () => {
  await reader?.end();
  await world?.[Symbol.asyncDispose]();
});

async function state(query: string): Promise<Truth[]> {
  const response = await fetch(`${world.simulator.url}/-/state${query}`);
  return ((await response.json()) as { repositories: Truth[] }).repositories;
}

describe("the questions", () => {
  test("of the page are those of this test, and more than ten", () => {
    expect(questions.map(({ heading }) => heading)).toEqual(Object.keys(answers));
    expect(questions.length).toBeGreaterThan(10);
  });

  test.each(questions)("$heading", async ({ heading, text }: Block) => {
    const { fields, rows } = await reader.query(text);
    expect(fields.map(({ name }) => name)).toEqual(answers[heading]);
    expect(rows.length).toBeGreaterThan(0);
  });

  test.each(questions)("the tables give the same answer: $heading", async ({ heading, text }: Block) => {
    const longer = ofTables.find((one) => one.heading === heading);
    const admin = await connectTo(world.ctx.config.databaseUrl);
    try {
      // In a transaction, now() stands still.
      await admin.query("begin");
      const { rows } = await admin.query(longer?.text ?? "");
      expect((await admin.query(text)).rows).toEqual(rows);
    } finally {
      await admin.end();
    }
  });

  test("take as many lines as the page says", () => {
    const linesOf = (text = "") => text.trimEnd().split("\n").length;
    for (const { heading, text } of questions) {
      const longer = ofTables.find((one) => one.heading === heading)?.text;
      expect(page).toContain(`| ${heading} | ${linesOf(longer)} | ${linesOf(text)} |`);
    }
  });

  test("open issues by label are counted as upstream has them", async () => {
    const expected: Record<string, number> = {};
    for (const { repository, issues } of truths) {
      for (const { labels } of issues.filter((issue) => issue.state === "open" && !issue.pull_request)) {
        for (const { name } of labels)
          expected[`${repository.full_name} ${name}`] = (expected[`${repository.full_name} ${name}`] ?? 0) + 1;
      }
    }
    const rows = await ask("Which open issues carry which label, and how old are they?");
    expect(Object.fromEntries(rows.map((row) => [`${row.repository} ${row.label}`, Number(row.open_issues)]))).toEqual(
      expected,
    );
  });

  test("unanswered issues are those on which nobody but the author and bots has commented", async () => {
    const expected = truths.flatMap(({ repository, issues, comments }) =>
      issues
        .filter((issue) => issue.state === "open" && !issue.pull_request)
        .filter(
          ({ number, user }) =>
            !comments.some(
              (one) =>
                one.issue_url.endsWith(`/issues/${number}`) && one.user?.id !== user?.id && one.user?.type !== "Bot",
            ),
        )
        .map(({ number }) => `${repository.full_name}#${number}`),
    );
    expect(await numbers("Which open issues has nobody answered?")).toEqual(expected.sort());
  });

  test("pull requests that wait for a review are those without one by another person", async () => {
    const expected = truths.flatMap(({ repository, pulls, reviews }) =>
      pulls
        .filter((pull) => pull.state === "open" && !pull.draft)
        .filter(
          ({ number, user }) =>
            !reviews.some(
              (one) =>
                one.pull_request_url.endsWith(`/pulls/${number}`) &&
                one.state !== "PENDING" &&
                one.user?.id !== user?.id &&
                one.user?.type !== "Bot",
            ),
        )
        .map(({ number }) => `${repository.full_name}#${number}`),
    );
    expect(await numbers("Which pull requests wait for a review, and for how long?")).toEqual(expected.sort());
  });

  test("milestones hold the issues and pull requests that upstream gives them", async () => {
    const expected = truths.flatMap(({ repository, milestones, issues }) =>
      milestones.map(({ number, title }) => {
        const inside = issues.filter(({ milestone }) => milestone?.number === number);
        const open = inside.filter((issue) => issue.state === "open").length;
        return `${repository.full_name} ${title} ${open} ${inside.length - open}`;
      }),
    );
    const rows = await ask("How far is each milestone?");
    expect(
      rows
        .map(
          ({ repository, title, open_issues, closed_issues }) =>
            `${repository} ${title} ${open_issues} ${closed_issues}`,
        )
        .sort(),
    ).toEqual(expected.sort());
  });
});

describe("the dashboard deploy/grafana/issues.json", () => {
  const [from, to] = [new Date("2000-01-01T00:00:00Z"), new Date("2100-01-01T00:00:00Z")];

  test.each(panelQueries)("has something to show: $name", async ({ rawSql, isTimeSeries }) => {
    const { rows: known } = await reader.query(
      dashboard.templating.list.find(({ name }) => name === "repository")?.query ?? "",
    );
    const names = known.map(({ repository }) => repository);
    const { fields, rows } = await reader.query(asGrafanaSends(rawSql, names, from, to));
    expect(rows.length).toBeGreaterThan(0);
    if (isTimeSeries) {
      expect(fields.map(({ name }) => name)).toContain("time");
      expect(rows.map(({ time }) => time)).toEqual(rows.map(({ time }) => time).toSorted((a, b) => a - b));
      // Of text Grafana would make the names of series.
      for (const { time, ...values } of rows)
        for (const value of Object.values(values)) expect(Number(value)).not.toBeNaN();
    }
    const { rows: ofOne } = await reader.query(asGrafanaSends(rawSql, names.slice(0, 1), from, to));
    for (const { repository = names[0] } of ofOne) expect(repository).toBe(names[0]);
  });

  test.each(panelQueries)("asks views alone: $name", ({ rawSql }) => {
    const read = [...rawSql.replaceAll(/(epoch|distinct) from/g, "").matchAll(/\b(?:from|join) (\S+)/g)].map(
      ([, name]) => name,
    );
    expect(read).toEqual([expect.stringMatching(/^tain_v1\./)]);
  });

  test("has no panel on another", () => {
    const places = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, at) => `${x + (at % w)} ${y + Math.floor(at / w)}`),
    );
    expect(new Set(places).size).toBe(places.length);
  });
});

describe("what does not count", () => {
  test("a deleted label, though issues still carry it", async () => {
    const labels = "Which open issues carry which label, and how old are they?";
    const before = await ask(labels);
    const after = await askAfter("update labels set deleted_at = now() where name = $1", [before[0]?.label], labels);
    expect(after.length).toBeLessThan(before.length);
    expect(after.map(({ label }) => label)).not.toContain(before[0]?.label);
  });

  test.each([
    ["Which open issues has nobody answered?", "issue_comments"],
    ["Which pull requests wait for a review, and for how long?", "pull_request_reviews"],
  ])("what bots say: %s", async (heading, said) => {
    const change = `update users set type = 'Bot' where id in (select user_id from ${said})`;
    expect((await askAfter(change, [], heading)).length).toBeGreaterThan((await ask(heading)).length);
  });

  test.each([
    "state = 'PENDING'",
    "user_id = (select p.user_id from pull_requests p where p.repository_id = v.repository_id and p.number = v.pull_number)",
  ])("a review that nobody else sees or made, as a review: %s", async (change) => {
    const waiting = "Which pull requests wait for a review, and for how long?";
    const after = await askAfter(`update pull_request_reviews v set ${change}`, [], waiting);
    expect(after.length).toBeGreaterThan((await ask(waiting)).length);
  });

  test.each(Object.keys(answers))("repositories that are mirrored no more: %s", async (heading) => {
    expect(await askAfter("update repository_syncs set state = 'gone'", [], heading)).toEqual([]);
  });

  test.each(Object.keys(answers).filter((heading) => !/^(How far|What has happened)/.test(heading)))(
    "deleted rows: %s",
    async (heading) => {
      const tables = [
        "issues",
        "pull_requests",
        "issue_comments",
        "pull_request_reviews",
        "pull_request_review_comments",
        "workflow_runs",
      ];
      const deletion = tables.map((table) => `${table}_gone as (update ${table} set deleted_at = now())`).join(", ");
      expect(await askAfter(`with ${deletion} select`, [], heading)).toEqual([]);
    },
  );
});

describe("the read-only role", () => {
  const refused = { code: "42501" }; // insufficient_privilege

  test.each([
    "update issues set title = 'mine'",
    "delete from issues",
    "insert into selections (pattern, added_at) values ('a/b', now())",
    "truncate issues",
    "select nextval('revision')",
    "create table mine (id integer)",
    "drop table issues",
  ])("changes nothing: %s", async (statement) => {
    await expect(reader.query(statement)).rejects.toMatchObject(refused);
  });

  test.each([
    "select hash from api_tokens",
    "select etag from validators",
    "select payload from deliveries",
    "select detail from repositories",
    "select * from repositories",
  ])("reads no secret: %s", async (statement) => {
    await expect(reader.query(statement)).rejects.toMatchObject(refused);
  });

  test("every table is either granted or withheld on purpose, so that a new one is not forgotten", async () => {
    const rows = await world.ctx.db.query<{ table_name: string; is_readable: boolean }>(sql`
      select table_name, has_any_column_privilege(${ROLE}, format('public.%I', table_name), 'select') as is_readable
        from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE' order by table_name`);
    expect(rows.filter(({ is_readable }) => !is_readable).map(({ table_name }) => table_name)).toEqual([
      "activity",
      "api_tokens",
      "audit_log",
      "event_log",
      "events",
      "forwarded_answers",
      "found_changes",
      "listeners",
      "reader_repositories",
      "target_asks",
      "target_cursors",
      "target_deliveries",
      "targets",
      "token_owners",
      "turns",
      "validators",
      "writes",
    ]);
  });

  test("the page lists every table", async () => {
    const rows = await world.ctx.db.query<{ table_name: string }>(sql`
      select table_name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'`);
    expect(rows.map(({ table_name }) => table_name).filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  });

  test("a role made as the page says logs in, reads, and is read-only by itself too", async () => {
    const [block] = blocksOf(page).filter(({ language }) => language === "sql role");
    const { db } = world.ctx;
    await db.query(sql.script(block?.text ?? ""));
    try {
      const url = new URL(world.ctx.config.databaseUrl);
      url.username = "dashboards";
      url.password = "a long random text";
      const client = new pg.Client({ connectionString: url.href });
      await client.connect();
      try {
        expect((await client.query("select count(*)::int as issues from issues")).rows[0]?.issues).toBeGreaterThan(0);
        await expect(client.query("create temporary table mine (id integer)")).rejects.toMatchObject({ code: "25006" });
      } finally {
        await client.end();
      }
    } finally {
      await db.query(sql`drop role dashboards`);
    }
  });
});

async function ask(heading: string): Promise<Record<string, unknown>[]> {
  const question = questions.find((one) => one.heading === heading);
  return (await reader.query(question?.text ?? "")).rows;
}

/** The answer as it would be after a change, which is then taken back. */
async function askAfter(change: string, values: unknown[], heading: string): Promise<Record<string, unknown>[]> {
  const admin = await connectTo(world.ctx.config.databaseUrl);
  try {
    await admin.query("begin");
    await admin.query(change, values);
    return (await admin.query(questions.find((one) => one.heading === heading)?.text ?? "")).rows;
  } finally {
    await admin.end();
  }
}

async function numbers(heading: string): Promise<string[]> {
  return (await ask(heading)).map(({ repository, number }) => `${repository}#${number}`).sort();
}
