/** `tain sql`, `tain export` and `tain readers`. */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { parquetReadObjects } from "hyparquet";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { main } from "../../src/cli/main.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { projectRoot } from "../docs/markdown.ts";
import { inherited } from "../support/config.ts";
import { connectTo } from "../support/database.ts";
import { openOwnStores } from "../support/own-stores.ts";
import { until } from "../support/patience.ts";
import { openWorld, type TestWorld } from "../support/world.ts";
import { tainOn, tainProcessOn } from "./tain-on.ts";

const VIEWS =
  "checks, collaborators, comments, commits, deployments, events, issue_events, issues, labels, milestones, organization_members, pull_requests, refs, releases, repositories, repository_teams, review_comments, reviews, team_members, users, workflow_jobs, workflow_runs and workflows";

let world: TestWorld;
let owner: pg.Client;
let names: string[];
beforeAll(async () => {
  world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 2, issues: 30, pulls: 6 }),
  });
  names = [...world.simulator.world.repositories.values()]
    .filter(({ fork }) => !fork)
    .map((one) => world.simulator.world.fullName(one));
  await world.mirror(...names);
  owner = await connectTo(world.ctx.config.databaseUrl);
});
afterAll(async () => {
  await owner?.end();
  await world?.[Symbol.asyncDispose]();
});

/** Runs `tain` with something to read, or with somebody at a terminal. */
async function tainReading(
  args: readonly string[],
  stdin: Readable & { isTTY?: boolean },
  env: NodeJS.ProcessEnv = {},
) {
  const said = { stdout: "", stderr: "" };
  const stream = (name: keyof typeof said) => ({
    write: (more: string) => {
      said[name] += more;
    },
  });
  const { databaseUrl } = world.ctx.config;
  const code = await main(
    args,
    { ...inherited, DATABASE_URL: databaseUrl, ...env },
    {
      stdin,
      stdout: stream("stdout"),
      stderr: stream("stderr"),
    },
  );
  return { code, ...said };
}

