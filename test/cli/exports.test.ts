/** Exports of a large view, read back by other programs: `npm run proofs exports`. */
import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { asyncBufferFromFile, parquetReadObjects } from "hyparquet";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { connectTo } from "../support/database.ts";
import { printFigures } from "../support/figures.ts";
import { copyRows } from "../support/many-repositories.ts";
import { openWorld, type TestWorld } from "../support/world.ts";
import { tainProcessOn } from "./tain-on.ts";

const ISSUES = Number(process.env.EXPORTED ?? 0);
/** The process says at its end how much memory it had at most, in KB. */
const PEAK =
  "--import=data:text/javascript,process.on('exit',()=>console.error('peak',process.resourceUsage().maxRSS))";
/** What readers of CSV stumble over. */
const TITLES = sql`(array['plain', 'a "quote"', 'a,b', e'two\\nlines', e'cr\\r\\nlf', '\\', '=1+1', ' ', 'ü😀', 'null', 'NULL', '\\N', ''])[1 + n % 13]`;

describe.skipIf(ISSUES === 0)("an export of all issues (skipped without EXPORTED)", () => {
  let world: TestWorld;
  let owner: pg.Client;
  let place: string;
  beforeAll(async () => {
    world = await openWorld({
      fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 7, repositories: 1, issues: 3, pulls: 0 }),
    });
    await world.mirror(world.first);
    const one = sql`(select * from issues where id is not null and not is_pull_request limit 1)`;
    await copyRows(world, {
      table: "issues",
      from: sql`${one} t cross join generate_series(1, ${ISSUES}::int) n`,
      replaced: {
        number: sql`1000 + n`,
        id: sql`700000000000 + n`,
        title: TITLES,
        body: sql`case when n % 3 > 0 then ${TITLES} || repeat(md5(n::text), n % 40) end`,
      },
    });
    owner = await connectTo(world.ctx.config.databaseUrl);
    place = await mkdtemp(join(tmpdir(), "tain-exports-"));
    // Postgres reads the files as well, as its own user.
    await chmod(place, 0o755);
  }, LONG_TEST_MS);
  afterAll(async () => {
    await rm(place, { recursive: true, force: true });
    await owner?.end();
    await world?.[Symbol.asyncDispose]();
  });

  async function exported(format: string): Promise<string> {
    const file = join(place, `issues.${format}`);
    const begun = performance.now();
    const args = ["export", "issues", "--format", format, "--output", file];
    const { code, stderr } = await tainProcessOn(world, args, { NODE_OPTIONS: PEAK });
    const seconds = Math.round((performance.now() - begun) / 100) / 10;
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(/^tain: [\d,]+ rows\npeak \d+\n$/) });
    const megabytes = Math.round(Number(/peak (\d+)/.exec(stderr)?.[1]) / 1_024);
    const { size } = await stat(file);
    printFigures("exports", { format, issues: ISSUES, seconds, megabytes, fileMegabytes: Math.round(size / 1e6) });
    return file;
  }

  /** How many rows differ between the view and a table that a file was read into. */
  async function differences(table: string): Promise<number> {
    const { rows } = await owner.query(`select (select count(*) from
      ((table ${table} except all select * from tain_v1.issues) union all
        (select * from tain_v1.issues except all table ${table})) d)::int as count,
      (select count(*) from ${table})::int as read`);
    expect(rows[0].read).toBeGreaterThan(ISSUES);
    return rows[0].count;
  }

  test("as CSV is read back equal by Postgres, and by Python but for null", { timeout: LONG_TEST_MS }, async () => {
    const file = await exported("csv");
    await owner.query("create table csv_read as select * from tain_v1.issues with no data");
    await owner.query(`copy csv_read from '${file}' (format csv, header match)`);
    expect(await differences("csv_read")).toBe(0);
    const digest = `import csv, hashlib, sys
rows = sorted((int(r["number"]), r["title"], r["body"], r["labels"]) for r in csv.DictReader(open(sys.argv[1], newline="")))
print(hashlib.md5("\\n".join("%d\\t%s\\t%s\\t%s" % r for r in rows).encode()).hexdigest())`;
    const { stdout } = await promisify(execFile)("python3", ["-c", digest, file]);
    const { rows } = await owner.query(`select md5(string_agg(number || e'\\t' || title || e'\\t' || coalesce(body, '')
      || e'\\t' || labels::text, e'\\n' order by number)) as digest from tain_v1.issues`);
    expect(stdout.trim()).toBe(rows[0].digest);
  });

  test("as lines of JSON is read back equal by Postgres", { timeout: LONG_TEST_MS }, async () => {
    const file = await exported("jsonl");
    await owner.query("create table lines_read (line text)");
    // No text holds these as they are: JSON escapes them.
    await owner.query(`copy lines_read from '${file}' (format csv, quote e'\\x01', delimiter e'\\x02')`);
    await owner.query(`create table jsonl_read as select v.* from lines_read,
      json_populate_record(null::tain_v1.issues, line::json) v`);
    expect(await differences("jsonl_read")).toBe(0);
  });

  test("as Parquet is read back equal", { timeout: LONG_TEST_MS }, async () => {
    const rows = await parquetReadObjects({ file: await asyncBufferFromFile(await exported("parquet")) });
    const asText = (_: string, value: unknown) => (typeof value === "bigint" ? Number(value) : value);
    await owner.query("create table parquet_read as select * from tain_v1.issues with no data");
    for (let at = 0; at < rows.length; at += 5_000)
      await owner.query("insert into parquet_read select * from json_populate_recordset(null::tain_v1.issues, $1)", [
        JSON.stringify(rows.slice(at, at + 5_000), asText),
      ]);
    expect(await differences("parquet_read")).toBe(0);
  });
});
