import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import pg from "pg";
import { type Database, openDatabase } from "../db/database.ts";
import type { Fields } from "../src/json.ts";
import { mergeObserved } from "../src/mirror/store/merge.ts";
import { joinObserved, observe, type Sighting } from "../src/mirror/store/observation.ts";
import { generateWorld } from "../src/simulator/generate/generate.ts";
import { openSimulator } from "../src/simulator/simulator.ts";
import { type BenchDatabase, openBenchDatabase, openKeptDatabase } from "./databases.ts";

/** How much there is to read. */
export interface CorpusSize {
  /** In all repositories together; a quarter of them are the issue sides of pull requests. */
  issues: number;
  repositories: number;
  /** How many of them the first repository has; absent: all have the same. */
  largest?: number;
  /** Mean number of comments of an issue; few have many. Default 2. */
  commentsPerIssue?: number;
}

export interface CorpusRepository {
  id: number;
  fullName: string;
  /** Its issues are numbered from 1 to this without a gap. */
  issues: number;
}

export interface Corpus {
  database: BenchDatabase;
  /** The largest first. All are public, live, and confirmed. */
  repositories: CorpusRepository[];
  /** A user who owns nothing. */
  userId: number;
}

const corpora = new Map<string, Promise<Corpus>>();

/** A database with so many issues, filled once per run and size. It is only read: a benchmark that writes copies it. */
export function openCorpus(size: CorpusSize): Promise<Corpus> {
  const key = JSON.stringify(size);
  const known = corpora.get(key) ?? (isKept(size) ? openKept(key, size) : openFilled(size));
  corpora.set(key, known);
  return known;
}

/**
 * `KEEP_CORPORA=1`, with a server of one's own (`TEST_DATABASE_URL`): what takes minutes to be filled stays there for
 * later runs, until the schema changes. No benchmark writes to corpora so large.
 */
const isKept = ({ issues }: CorpusSize) => process.env.KEEP_CORPORA === "1" && issues >= 1_000_000;

async function openKept(key: string, size: CorpusSize): Promise<Corpus> {
  const schema = readdirSync(new URL("../db/migrations", import.meta.url))
    .sort()
    .join();
  const name = `corpus_${createHash("sha256").update(`${key}\n${schema}`).digest("hex").slice(0, 12)}`;
  return corpusIn(await openKeptDatabase(name, (database) => fillCorpus(database, size)), size);
}

async function openFilled(size: CorpusSize): Promise<Corpus> {
  const database = await openBenchDatabase();
  await fillCorpus(database, size);
  return corpusIn(database, size);
}

export function corpusIn(database: BenchDatabase, size: CorpusSize): Corpus {
  return { database, repositories: repositoriesOf(size), userId: FIRST_USER };
}

/** Issues that are merged as upstream sends them; all others are made of these by SQL. */
const TEMPLATE_ISSUES = 300;
const TEMPLATE_PULLS = 100;
/** So many issues an account has written, at the mean. A fifth of them write most. */
const ISSUES_PER_AUTHOR = 5;
const FIRST_USER = 4_000_000_000;
const FIRST_REPOSITORY = 3_000_000_000;
/** More than any repository has issues, or any issue comments. */
const NUMBERS = 10_000_000;
const REMARKS = 1_000;
const CHUNK = 50_000;
const CONNECTIONS = 2;

/**
 * Fills an empty, migrated database. A few hundred issues of the simulator's are merged by the mirror's own rule;
 * copies of their rows, with numbers, ids, times, authors and addresses of their own, make up the rest. The words to
 * search by are copied too: their columns are no longer generated, which makes a difference to writers alone.
 */
export async function fillCorpus(database: BenchDatabase, size: CorpusSize): Promise<void> {
  const db = openDatabase(database.url, { maxConnections: CONNECTIONS, applicationName: "bench corpus" });
  // Its statements copy rows by the million and are nothing like the mirror's own.
  const pool = new pg.Pool({ connectionString: database.url, max: CONNECTIONS, application_name: "bench corpus" });
  try {
    const template = await mergeTemplate(db, size.commentsPerIssue ?? 2);
    await prepareTemplates(pool, template);
    const users = Math.max(200, Math.floor(size.issues / ISSUES_PER_AUTHOR));
    await pool.query(COPY_USERS, [FIRST_USER, users]);
    const repositories = repositoriesOf(size);
    for (const { id, fullName } of repositories) await copyRepository(pool, template, { id, fullName });
    const indexes = await dropIndexes(pool);
    const chunks = repositories.flatMap(({ id, issues }) =>
      Array.from({ length: Math.ceil(issues / CHUNK) }, (_, at) => ({
        values: [id, at * CHUNK + 1, Math.min((at + 1) * CHUNK, issues), issues, FIRST_USER, users],
      })),
    );
    const fill = async () => {
      for (let chunk = chunks.shift(); chunk; chunk = chunks.shift())
        for (const text of COPIES) await pool.query(text, chunk.values);
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, fill));
    await finish(pool, template.id, indexes);
  } finally {
    await Promise.all([db.close(), pool.end()]);
  }
}