describe("a query", () => {
  test("is answered as a table, in a process of its own", async () => {
    const { code, stdout, stderr } = await tainProcessOn(world, [
      "sql",
      "select repository, count(*) as issues from issues group by 1 order by 1",
    ]);
    const { rows } = await owner.query("select repository, count(*) from tain_v1.issues group by 1 order by 1");
    const [head, ...lines] = stdout.trimEnd().split("\n");
    expect(head).toMatch(/^repository +issues$/);
    expect(lines.map((line) => line.split(/ +/))).toEqual(rows.map(({ repository, count }) => [repository, count]));
    expect({ code, stderr }).toEqual({ code: 0, stderr: "(2 rows)\n" });
  });

  const VALUES = `select 1 as one, 12345678901234567890 as big, 0.10 as exact, true as yes, null as nothing, '' as empty,
    e'a "b",\\nc' as text, array['x', 'y,z'] as texts, array[1, null] as numbers, '{"a": [1,\n2]}'::json as json,
    timestamptz '2026-01-02 03:04:05.5+02' as at, float8 'NaN' as nan`;

  test("as CSV, as Postgres writes it", async () => {
    const { stdout } = await tainOn(world, ["sql", "--format", "csv", VALUES]);
    expect(stdout).toBe(
      "one,big,exact,yes,nothing,empty,text,texts,numbers,json,at,nan\n" +
        '1,12345678901234567890,0.10,t,,"","a ""b"",\nc","{x,""y,z""}","{1,NULL}",' +
        '"{""a"": [1,\n2]}",2026-01-02 01:04:05.5+00,NaN\n',
    );
  });

  test.each([[["--format", "jsonl"]], [["--json"]]])(
    "as a line of JSON for each row, with all digits: %s",
    async (options) => {
      const { stdout } = await tainOn(world, ["sql", VALUES, ...options]);
      expect(stdout).toBe(
        '{"one":1,"big":12345678901234567890,"exact":0.10,"yes":true,"nothing":null,"empty":"",' +
          '"text":"a \\"b\\",\\nc","texts":["x","y,z"],"numbers":[1,null],"json":{"a": [1, 2]},' +
          '"at":"2026-01-02T01:04:05.5Z","nan":"NaN"}\n',
      );
    },
  );

  /** Runs `tain` and answers the bytes that it writes. */
  async function bytesOf(args: readonly string[], isTTY = false) {
    const pieces: Buffer[] = [];
    let stderr = "";
    const code = await main(
      args,
      { ...inherited, DATABASE_URL: world.ctx.config.databaseUrl },
      {
        stdout: { write: (piece) => pieces.push(Buffer.from(piece)), isTTY },
        stderr: { write: (text) => (stderr += text) },
      },
    );
    const { buffer, byteOffset, byteLength } = Buffer.concat(pieces);
    return { code, stderr, file: buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer };
  }

  test("as Parquet, with types, null beside empty, and times to the microsecond", async () => {
    const { code, file } = await bytesOf([
      "sql",
      "--format",
      "parquet",
      `${VALUES} union all select 2, 7, null, null, null,
      null, null, '{}', null, null, null, null order by one`,
    ]);
    expect(code).toBe(0);
    const rows = await parquetReadObjects({
      file,
      parsers: { timestampFromMicroseconds: (at) => at },
    });
    expect(rows).toEqual([
      {
        one: 1,
        big: "12345678901234567890",
        exact: "0.10",
        yes: true,
        nothing: null,
        empty: "",
        text: 'a "b",\nc',
        texts: ["x", "y,z"],
        numbers: [1, null],
        json: '{"a": [1,\n2]}',
        at: 1_767_315_845_500_000n,
        nan: Number.NaN,
      },
      {
        ...Object.fromEntries(Object.keys(rows[0] ?? {}).map((name) => [name, null])),
        // The reader's word for a list that is null.
        ...{ one: 2, big: "7", texts: [], numbers: undefined },
      },
    ]);
    expect(
      await parquetReadObjects(await bytesOf(["sql", "--format", "parquet", "select 1 as one where false"])),
    ).toEqual([]);
  });

  test.each([
    ["select 1 as a, 2 as a", "Parquet needs a name of its own for each column: give them with `as`"],
    ["select timestamptz 'infinity' as at", "Parquet has no time infinity: cast it to text"],
    ["select array[array['x']] as texts", "Parquet takes no arrays within arrays here: cast them to text"],
  ])("as Parquet is refused for %s", async (query, sentence) => {
    const { code, stderr, file } = await bytesOf(["sql", "--format", "parquet", query]);
    expect({ code, stderr, length: file.byteLength }).toEqual({ code: 1, stderr: `tain: ${sentence}\n`, length: 0 });
  });

  test("as Parquet is not written to a terminal", async () => {
    const stderr = "tain: Parquet is for programs, and the output is a terminal: send it to a file with > FILE\n";
    expect(await bytesOf(["sql", "--format", "parquet", "select 1 as one"], true)).toMatchObject({ code: 2, stderr });
    expect(await bytesOf(["export", "labels", "--format", "parquet"], true)).toMatchObject({ code: 2, stderr });
  });

  test("is read from the input if none is given", async () => {
    const { code, stdout } = await tainReading(["sql", "--format", "csv"], Readable.from(["select 1\n", "as one\n"]));
    expect({ code, stdout }).toEqual({ code: 0, stdout: "one\n1\n" });
  });

  test("may be of any kind that reads, and answers nothing at all", async () => {
    expect((await tainOn(world, ["sql", "show timezone"])).stdout).toContain("UTC");
    expect((await tainOn(world, ["sql", "explain select from issues"])).stdout).toContain("Subquery Scan");
    const { code, stdout, stderr } = await tainOn(world, ["sql", "select number from issues where false"]);
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: "number\n", stderr: "(0 rows)\n" });
  });

  test("cannot move the terminal's cursor, and long values are cut", async () => {
    const { stdout } = await tainOn(world, ["sql", `select e'\\x1b[2J' as clear, repeat('x', 500) as long`]);
    expect(stdout).not.toContain("\x1b[2J");
    expect(stdout).toContain(`${"x".repeat(79)}…`);
    expect(stdout).not.toContain("x".repeat(80));
  });
});

