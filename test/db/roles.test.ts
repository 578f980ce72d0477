/** Each process has the rights that it needs and no others. All other tests run their processes with these rights. */
import type pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { migrate } from "../../db/migrate.ts";
import { openLogins } from "../../db/roles.ts";
import { blocksOf, readPage } from "../docs/markdown.ts";
import { asRole, connectTo, openTestDatabase, type TestDatabase } from "../support/database.ts";
import { openOwnStores } from "../support/own-stores.ts";

/** insufficient_privilege */
const refused = { code: "42501" };

let database: TestDatabase;
let web: pg.Client;
let worker: pg.Client;
beforeAll(async () => {
  database = await openTestDatabase();
  web = await connectTo(asRole(database.url, "tain_web"));
  worker = await connectTo(asRole(database.url, "tain_worker"));
});
afterAll(async () => {
  await web.end();
  await worker.end();
  await database.drop();
});

/** The statements that are not refused for want of a right. */
async function allowed(as: pg.Client, statements: readonly string[]): Promise<string[]> {
  const outcomes: (string | undefined)[] = [];
  for (const statement of statements)
    outcomes.push(
      await as.query(statement).then(
        () => "done",
        (error: pg.DatabaseError) => error.code,
      ),
    );
  return statements.filter((_, at) => outcomes[at] !== "42501");
}

/** Statements that only the migration's role may run. */
const SCHEMA = [
  "create table mine (id integer)",
  "alter table issues add column mine text",
  "drop table issues",
  "truncate issues",
  "create function mine() returns integer language sql as 'select 1'",
  "drop index issues_pkey",
  "create role another",
  "delete from schema_migrations",
  "insert into schema_migrations (version, name, oldest_tain) values (9999, 'x', '9.9.9')",
  "update origin set upstream = 'https://another.example'",
];

test("a web process changes neither the schema nor how the mirror follows, and reads no webhook", async () => {
  expect(
    await allowed(web, [
      ...SCHEMA,
      "insert into api_tokens (hash, user_id, can_write, created_at) values ('x', 1, true, now())",
      "update api_tokens set can_write = true",
      "update api_tokens set expires_at = null, revoked_at = null",
      "delete from api_tokens",
      "update repository_syncs set state = 'live'",
      "insert into selections (pattern, added_at) values ('a/b', now())",
      "delete from selections",
      "update installations set permissions = '{}'",
      "delete from sweeps",
      "delete from audits",
      "select payload from deliveries",
      "select * from deliveries",
      "delete from deliveries",
      "update deliveries set payload = ''",
      "delete from issues",
      "delete from repositories",
      "delete from refresh_marks",
      "delete from writes",
      "update writes set token = null",
      "select token from writes",
      "insert into token_owners (fingerprint, user_id, login) values ('x', 1, 'x')",
    ]),
  ).toEqual([]);
});

test("a worker changes neither the schema nor a token's rights, and reads no token", async () => {
  expect(
    await allowed(worker, [
      ...SCHEMA,
      "select hash from api_tokens",
      "select * from api_tokens",
      "update api_tokens set can_write = true",
      "update api_tokens set expires_at = null",
      "update api_tokens set hash = 'x'",
      "delete from api_tokens",
      "update writes set status = 200",
      "select * from forwarded_answers",
    ]),
  ).toEqual([]);
});

test("a revoked token stays revoked, whoever may write the column", async () => {
  const owner = await connectTo(database.url);
  await owner.query(
    "insert into api_tokens (hash, user_id, can_write, created_at, revoked_at) values ('revoked', 1, true, now(), now())",
  );
  await worker.query("update api_tokens set revoked_at = coalesce(revoked_at, now()) where id = 'revoked'");
  for (const moment of ["null", "now() + interval '1 day'"])
    await expect(worker.query(`update api_tokens set revoked_at = ${moment}`)).rejects.toThrow(/stays revoked/);
  await owner.query("delete from api_tokens");
  await owner.end();
});

