/** Pages of long lists that Postgres takes as long for as for a search, and what a list's length costs. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Database, openDatabase } from "../../db/database.ts";
import { type SQL, sql } from "../../db/sql.ts";
import { knownOperations } from "../../src/api/description/known-operations.ts";
import { readPublished } from "../../src/api/description/published.ts";
import { MIRROR_OPERATIONS, PART_OPERATIONS } from "../../src/api/operations.ts";
import { MIRROR_PARTS } from "../../src/config/parts.ts";
import { isObject, type Json } from "../../src/json.ts";
import { askAt } from "../support/asking.ts";
import { until } from "../support/patience.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

let world: ApiWorld;
let locker: Database;
let url: string;
let id: number;
let at: string;
const RUNS = 10_050;

beforeAll(async () => {
  world = await openApiWorld({ issues: 40 });
  const [first] = world.repositories;
  if (!first) throw new Error("There is no repository");
  id = first.id;
  at = `/repos/${first.fullName}`;
  const { db } = world.ctx;
  await db.query(sql`update repository_syncs set mirrors = ${[...MIRROR_PARTS]}::text[]`);
  for (const list of ["workflow_lists", "workflow_run_lists", "deployment_lists", "release_lists", "issue_event_lists"])
    await db.query(sql`
      insert into ${sql.identifier(list)} (repository_id, read_at) values (${id}, now() + interval '1 day')
        on conflict (repository_id) do update set read_at = excluded.read_at`);
  await run(sql`generate_series(1, ${RUNS}::integer)`);
  locker = openDatabase(world.env.DATABASE_URL ?? "", { maxConnections: 1, applicationName: "locker" });
  url = await world.openSibling({ RATE_LIMIT_USER: "1000000", READ_TIMEOUT: "20m", PASS_THROUGH: "off" });
  for (const list of LISTS) if ((await get(list.path)).status === 200) lists.push(list);
});
afterAll(async () => {
  await locker?.close();
  await world?.[Symbol.asyncDispose]();
});

/** Stores runs with these numbers, and raises no revision. */
async function run(numbers: SQL): Promise<void> {
  await world.ctx.db.query(sql`
    insert into workflow_runs (repository_id, id, workflow_id, event, head_sha, head_branch, status, created_at, updated_at,
        document, seen_at, seen_by_read)
      select ${id}, x.n, 1, 'push', 'abc', 'main', 'completed', now(), now(), json_build_object('id', x.n), now(), true
        from ${numbers} as x(n)`);
}

const get = (path: string) => askAt(url, "GET", at + path, { token: world.token });

/** The parameters that choose a page of a list, or change nothing of which rows it has. */
const OF_PAGES = ["page", "per_page", "after", "before", "sort", "direction", "exclude_pull_requests"];
const OPERATIONS = [...MIRROR_OPERATIONS, ...PART_OPERATIONS].filter(({ route }) => route.run.of === "repository");
const KNOWN = knownOperations(OPERATIONS, readPublished());
/** The lists of a whole repository. */
const LISTS = OPERATIONS.flatMap(({ path, route }) => {
  const names = [...(KNOWN.get(route)?.parameters ?? [])];
  const filters = names.filter((one) => !OF_PAGES.includes(one));
  return route.method === "GET" && names.includes("page") && !path.includes(":") ? [{ path, filters }] : [];
});
/** Those that this mirror holds. */
const lists: typeof LISTS = [];
/** Lists whose filters no index serves. Those of issues are in `slow-reads.test.ts`. */
const FILTERED = ["/actions/runs", "/deployments"];

let searches = 0;

/** Answers those of these paths that are answered although their caller's place among the searches is taken. */
async function answeredBesideSearch(paths: readonly string[]): Promise<string[]> {
  const answered: string[] = [];
  let ended: Promise<unknown> = Promise.resolve();
  await locker.transaction(async (tx) => {
    await tx.query(sql`lock table issue_labels in access exclusive mode`);
    let searching = 0;
    const search = async () => {
      searching += 1;
      await get(`/issues?labels=bug&per_page=${++searches}`);
      searching -= 1;
    };
    const searched: Promise<void>[] = [];
    await until("the search waits", async () => {
      // One that found no connection has ended.
      if (searching === 0) searched.push(search());
      const waiting = sql`select from pg_stat_activity where datname = current_database()
        and application_name = 'tain searches' and wait_event_type = 'Lock'`;
      // By a connection without a transaction: within one, Postgres shows the same moment again.
      return (await world.ctx.db.count(waiting)) === 1;
    });
    const asked = paths.map(async (path) => {
      if ((await get(path)).status === 200) answered.push(path);
    });
    ended = Promise.all([...searched, ...asked]);
    // Whatever waits for no search is answered by then.
    for (const { path } of lists) expect([path, (await get(`${path}?per_page=7`)).status]).toEqual([path, 200]);
    answered.push("");
  });
  await ended;
  return answered.slice(0, answered.indexOf(""));
}

test("a deep page of any list waits for its caller's searches, and a page at its beginning for none", async () => {
  const { status, body } = await get("/issues?page=101&per_page=100");
  expect([status, body.message]).toEqual([422, expect.stringMatching(/^Pagination with the page parameter/)]);
  const deep = lists.filter(({ path }) => path !== "/issues").map(({ path }) => `${path}?page=101&per_page=100`);
  const answered = await answeredBesideSearch(deep);
  // A list that is known to end before the page takes no search.
  const shown = await Promise.all(answered.map(async (path) => (await get(path)).body));
  const rowsIn = (list: object) =>
    Object.values(list).flatMap((one: Json) => (Array.isArray(one) ? one.filter(isObject) : []));
  expect(shown.flatMap(rowsIn)).toEqual([]);
  const waited = deep.filter((path) => !answered.includes(path));
  expect(waited).toContain("/actions/runs?page=101&per_page=100");
  expect(waited.length).toBeGreaterThan(6);
});

test("so does each filter of runs and deployments that no index serves", async () => {
  const filtered = lists
    .filter(({ path }) => FILTERED.includes(path))
    .flatMap(({ path, filters }) => filters.map((name) => `${path}?${name}=2020-01-01`));
  expect(filtered.length).toBeGreaterThan(8);
  expect(await answeredBesideSearch(filtered)).toEqual([]);
});

test("lists that grow without an end have a last page", async () => {
  for (const path of ["/actions/runs", "/actions/workflows", "/deployments", "/releases", "/issues/events"]) {
    const { status, body } = await get(`${path}?page=1001&per_page=100`);
    expect([path, status, body.message]).toEqual([
      ...[path, 422],
      "In order to keep the API fast for everyone, pagination is limited for this resource.",
    ]);
    expect((await get(`${path}?page=1000&per_page=100`)).status).toBe(200);
  }
});

test("filtered runs are counted as far as the service shows them", async () => {
  expect((await get("/actions/runs?branch=main&per_page=1")).body.total_count).toBe(1_000);
  expect((await get("/actions/runs?per_page=1")).body.total_count).toBe(RUNS);
});

test("the length of a list is kept while the repository is unchanged", async () => {
  const total = async (size: number) => (await get(`/actions/runs?per_page=${size}`)).body.total_count;
  // What is asked for the second time is kept.
  for (const size of [2, 3, 4]) expect(await total(size)).toBe(RUNS);
  await run(sql`(values (50_000))`);
  expect(await total(5)).toBe(RUNS);
  await world.ctx.db.transaction(async (tx) => tx.touch([id]));
  expect(await total(6)).toBe(RUNS + 1);
});