describe("what is refused", () => {
  test.each([
    [
      "selekt 1",
      'Postgres refuses the query at line 1, column 1: syntax error at or near "selekt". One query is run, without psql\'s own commands',
    ],
    [
      "select\n  nombre from issues",
      'Postgres refuses the query at line 2, column 3: column "nombre" does not exist. Perhaps you meant to reference the column "issues.number"',
    ],
    [
      "select * from isues",
      `Postgres refuses the query at line 1, column 15: relation "isues" does not exist. The views are ${VIEWS}`,
    ],
    [
      "select * from tain_v1.isues",
      `Postgres refuses the query at line 1, column 15: relation "tain_v1.isues" does not exist. The views are ${VIEWS}`,
    ],
    [
      "update public.issues set title = 'mine'",
      "Postgres refuses the query: cannot execute UPDATE in a read-only transaction. The mirror is only read: what it holds is upstream's",
    ],
    [
      "select hash from api_tokens",
      "Postgres refuses the query: permission denied for table api_tokens. tain_reader reads the views and most tables, and writes nothing (docs/sql.md)",
    ],
    [
      "select 1; drop table issues",
      "Postgres refuses the query: cannot insert multiple commands into a prepared statement. One query is run, without psql's own commands",
    ],
    ["select 1/0", "Postgres refuses the query: division by zero"],
    ["select 1/(number - 1) from issues order by number desc", "Postgres refuses the query: division by zero"],
  ])("%s", async (query, sentence) => {
    const { rows } = await owner.query("select count(*) from issues");
    const { code, stdout, stderr } = await tainOn(world, ["sql", query, "--format", "csv"]);
    expect({ code, stdout, stderr }).toEqual({ code: 1, stdout: "", stderr: `tain: ${sentence}\n` });
    expect((await owner.query("select count(*) from issues")).rows).toEqual(rows);
  });

  test.each([
    [["sql", "select", "1"], "tain sql takes one query: put it in quotes"],
    [["sql", " "], "tain sql needs a query: tain sql 'select count(*) from issues'"],
    [["sql", "select 1", "--format", "xml"], "--format takes table, csv, jsonl or parquet, and not xml"],
    [["sql", "/* all */\ncopy issues to stdout"], "tain sql runs no copy: write the query alone, and --format csv"],
    [["export"], `tain export needs to know what: ${VIEWS.replace(" and ", " or ")}`],
    [["export", "isues"], `tain export does not know isues: ${VIEWS.replace(" and ", " or ")}`],
    [["export", "issues", "labels"], `tain export takes one kind: ${VIEWS.replace(" and ", " or ")}`],
    [["export", "issues", "--format", "table"], "--format takes csv, jsonl or parquet, and not table"],
    [["export", "issues", "--repo", "octo"], "octo is not owner/name: the owner is missing, or the name"],
    [["export", "users", "--repo", "a/b"], "tain export users is of all repositories: leave out --repo"],
    [["readers", "create", "team_a"], "tain readers create needs to know what the role may read: --repos owner/name"],
    [["readers", "create", "--repos", "a/b"], "tain readers create takes the name of one role"],
    [
      ["readers", "create", "tain_web", "--repos", "a/b"],
      "tain_web is no name for a reader: use small letters, digits and _, and begin with neither pg_ nor tain_",
    ],
    [
      ["readers", "drop", 'a"; drop table issues'],
      'a"; drop table issues is no name for a reader: use small letters, digits and _, and begin with neither pg_ nor tain_',
    ],
  ])("%j makes no sense", async (args, sentence) => {
    const { code, stdout, stderr } = await tainOn(world, args);
    expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: "", stderr: `tain: ${sentence}\n` });
  });

  test("a database that is not named, not there, without the role, or whose user may not take it", async () => {
    const asked = async (url: string) =>
      await tainReading(["sql", "select 1"], Readable.from([]), { DATABASE_URL: url });
    expect((await asked("")).stderr).toBe(
      "tain: DATABASE_URL is not set, and no instance runs here: set it to the mirror's database\n",
    );
    expect((await asked("postgres://tain@127.0.0.1:1/tain")).stderr).toMatch(
      /^tain: Postgres cannot be used \(.*ECONNREFUSED.*\): see that DATABASE_URL is right and the server runs\n$/,
    );
    await using stores = await openOwnStores();
    const without = await asked(stores.postgres.url);
    expect(without.stderr).toMatch(
      /^tain: Queries run with the rights of tain_reader, .*role "tain_reader" does not exist/,
    );
    await owner.query("create role sql_plain login password 'plain'");
    const url = new URL(world.ctx.config.databaseUrl);
    Object.assign(url, { username: "sql_plain", password: "plain" });
    const { code, stderr } = await asked(url.href);
    await owner.query("drop role sql_plain");
    expect(stderr).toMatch(/permission denied to set role "tain_reader"\): .* must be its member or a superuser\n$/);
    expect(code).toBe(1);
  });
});