test("each table is granted or withheld on purpose, so that a new one is not forgotten", async () => {
  const withheld = async (role: string, right: string) => {
    const { rows } = await web.query<{ name: string }>(
      `select c.relname::text as name from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
        and not has_any_column_privilege($1, c.oid, $2) order by name`,
      [role, right],
    );
    return rows.map(({ name }) => name);
  };
  const following = [
    "audit_pages",
    "audits",
    "backfill_phases",
    "checked_commits",
    "commit_lists",
    "commits",
    "deployment_lists",
    "deployment_status_lists",
    "event_log",
    "events",
    "exclusive_work",
    "graphql_sizes",
    "hook_checks",
    "hook_subscriptions",
    "installation_repositories",
  ];
  const followed = [
    "installations",
    "issue_event_lists",
    "listed_people",
    "origin",
    "people_lists",
    "problems",
    "pull_request_commits",
    "pull_request_files",
    "pull_request_threads",
    "reader_repositories",
    "ref_lists",
    "release_lists",
    "repository_syncs",
    "schema_migrations",
    "selections",
    "sweeps",
  ];
  expect(await withheld("tain_web", "select")).toEqual(["reader_repositories"]);
  expect(await withheld("tain_web", "insert")).toEqual([
    "api_tokens",
    ...following,
    ...followed.toSpliced(3, 0, "mirrored_lists"),
    "target_cursors",
    "target_deliveries",
    "token_owners",
    "upkeep",
    "upstream_lacks",
    "workflow_job_lists",
    "workflow_lists",
    "workflow_run_lists",
  ]);
  expect(await withheld("tain_web", "update")).toEqual([
    ...following,
    ...followed.toSpliced(3, 0, "listeners"),
    "target_deliveries",
    "token_owners",
    "upkeep",
    "upstream_lacks",
    "workflow_job_lists",
    "workflow_lists",
    "workflow_run_lists",
  ]);
  expect(await withheld("tain_worker", "select")).toEqual(["forwarded_answers"]);
  expect(await withheld("tain_worker", "update")).toEqual([
    "eras",
    "forwarded_answers",
    "listeners",
    "origin",
    "reader_repositories",
    "schema_migrations",
    "writes",
  ]);
});

test("a web process enters acts in the audit log, and neither reads nor deletes them; a worker changes none", async () => {
  for (const statement of ["select * from audit_log", "delete from audit_log", "update audit_log set actor = 'x'"])
    await expect(web.query(statement)).rejects.toMatchObject(refused);
  for (const statement of ["update audit_log set actor = 'x'", "update audit_log set at = now()"])
    await expect(worker.query(statement)).rejects.toMatchObject(refused);
});

test("rights that were granted by hand are gone after the next migration", async () => {
  const owner = await connectTo(database.url);
  await owner.query("grant delete on issues to tain_web");
  await web.query("delete from issues");
  expect(await migrate(database.url)).toBeNull();
  await expect(web.query("delete from issues")).rejects.toMatchObject(refused);
  await owner.end();
});

test("a user who may not make roles migrates all the same, and is told what is missing", async () => {
  await using stores = await openOwnStores();
  await using clients = new AsyncDisposableStack();
  const connect = async (address: string) => clients.adopt(await connectTo(address), (client) => client.end());
  const owner = await connect(stores.postgres.url);
  await owner.query("create role plain login password 'plain'");
  await owner.query("create database theirs owner plain");
  const url = new URL(stores.postgres.url);
  Object.assign(url, { username: "plain", password: "plain", pathname: "/theirs" });
  expect(await migrate(url.href)).toBe(
    "This user may not make the roles tain_reader, tain_web, tain_worker: let a superuser run " +
      "`create role tain_reader; create role tain_web; create role tain_worker`, and migrate again. Until then all processes have the rights of one user",
  );
  // The next migration grants what it can.
  for (const role of ["tain_reader", "tain_web", "tain_worker"]) await owner.query(`create role ${role}`);
  expect(await migrate(url.href)).toBeNull();
  url.username = new URL(stores.postgres.url).username;
  url.password = new URL(stores.postgres.url).password;
  const web = await connect(asRole(url.href, "tain_web"));
  await expect(web.query("select count(*) from issues")).resolves.toMatchObject({ rowCount: 1 });
  await expect(web.query("delete from issues")).rejects.toMatchObject(refused);
});

test("the logins of the operator's page have the rights of their roles", async () => {
  const [block] = blocksOf(readPage("docs/operations.md")).filter(({ language }) => language === "sql logins");
  const owner = await connectTo(database.url);
  await owner.query(block?.text ?? "");
  try {
    const url = new URL(database.url);
    Object.assign(url, { username: "tain_worker_login", password: "another long random text" });
    const client = await connectTo(url.href);
    await expect(client.query("select count(*) from deliveries")).resolves.toMatchObject({ rowCount: 1 });
    await expect(client.query("select hash from api_tokens")).rejects.toMatchObject(refused);
    await client.end();
  } finally {
    await owner.query("drop role tain_web_login, tain_worker_login");
    await owner.end();
  }
});

test("logins are for the processes alone, each with a password of its own", async () => {
  await using stores = await openOwnStores();
  const { url } = stores.postgres;
  await migrate(url);
  const first = await openLogins(url);
  const logins = await openLogins(url);
  expect(new URL(logins.web).password).not.toBe(new URL(logins.worker).password);
  for (const [login, statement] of [
    [logins.web, "select payload from deliveries"],
    [logins.worker, "select hash from api_tokens"],
  ] as const) {
    const client = await connectTo(login);
    await expect(client.query("select count(*) from issues")).resolves.toMatchObject({ rowCount: 1 });
    await expect(client.query(statement)).rejects.toMatchObject(refused);
    await expect(client.query("set role tain")).rejects.toMatchObject(refused);
    await client.end();
  }
  // The logins of a start before do not work any more.
  await expect(connectTo(first.web)).rejects.toMatchObject({ code: "28P01" });
});
