/** The mirror makes events also of changes of repositories, releases and checks that no webhook reported. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { checkApp, createCheckRun, editCheckRun } from "../../src/simulator/changes/checks.ts";
import { createRelease, deleteRelease, editRelease } from "../../src/simulator/changes/releases.ts";
import {
  archiveRepository,
  editRepository,
  renameRepository,
  setVisibility,
} from "../../src/simulator/changes/repositories.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { addCode } from "../../src/simulator/generate/generate-code.ts";
import { openView } from "../../src/simulator/views/view.ts";
import { payloadOf } from "../../src/simulator/webhooks/payload.ts";
import type { SettableClock } from "../../src/simulator/world/clock.ts";
import type { PullIssue, Repository } from "../../src/simulator/world/records.ts";
import { isPull } from "../../src/simulator/world/world.ts";
import { mismatch } from "../../src/sync/events/read.ts";
import { settleParts } from "../../src/sync/following/parts.ts";
import { makeEvents } from "../../src/sync/found/make.ts";
import { dispatchMarks } from "../../src/sync/marks/marks.ts";
import { markChecksDue, markResourceListsDue } from "../support/due.ts";
import { openWorld, type TestWorld } from "../support/world.ts";
import { tell } from "./tell.ts";

const MINUTE = 60_000;

// biome-ignore lint/suspicious/noExplicitAny: documents are compared and picked from, not trusted
type Document = any;
interface Told {
  event: string;
  action: string | null;
  payload: Document;
}

let world: TestWorld;
let repository: Repository;
/** What upstream would have sent, had we been listening. */
const unsent: Told[] = [];

beforeAll(async () => {
  world = await openWorld({
    fill: ({ world: upstream }) => {
      generateWorld(upstream, { seed: 7, repositories: 1, issues: 3, pulls: 4 });
      for (const one of upstream.repositories.values()) if (!one.fork) addCode(upstream, one, {}, 7, upstream.now());
    },
    env: { MIRROR: "checks,releases" },
  });
  const { world: upstream, url: apiUrl, htmlUrl } = world.simulator;
  repository =
    [...upstream.repositories.values()].find((one) => upstream.fullName(one) === world.first) ?? expect.fail("None");
  await world.mirror(world.first);
  await world.settleMarks();
  await find();
  upstream.onEvent((event) => {
    const payload = structuredClone(payloadOf(openView({ world: upstream, apiUrl, htmlUrl }), event));
    unsent.push({ event: event.event, action: event.action, payload });
  });
});
beforeEach(() => {
  unsent.length = 0;
});
afterAll(() => world?.[Symbol.asyncDispose]());

function pass(ms: number): void {
  // No type says that a simulator's clock is one that a test may set.
  (world.simulator.world.clock as SettableClock).advance(ms);
  world.advance(ms);
}

/** Lets the mirror find what has changed, as its scheduler does. */
async function find(): Promise<void> {
  for (let round = 0; round < 2; round++) {
    pass(65 * MINUTE);
    await world.catchUp();
    await settleParts(world.ctx);
    await markChecksDue(world.ctx);
    await markResourceListsDue(world.ctx);
    await world.ctx.queues.refresh.clean(0, 1_000, "delayed");
    await dispatchMarks(world.ctx);
    await world.settle();
  }
}

async function made(): Promise<Told[]> {
  const [row] = await world.ctx.db.query<{ last: number }>(
    sql`select coalesce(max(id), 0)::float8 as last from events`,
  );
  pass(2 * MINUTE);
  await makeEvents(world.ctx);
  const rows = await world.ctx.db.query<Omit<Told, "payload"> & { payload: string }>(sql`
    select e.event, e.action, convert_from(d.payload, 'UTF8') as payload from events e
      join deliveries d on d.id = e.delivery_id where e.is_made and e.id > ${row?.last ?? 0} order by e.id`);
  return rows.map((one) => ({ ...one, payload: JSON.parse(one.payload) }));
}

const names = (all: readonly Told[]) => all.map(({ event, action }) => `${event} ${action}`).sort();