interface Template {
  id: number;
  fullName: string;
}

/** One repository of the simulator's as a backfill reads it. */
async function mergeTemplate(db: Database, commentsPerIssue: number): Promise<Template> {
  await using simulator = await openSimulator({
    seed: 1,
    worldOptions: { mergeableDelayMs: 0 },
    tokens: [{ token: "bench-token", login: "mirror-owner", repositories: "all", write: true }],
  });
  const { world, url: api } = simulator;
  generateWorld(world, {
    seed: 1,
    repositories: 1,
    issues: TEMPLATE_ISSUES,
    pulls: TEMPLATE_PULLS,
    commentsPerIssue,
  });
  const first = [...world.repositories.values()].find(({ fork }) => !fork);
  if (!first) throw new Error("The simulator made no repository");
  const fullName = world.fullName(first);
  const get = async (path: string): Promise<unknown> => {
    const answer = await fetch(`${api}/repos/${fullName}${path}`, { headers: { authorization: "Bearer bench-token" } });
    if (!answer.ok) throw new Error(`GET ${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  };
  const whole = (await get("")) as Fields;
  const at: Sighting = {
    api,
    repository: { id: first.id, fullName, htmlUrl: whole.html_url as string },
    seenAt: new Date(),
    read: true,
  };
  await db.transaction((tx) => mergeObserved(tx, observe("repository", whole, { ...at, isSingle: true })));
  const lists = [
    ["label", "/labels"],
    ["milestone", "/milestones?state=all"],
    ["issue", "/issues?state=all"],
    ["issue_comment", "/issues/comments"],
  ] as const;
  for (const [kind, path] of lists) {
    for (let page = 1; ; page++) {
      const rows = (await get(`${path}${path.includes("?") ? "&" : "?"}per_page=100&page=${page}`)) as Fields[];
      if (rows.length > 0)
        await db.transaction((tx) => mergeObserved(tx, joinObserved(rows.map((row) => observe(kind, row, at)))));
      if (rows.length < 100) break;
    }
  }
  return { id: first.id, fullName };
}

/** Copies of the template's rows whose documents have `⟦…⟧` where each copy has something of its own. */
async function prepareTemplates(pool: pg.Pool, { id }: Template): Promise<void> {
  await pool.query(`
    alter table issues alter column search drop expression;
    alter table issue_comments alter column search drop expression;
    create table corpus_users as select row_number() over (order by id) - 1 as at, *, document::text as text from users where type = 'User';
    create table corpus_issues as select row_number() over (order by number) - 1 as at, *, document::text as text from issues where repository_id = ${id};
    create table corpus_comments as select row_number() over (partition by issue_number order by id) as at, *, document::text as text
      from issue_comments where repository_id = ${id};
    delete from corpus_comments where at >= ${REMARKS};
    create table corpus_labels as select * from issue_labels where repository_id = ${id};
    create table corpus_assignees as select * from issue_assignees where repository_id = ${id}`);
  const cut = async (table: string, key: string, change: (text: string, row: Record<string, string>) => string) => {
    const { rows } = await pool.query(`select * from ${table}`);
    const texts = rows.map((row) => change(row.text as string, row));
    await pool.query(
      `update ${table} t set text = x.text from unnest($1::bigint[], $2::text[]) as x(key, text) where t.${key} = x.key`,
      [rows.map((row) => row[key]), texts],
    );
  };
  const times = (text: string) =>
    text
      .replace(/"created_at":"[^"]*"/, '"created_at":"⟦created⟧"')
      .replace(/"updated_at":"[^"]*"/, '"updated_at":"⟦updated⟧"')
      .replace(/"closed_at":"[^"]*"/, '"closed_at":"⟦updated⟧"');
  const identity = (text: string) =>
    text.replace(/"id":\d+/, '"id":⟦id⟧').replace(/"node_id":"[^"]*"/, '"node_id":"⟦node⟧"');
  const author = (text: string) => text.replace(/"(user|closed_by)":"\\u0005u\d+/g, '"$1":"\\u0005u⟦author⟧');
  await cut("corpus_users", "id", (text, row) =>
    identity(text)
      .replace(`"login":"${row.login}"`, '"login":"⟦login⟧"')
      .replaceAll(`\\u0002/users/${row.login}`, "\\u0002/users/⟦login⟧")
      .replace(/("html_url":"[^"]*\/)[^"/]*"/, '$1⟦login⟧"'),
  );
  await cut("corpus_issues", "number", (text) =>
    author(times(identity(text)))
      .replace(/"number":\d+/, '"number":⟦number⟧')
      .replace(/(\\u000[13]\/(?:issues|pulls?)\/)\d+/g, "$1⟦number⟧"),
  );
  await cut("corpus_comments", "id", (text, { id: comment }) =>
    author(times(identity(text)))
      .replaceAll(String(comment), "⟦id⟧")
      .replace(/(\\u000[13]\/(?:issues|pulls?)\/)\d+/g, "$1⟦number⟧"),
  );
}

function repositoriesOf({ issues, repositories, largest }: CorpusSize): CorpusRepository[] {
  const first = largest ?? Math.ceil(issues / repositories);
  const others = repositories > 1 ? Math.floor((issues - first) / (repositories - 1)) : 0;
  return Array.from({ length: repositories }, (_, at) => ({
    id: FIRST_REPOSITORY + at,
    fullName: `octo-works/corpus-${at}`,
    issues: at === 0 ? first : others,
  }));
}

/** Labels and milestones keep their ids, which are unique within a repository here. */
async function copyRepository(pool: pg.Pool, from: Template, { id, fullName }: Template): Promise<void> {
  const name = fullName.slice(fullName.indexOf("/") + 1);
  const was = from.fullName.slice(from.fullName.indexOf("/") + 1);
  const columns = "owner_id, visibility, description, fork, archived, disabled, has_issues, default_branch, language";
  await pool.query(
    `insert into repositories (id, node_id, name, full_name, html_url, private, ${columns}, stargazers_count, forks_count,
        open_issues_count, size, created_at, updated_at, pushed_at, detail, document, seen_at, seen_by_read)
      select $1::bigint, 'R_' || $1::bigint, $2, $3, replace(html_url, $5, $3), false, ${columns}, stargazers_count, forks_count,
        open_issues_count, size, created_at, updated_at, pushed_at, replace(detail::text, $5, $3)::json,
        replace(replace(replace(document::text, '"id":' || $4::bigint, '"id":' || $1::bigint), $5, $3), '"name":"' || $6 || '"', '"name":"' || $2 || '"')::json,
        seen_at, seen_by_read from repositories where id = $4`,
    [id, name, fullName, from.id, from.fullName, was],
  );
  await pool.query(
    `insert into repository_syncs (repository_id, state, added_at, backfilled_at, confirmed_at) values ($1, 'live', now(), now(), now())`,
    [id],
  );
  for (const [table, columns] of [
    ["labels", 'id, node_id, name, color, description, "default", updated_at, document, seen_at, seen_by_read'],
    [
      "milestones",
      "id, node_id, number, title, description, state, creator_id, open_issues, closed_issues, created_at, updated_at, due_on, closed_at, document, seen_at, seen_by_read",
    ],
  ])
    await pool.query(
      `insert into ${table} (repository_id, ${columns}) select $1, ${columns} from ${table} where repository_id = $2`,
      [id, from.id],
    );
}

/** When an issue was made: numbers grow with time, over ten years. */
export function createdAt(number: number, issues: number): Date {
  return new Date(Math.floor((Date.parse(FIRST_DAY) + DAYS * 86_400_000 * (number / issues)) / 1_000) * 1_000);
}
const FIRST_DAY = "2015-01-01T00:00:00Z";
const DAYS = 3_653;

/** A number in [0, 1) that depends on the row alone. */
const chance = (seed: number) =>
  `((hashint8extended($1::bigint * ${NUMBERS} + n, ${seed}) & 1048575)::float8 / 1048576)`;
const instantText = (sql: string) => `to_char(${sql} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`;

/** $1 the first id, $2 how many. */
const COPY_USERS = `
  insert into users (id, node_id, login, type, name, avatar_url, site_admin, updated_at, document, seen_at, seen_by_read)
  select x.id, 'U_' || x.id, x.login, t.type, t.name, t.avatar_url, t.site_admin, t.updated_at,
    replace(replace(replace(t.text, '⟦id⟧', x.id::text), '⟦node⟧', 'U_' || x.id), '⟦login⟧', x.login)::json, t.seen_at, t.seen_by_read
  from (select n, $1::bigint + n as id, 'person-' || to_hex(n::bigint * 7919) as login from generate_series(0, $2::integer - 1) as n) x
  join corpus_users t on t.at = x.n % (select count(*) from corpus_users)`;

/**
 * $1 the repository, $2 and $3 the first and last number, $4 how many there are in it, $5 the first user, $6 how many
 * of them. Numbers grow with time over ten years; most change soon after they were made, some much later.
 */
const COPIED_ISSUES = `
  from (select n, ($1::bigint - ${FIRST_REPOSITORY}) * ${NUMBERS} + n as id, floor(${chance(1)} * ${TEMPLATE_ISSUES + TEMPLATE_PULLS})::integer as at,
      $5::bigint + floor($6::integer * ${chance(2)} ^ 3)::bigint as author, created,
      date_trunc('second', created + least(interval '400 days' * ${chance(3)} ^ 4, interval '${DAYS} days' * (1 - n / $4::float8))) as updated
    from generate_series($2::integer, $3::integer) as n
    cross join lateral (select date_trunc('second', timestamptz '${FIRST_DAY}' + interval '${DAYS} days' * (n / $4::float8)) as created) c) x
  join corpus_issues t on t.at = x.at`;

const COPIES = [
  `insert into issues (repository_id, number, id, node_id, is_pull_request, title, body, state, state_reason, locked, active_lock_reason,
      draft, user_id, author_association, milestone_id, comments, closed_by_id, created_at, updated_at, closed_at, search, document, seen_at, seen_by_read)
    select $1::bigint, x.n, x.id, 'I_' || x.id, t.is_pull_request, t.title, t.body, t.state,
      t.state_reason, t.locked, t.active_lock_reason, t.draft, case when t.user_id is not null then x.author end, t.author_association, t.milestone_id,
      t.comments, case when t.closed_by_id is not null then x.author end, x.created, x.updated, case when t.closed_at is not null then x.updated end, t.search,
      replace(replace(replace(replace(replace(replace(t.text, '⟦number⟧', x.n::text), '⟦id⟧', x.id::text),
        '⟦node⟧', 'I_' || x.id), '⟦created⟧', ${instantText("x.created")}), '⟦updated⟧', ${instantText("x.updated")}),
        '⟦author⟧', x.author::text)::json, t.seen_at, t.seen_by_read ${COPIED_ISSUES}`,
  `insert into issue_labels (repository_id, label_id, number, state, is_pull_request, is_shown, created_at)
    select $1, l.label_id, x.n, t.state, t.is_pull_request, true, x.created ${COPIED_ISSUES} join corpus_labels l on l.number = t.number`,
  `insert into issue_assignees (repository_id, user_id, number) select $1, a.user_id, x.n ${COPIED_ISSUES} join corpus_assignees a on a.number = t.number`,
  `insert into issue_comments (repository_id, id, node_id, issue_number, user_id, author_association, body, created_at, updated_at, search, document, seen_at, seen_by_read)
    select $1, y.id, 'IC_' || y.id, x.n, case when c.user_id is not null then x.author end, c.author_association, c.body, y.created, y.created, c.search,
      replace(replace(replace(replace(replace(replace(c.text, '⟦number⟧', x.n::text), '⟦id⟧', y.id::text), '⟦node⟧', 'IC_' || y.id),
        '⟦created⟧', ${instantText("y.created")}), '⟦updated⟧', ${instantText("y.created")}), '⟦author⟧', x.author::text)::json, c.seen_at, c.seen_by_read
    ${COPIED_ISSUES} join corpus_comments c on c.issue_number = t.number
    cross join lateral (select x.id * ${REMARKS} + c.at as id, x.created + c.at * interval '17 minutes' as created) y`,
];

interface Index {
  name: string;
  definition: string;
}

/** Building an index at the end is several times quicker than keeping it. */
async function dropIndexes(pool: pg.Pool): Promise<Index[]> {
  const { rows } = await pool.query<Index>(
    `select indexname as name, indexdef as definition from pg_indexes
      where schemaname = 'public' and tablename = any($1) and indexname not in (select conname from pg_constraint)`,
    [["issues", "issue_labels", "issue_assignees", "issue_comments"]],
  );
  for (const { name } of rows) await pool.query(`drop index ${pg.escapeIdentifier(name)}`);
  return rows;
}

async function finish(pool: pg.Pool, templateId: number, indexes: Index[]): Promise<void> {
  for (const table of ["issues", "issue_labels", "issue_assignees", "issue_comments", "labels", "milestones"])
    await pool.query(`delete from ${table} where repository_id = $1`, [templateId]);
  await pool.query("delete from pull_requests");
  await pool.query("delete from repositories where id = $1", [templateId]);
  for (const name of ["users", "issues", "comments", "labels", "assignees"])
    await pool.query(`drop table corpus_${name}`);
  const left = [...indexes];
  const build = async () => {
    const client = await pool.connect();
    try {
      await client.query("set maintenance_work_mem = '256MB'");
      for (let index = left.shift(); index; index = left.shift()) await client.query(index.definition);
    } finally {
      client.release();
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, build));
  await pool.query("vacuum analyze");
}