describe("without a query, at a terminal", () => {
  const terminal = () => Object.assign(Readable.from([]), { isTTY: true });

  test("psql starts as the reader; its address is not among its arguments, and its exit code is ours", async () => {
    const place = await mkdtemp(join(tmpdir(), "tain-psql-"));
    await writeFile(join(place, "psql"), `#!/bin/sh\necho "$#" > ${place}/told\nenv >> ${place}/told\nexit 3\n`);
    await chmod(join(place, "psql"), 0o755);
    const { code } = await tainReading(["sql"], terminal(), { PATH: `${place}:${process.env.PATH}` });
    const told = (await readFile(join(place, "told"), "utf8")).split("\n");
    const { hostname, port, pathname, username, password } = new URL(world.ctx.config.databaseUrl);
    expect(code).toBe(3);
    expect(told[0]).toBe("0");
    expect(told).toEqual(
      expect.arrayContaining([
        `PGHOST=${hostname}`,
        `PGPORT=${port}`,
        `PGUSER=${username}`,
        `PGPASSWORD=${password}`,
        `PGDATABASE=${pathname.slice(1)}`,
        "PGOPTIONS=-c role=tain_reader -c default_transaction_read_only=on -c search_path=tain_v1,public",
      ]),
    );
  });

  test("without psql it says so", async () => {
    const { code, stderr } = await tainReading(["sql"], terminal(), { PATH: "/nonexistent" });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr:
        "tain: There is no psql on this machine: install it (postgresql-client), or give the query: tain sql 'select …'\n",
    });
  });
});

