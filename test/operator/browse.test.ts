import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { newestSql, oneSql, REPOSITORIES_SQL } from "../../src/operator/browser/browse-sql.js";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { askAt } from "../support/asking.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

// The page on which the mirror is looked at (`browser.test.ts` uses it in a browser).

let world: TestWorld;

beforeAll(async () => {
  world = await openWorld({
    fill: ({ world: upstream }) => void generateWorld(upstream, { seed: 3, repositories: 1, issues: 8, pulls: 4 }),
  });
  await world.mirror(world.first);
});
afterAll(() => world?.[Symbol.asyncDispose]());

/** The rows of each statement. */
async function rowsOf(text: string): Promise<Record<string, unknown>[][]> {
  const statements = text.split(";\n").map((one) => one.replace(/;$/, ""));
  return await Promise.all(
    statements.map((statement) => world.ctx.db.query<Record<string, unknown>>(sql.script(statement))),
  );
}

const shown = async (path: string) => (await askAt(world.url, "GET", path, { token: world.token })).body;

test("the page is open to anybody, and tells nothing of the mirror but its upstream", async () => {
  const answer = await fetch(`${world.url}/-/browse`);
  expect(answer.status).toBe(200);
  expect(answer.headers.get("cache-control")).toBe("no-store");
  expect(await answer.text()).not.toContain(world.first);
});

test("its queries find in the database what the API shows", async () => {
  const [repositories] = await rowsOf(REPOSITORIES_SQL);
  expect(repositories?.map(({ repository }) => repository)).toEqual([world.first]);
  const listed: { number: number; pull_request?: object }[] = await shown(
    `/repos/${world.first}/issues?state=all&per_page=100`,
  );
  const found = (await rowsOf(newestSql(world.first))).map((rows) => rows.map(({ number }) => number).toSorted());
  const numbers = (isPull: boolean) =>
    listed.filter((one) => (one.pull_request !== undefined) === isPull).map(({ number }) => number);
  expect(found).toEqual([numbers(false).toSorted(), numbers(true).toSorted()]);
  for (const isPull of [false, true]) {
    const [number = 0] = numbers(isPull);
    const [one, ...below] = await rowsOf(oneSql(world.first, isPull ? "pull" : "issues", number));
    expect(one).toMatchObject([{ number }]);
    const comments: { id: number }[] = await shown(`/repos/${world.first}/issues/${number}/comments?per_page=100`);
    expect(
      below
        .at(-2)
        ?.map(({ id }) => Number(id))
        .toSorted(),
    ).toEqual(comments.map(({ id }) => id).toSorted());
  }
});

test("a name of which somebody made SQL is a text", () => {
  expect(oneSql("o'; drop table issues; --/x", "issues", 1)).toContain(
    "repository = 'o''; drop table issues; --/x' and",
  );
});
