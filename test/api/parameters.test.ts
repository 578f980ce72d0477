import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { countStatements } from "../support/statements.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

let world: ApiWorld;
let repo: string;
beforeAll(async () => {
  world = await openApiWorld({ repositories: 1, issues: 10 });
  repo = `/repos/${world.repositories[0]?.fullName}`;
});
afterAll(() => world?.[Symbol.asyncDispose]());

const TIMES = 60;

test("more labels than an issue can carry are counted before Postgres is asked, and refused", async () => {
  const names = (count: number) => Array.from({ length: count }, (_, at) => `l${at}`).join();
  using statements = countStatements();
  for (const path of [`${repo}/issues`, "/issues"]) {
    expect((await world.get(`${path}?labels=${names(100)}`)).status).toBe(200);
    const { status, body } = await world.get(`${path}?labels=${names(101)}`);
    expect(status).toBe(422);
    expect(body).toMatchObject({
      message: "Validation Failed",
      errors: [{ resource: "Issue", field: "labels", message: "labels is too long (maximum is 100 labels)" }],
    });
  }
  expect(statements.texts().filter((text) => text.includes("issue_labels")).length).toBeLessThanOrEqual(2);
});

describe("a parameter that the operation does not know", () => {
  test("is no part of a page's name: sixty of them read the rows as often as none", async () => {
    using statements = countStatements();
    const listings = () => statements.texts().filter((text) => /from issues\b/.test(text)).length;
    const links = new Set<string | null>();
    for (let at = 0; at < TIMES; at++) {
      const { status, headers } = await world.get(`${repo}/issues?state=all&per_page=2&junk=${at}`);
      expect(status).toBe(200);
      links.add(headers.get("link"));
    }
    // The second request learns that the first one's page may be kept.
    expect(listings()).toBeLessThanOrEqual(2);
    expect([...links]).toHaveLength(1);
    expect([...links][0]).not.toContain("junk");
  });

  test("never reaches upstream: sixty fresh reads of one page cost one request and leave one validator", async () => {
    const rows = () => world.ctx.db.query<{ path: string }>(sql`select path from validators`);
    const before = (await rows()).length;
    world.upstream.meter.reset();
    for (let at = 0; at < TIMES; at++) {
      const { status } = await world.get(`${repo}/issues?state=all&per_page=1&fresh=true&junk=${at}`);
      expect(status).toBe(200);
    }
    expect(world.upstream.meter.read().callers[UPSTREAM_TOKEN]?.core?.charged).toBe(1);
    const paths = (await rows()).map(({ path }) => path);
    expect(paths).toHaveLength(before + 1);
    expect(paths.join(" ")).not.toContain("junk");
  });

  test("is in no address that leads elsewhere", async () => {
    await world.ctx.db.query(sql`insert into former_names (full_name, repository_id)
      select 'former/name', id from repositories limit 1`);
    const moved = await world.get("/repos/former/name/issues?state=closed&junk=1");
    expect(moved.status).toBe(301);
    expect(moved.headers.get("location")).toMatch(/\/issues\?state=closed$/);
  });
});

test("of a parameter that comes twice the last counts, alone", async () => {
  const once = await world.get(`${repo}/issues?per_page=1&state=all`);
  const twice = await world.get(`${repo}/issues?per_page=7&state=open&state=all&per_page=1`);
  expect(twice.body).toEqual(once.body);
  expect(twice.headers.get("link")).toBe(once.headers.get("link"));
});

test("cursors are known, though upstream publishes no word of them", async () => {
  const first = await world.get(`${repo}/issues?state=all&per_page=1`);
  const next = /<([^>]+)>; rel="next"/.exec(first.headers.get("link") ?? "")?.[1] ?? "";
  expect(next).toContain("after=");
  const second = await world.get(next.replace(world.url, ""));
  expect(second.body[0].number).not.toBe(first.body[0].number);
});

test.each([
  ["2?state=all", 2],
  [" 2", 2],
  ["+2", 2],
  ["2.9", 2],
  ["1e3", 1],
  ["0x2", 1],
  ["-2", 1],
  ["two", 1],
  ["", 1],
  ["99999999999999999999999999", 99],
])("of page=%j the digits that it begins with count", async (text, page) => {
  const of = (value: string) => world.get(`${repo}/labels?per_page=2&page=${encodeURIComponent(value)}`);
  const asked = await of(text);
  expect(asked.status).toBe(200);
  expect(asked.body).toEqual((await of(String(page))).body);
});

test("and so of per_page, in a list by cursor and in a search", async () => {
  for (const path of [`${repo}/issues?state=all&per_page=2%3Fpage`, `/search/issues?q=is:issue&per_page=2%3Fpage`]) {
    const { body } = await world.get(path);
    expect(body.items ?? body).toHaveLength(2);
  }
});