describe("an export", () => {
  test("writes all rows of a view, or those of one repository in any case of its name", async () => {
    const { rows } = await owner.query("select * from tain_v1.issues");
    const all = await tainOn(world, ["export", "issues"]);
    expect(all.stdout.split("\n")[0]).toBe(Object.keys(rows[0]).join());
    expect(all.stderr).toBe(`tain: ${rows.length} rows\n`);
    const one = await tainOn(world, ["export", "issues", "--format", "jsonl", "--repo", names[0]?.toUpperCase() ?? ""]);
    const shown = one.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    const expected = rows.filter(({ repository }) => repository === names[0]);
    expect(shown.length).toBe(expected.length);
    const byNumber = new Map(shown.map((row) => [row.number, row]));
    for (const { number, title, labels, body, created_at } of expected)
      expect(byNumber.get(number)).toMatchObject({
        title,
        labels,
        body,
        created_at: created_at.toISOString().replace(".000", ""),
      });
  });

  test("every kind of the help can be exported", async () => {
    const { stdout } = await tainOn(world, ["export", "--help"]);
    for (const kind of VIEWS.split(/, | and /)) {
      expect(stdout).toMatch(new RegExp(`\\b${kind}\\b`));
      expect((await tainOn(world, ["export", kind])).code, kind).toBe(0);
    }
  });

  test("gives a file its name once it is whole, and leaves none behind if it fails", async () => {
    const place = await mkdtemp(join(tmpdir(), "tain-export-"));
    const file = join(place, "labels.csv");
    const { code, stdout } = await tainOn(world, ["export", "labels", "--output", file]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
    expect((await readFile(file, "utf8")).split("\n")[0]).toBe("repository_id,repository,id,name,color,description");
    const failed = await tainOn(world, ["export", "labels", "--output", join(place, "missing", "labels.csv")]);
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringMatching(/labels\.csv cannot be written: ENOENT/) });
    expect(await readdir(place)).toEqual(["labels.csv"]);
  });

  test("of a repository that is not mirrored: it says where to look", async () => {
    const { code, stdout, stderr } = await tainOn(world, ["export", "issues", "--repo", "no/where"]);
    expect({ code, stdout, stderr }).toEqual({
      code: 1,
      stdout: "",
      stderr: "tain: no/where is not mirrored: `tain status` lists what is\n",
    });
  });

  describe("of some 200 MB", () => {
    beforeAll(async () => {
      await owner.query(`insert into labels (repository_id, id, name, description, document, seen_at, seen_by_read)
        select id, 1000000000000 + n, 'large ' || n, repeat(md5(n::text), 300), '{}', now(), true
          from repositories, generate_series(1, 20000) n where full_name = '${names[1]}'`);
    });
    afterAll(async () => {
      await owner?.query("delete from labels where id > 1000000000000");
    });

    test.each([
      ["csv", 190_000_000],
      ["parquet", 1_000_000],
    ])("takes no more memory as %s than a process with a heap of 64 MB has", async (format, bytes) => {
      const place = await mkdtemp(join(tmpdir(), "tain-export-"));
      const file = join(place, "labels");
      const args = ["export", "labels", "--format", format, "--output", file];
      const { code, stderr } = await tainProcessOn(world, args, { NODE_OPTIONS: "--max-old-space-size=64" });
      expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(/^tain: 20,\d+ rows\n$/) });
      expect((await stat(file)).size).toBeGreaterThan(bytes);
      await rm(place, { recursive: true });
    });

    test.each(["csv", "parquet"])("leaves no file as %s if its connection breaks", async (format) => {
      const place = await mkdtemp(join(tmpdir(), "tain-export-"));
      const done = tainOn(world, ["export", "labels", "--format", format, "--output", join(place, "labels")]);
      await until("it has begun", async () => (await readdir(place)).includes("labels.part"));
      await owner.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'tain sql'");
      expect(await done).toMatchObject({ code: 1, stdout: "", stderr: expect.stringMatching(/^tain: /) });
      expect(await readdir(place)).toEqual([]);
    });

    test("ends without a word once its reader has left", async () => {
      const child = spawn(process.execPath, [join(projectRoot, "src/cli/main.ts"), "export", "labels"], {
        env: { ...inherited, DATABASE_URL: world.ctx.config.databaseUrl },
        stdio: ["ignore", "pipe", "pipe"],
      });
      const said = text(child.stderr);
      await once(child.stdout, "data");
      child.stdout.destroy();
      const [code] = await once(child, "exit");
      expect({ code, stderr: await said }).toEqual({ code: 0, stderr: "" });
    });
  });
});