/** Keys whose values change from moment to moment, or repeat another key of the document. */
const MOVING = new Set([
  "updated_at",
  "published_at",
  "pushed_at",
  "sender",
  "permissions",
  "open_issues",
  "open_issues_count",
]);
const still = (payload: Document): Document =>
  JSON.parse(JSON.stringify(payload, (key, value) => (MOVING.has(key) ? undefined : value)));

/** Expects the same events as upstream's, each in upstream's form and with upstream's values. */
function expectAsUpstream(all: readonly Told[], subject: string): void {
  expect(names(all)).toEqual(names(unsent));
  for (const { event, action, payload } of all) {
    expect(mismatch(event, payload)).toBeNull();
    const real = unsent.find((one) => one.event === event && one.action === action)?.payload;
    const [mine, theirs] = [still(payload), still(real)];
    expect(mine[subject] ?? null, `${event} ${action}`).toEqual(theirs[subject] ?? null);
    expect(mine.changes ?? null).toEqual(theirs.changes ?? null);
    expect(Object.keys(mine).sort()).toEqual(Object.keys(theirs).sort());
  }
}

test("what a first copy of releases and checks shows is not told", async () => {
  expect(await world.ctx.db.count(sql`select from releases`)).toBeGreaterThan(0);
  expect(await world.ctx.db.count(sql`select from check_runs`)).toBeGreaterThan(0);
  expect(await made()).toEqual([]);
});

test("of a release that is made, changed or deleted is told as upstream tells of it", async () => {
  const upstream = world.simulator.world;
  const by = repository.ownerId;
  const release = createRelease(upstream, by, { repository, tagName: "v8.0", name: "Eight" });
  await find();
  unsent.splice(0, unsent.length, ...unsent.filter(({ event }) => event === "release"));
  expectAsUpstream(await made(), "release");
  unsent.length = 0;
  editRelease(upstream, by, release, { body: "More of it" });
  await find();
  expectAsUpstream(await made(), "release");
  unsent.length = 0;
  deleteRelease(upstream, by, release);
  await find();
  expect(names(await made())).toEqual(["release deleted"]);
});

test("of check runs and suites is told that they were made, and that they ended", async () => {
  const upstream = world.simulator.world;
  const by = repository.ownerId;
  const pull = [...repository.rows.issuesByCreated.ascending()].find(
    (one): one is PullIssue => isPull(one) && one.state === "open",
  );
  const headSha = pull?.pull.head.sha ?? expect.fail("No pull request is open");
  const app = checkApp(upstream, "linter");
  pass(MINUTE);
  const run = createCheckRun(upstream, by, { repository, app, headSha, name: "build" });
  await find();
  expectAsUpstream(await made(), "check_run");
  unsent.length = 0;
  editCheckRun(upstream, by, run, { conclusion: "failure" });
  await find();
  const ended = await made();
  expect(names(ended)).toEqual(names(unsent));
  expect(ended.map(({ payload }) => (payload.check_run ?? payload.check_suite).conclusion)).toEqual([
    "failure",
    "failure",
  ]);
});

test("of a repository that is changed is told as upstream tells of it, and once", async () => {
  const upstream = world.simulator.world;
  const by = repository.ownerId;
  pass(MINUTE);
  editRepository(upstream, by, repository, { description: "Another", topics: ["one", "two"] });
  archiveRepository(upstream, by, repository, true);
  setVisibility(upstream, by, repository, "private");
  renameRepository(upstream, by, repository, "renamed-since");
  const late = [...unsent];
  await find();
  const all = await made();
  expect(names(all)).toEqual([
    "repository archived",
    "repository edited",
    "repository privatized",
    "repository renamed",
  ]);
  for (const { event, action, payload } of all) {
    expect(mismatch(event, payload)).toBeNull();
    expect(payload.changes ?? null).toEqual(late.find((one) => one.action === action)?.payload.changes ?? null);
    expect(payload.repository).toMatchObject({ name: "renamed-since", private: true, archived: true });
  }
  const told = await world.ctx.db.count(sql`select from events`);
  for (const { event, payload } of late) await tell(world, { event, payload });
  await world.settle();
  expect(await world.ctx.db.count(sql`select from events`)).toBe(told);
  await find();
  expect(await made()).toEqual([]);
});
