/** The questions of docs/sql.md in a large mirror, asked of the views and of the tables: `npm run proofs questions`. */
import { readFileSync } from "node:fs";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LONG_TEST_MS } from "../support/bounds.ts";
import { asRole, connectTo, openTestDatabase, type TestDatabase } from "../support/database.ts";
import { printFigures } from "../support/figures.ts";
import { fillWithIssues } from "../support/many-issues.ts";
import { blocksOf, readPage } from "./markdown.ts";

const ISSUES = Number(process.env.QUESTIONS ?? 0);
/** Reads one repository of fifty. */
const ROLE = "questions_of_one";

const questions = blocksOf(readPage("docs/sql.md")).filter(({ language }) => language === "sql");
const tablesPage = readFileSync(new URL("sql-of-tables.md", import.meta.url), "utf8");
const onTables = blocksOf(tablesPage);
const askedBefore = new Set(blocksOf(tablesPage.split("## Since then")[0] ?? "").map(({ heading }) => heading));
const linesOf = (text: string | undefined) => text?.trimEnd().split("\n").length;

describe.skipIf(ISSUES === 0)("the questions in a large mirror (skipped without QUESTIONS)", () => {
  let database: TestDatabase;
  let owner: pg.Client;
  let one: pg.Client;
  beforeAll(async () => {
    database = await openTestDatabase();
    owner = await connectTo(database.url);
    await fillWithIssues(owner, ISSUES);
    await owner.query(`create role ${ROLE}; grant usage on schema tain_v1 to ${ROLE};
      grant select on all tables in schema tain_v1 to ${ROLE}; insert into reader_repositories (repository_id, role) values (7, '${ROLE}')`);
    one = await connectTo(asRole(database.url, ROLE));
  }, 3 * LONG_TEST_MS);
  afterAll(async () => {
    await one?.end();
    await owner?.query(`drop owned by ${ROLE}; drop role ${ROLE}`);
    await owner?.end();
    await database?.drop();
  });

  /** An answer, and how long it took once the pages that it reads were read before. */
  async function timed(client: pg.Client, text = "") {
    await client.query(text);
    const begun = performance.now();
    const { rows } = await client.query(text);
    return { rows, ms: Math.round(performance.now() - begun) };
  }

  test.each(questions)("$heading", { timeout: LONG_TEST_MS }, async ({ heading, text }) => {
    const longer = onTables.find((each) => each.heading === heading)?.text;
    // In a transaction, now() stands still.
    await owner.query("begin");
    const ofTables = await timed(owner, longer);
    const ofViews = await timed(owner, text);
    await owner.query("rollback");
    const ofOne = await timed(one, text);
    const differs = Number(JSON.stringify(ofViews.rows) !== JSON.stringify(ofTables.rows));
    const times = { msOnTables: ofTables.ms, ms: ofViews.ms, msOfOne: ofOne.ms };
    const lengths = { lines: linesOf(text), linesOnTables: linesOf(longer), wasAskedBefore: askedBefore.has(heading) };
    printFigures("question", { heading, issues: ISSUES, ...lengths, ...times, rows: ofViews.rows.length, differs });
    expect(ofViews.rows).toEqual(ofTables.rows);
    expect(ofViews.rows.length).toBeGreaterThan(0);
    for (const { repository } of ofOne.rows.filter((row) => "repository" in row)) expect(repository).toBe("owner/r7");
  });
});