describe("a reader of some repositories", () => {
  const name = `reader_${randomBytes(4).toString("hex")}`;

  test("logs in with the printed address, sees its repositories alone, and is listed and dropped", async () => {
    const made = await tainOn(world, ["readers", "create", name, "--repos", names[1]?.toUpperCase() ?? ""]);
    expect(made).toMatchObject({
      code: 0,
      stderr:
        `tain: ${name} reads ${names[1]?.toLowerCase()}. The password is shown this once\n` +
        "tain: Give it to people you trust with the server, or set DATABASE_REPLICA_URLS: a login can take more than it is shown (docs/security.md)\n",
    });
    const client = await connectTo(made.stdout.trim());
    const { rows } = await client.query("select distinct repository from issues");
    expect(rows).toEqual([{ repository: names[1] }]);
    await expect(client.query("select from public.issues")).rejects.toMatchObject({ code: "42501" });
    await expect(client.query("create temporary table mine ()")).rejects.toMatchObject({ code: "25006" });

    const listed = await tainOn(world, ["readers", "list", "--json"]);
    expect(listed.json).toEqual({ readers: [{ role: name, repositories: [names[1]], isThere: true }] });
    const again = await tainOn(world, ["readers", "create", name, "--repos", names[0] ?? ""]);
    expect(again).toMatchObject({
      code: 1,
      stderr: `tain: There is a role ${name} already: \`tain readers list\` shows what it may read\n`,
    });
    expect((await client.query("select distinct repository from issues")).rows).toEqual(rows);

    expect(await tainOn(world, ["readers", "drop", name])).toMatchObject({ code: 0 });
    await expect(connectTo(made.stdout.trim())).rejects.toMatchObject({ code: "28P01" });
    await client.end();
    const { rows: acts } = await owner.query(
      "select action, outcome from audit_log where action like 'command.readers%' order by id",
    );
    expect(acts).toEqual([
      { action: "command.readers.create", outcome: "done" },
      { action: "command.readers.create", outcome: "failed" },
      { action: "command.readers.drop", outcome: "done" },
    ]);
  });

  test("keeps its rights after the next migration", async () => {
    const { migrate } = await import("../../db/migrate.ts");
    const { stdout } = await tainOn(world, ["readers", "create", name, "--repos", names[1] ?? ""]);
    await owner.query(`revoke all on all tables in schema tain_v1 from ${name}`);
    await migrate(world.ctx.config.databaseUrl);
    const client = await connectTo(stdout.trim());
    expect((await client.query("select distinct repository from issues")).rows).toEqual([{ repository: names[1] }]);
    await client.end();
    expect((await tainOn(world, ["readers", "drop", name])).code).toBe(0);
  });

  test("is not made for what is not mirrored, nor dropped while it has other rights or is none of ours", async () => {
    const missing = await tainOn(world, ["readers", "create", name, "--repos", `${names[0]},no/where`]);
    expect(missing).toMatchObject({
      code: 1,
      stderr: "tain: no/where is not mirrored: `tain add no/where` first. No role was made\n",
    });
    expect((await tainOn(world, ["readers", "list"])).stdout).toBe(
      "No role reads some repositories only: `tain readers create` makes one\n",
    );
    expect(await tainOn(world, ["readers", "drop", "postgres"])).toMatchObject({
      code: 1,
      stderr: "tain: postgres is no role that reads some repositories only: `tain readers list` shows them\n",
    });
    await tainOn(world, ["readers", "create", name, "--repos", names[0] ?? ""]);
    await owner.query(`grant select on issues to ${name}`);
    expect(await tainOn(world, ["readers", "drop", name])).toMatchObject({
      code: 1,
      stderr: `tain: ${name} owns something, or was given other rights: \`drop owned by ${name}\` first. Nothing was changed\n`,
    });
    await owner.query(`drop owned by ${name}; drop role ${name}`);
    expect((await tainOn(world, ["readers", "list"])).stdout).toContain("the role is gone");
    expect((await tainOn(world, ["readers", "drop", name])).code).toBe(0);
  });

  test("is given the address of a replica where there is one, and the operator is told if it can lock tables", async () => {
    await owner.query("grant usage on schema public to public");
    try {
      const made = await tainOn(world, ["readers", "create", name, "--repos", names[0] ?? ""], {
        DATABASE_REPLICA_URLS: "postgres://reads@replica.example:5433/mirror",
      });
      expect(made.stdout).toMatch(new RegExp(`^postgres://${name}:[0-9a-f]+@replica\\.example:5433/mirror\n$`));
      expect(made.stderr.split("\n").slice(1)).toEqual([
        `tain: ${name} can lock tables, and so stop the mirror: let the schema's owner run \`revoke usage on schema public from public\``,
        "",
      ]);
    } finally {
      await owner.query("revoke usage on schema public from public");
      await tainOn(world, ["readers", "drop", name]);
    }
  });

  test("cannot be made by a user who may make no roles", async () => {
    await owner.query("create role sql_worker login password 'worker' in role tain_worker");
    const url = new URL(world.ctx.config.databaseUrl);
    Object.assign(url, { username: "sql_worker", password: "worker" });
    const { code, stderr } = await tainOn(world, ["readers", "create", name, "--repos", names[0] ?? ""], {
      DATABASE_URL: url.href,
    });
    await owner.query("drop role sql_worker");
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr:
        "tain: The user of DATABASE_URL may not do this (permission denied to create role): it has to own the tables and to have createrole. Nothing was changed\n",
    });
  });
});
