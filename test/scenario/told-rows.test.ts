/**
 * Rows that deliveries alone have shown, of each kind that a list confirms. Whoever has the secret of a repository's hook
 * may make up any number of them, and upstream is asked about a bounded number in each hour.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { type Fields, objectOf, rowsOf } from "../../src/json.ts";
import type { Kind, Resource } from "../../src/kinds/contract/kind.ts";
import { resourceOf, resources } from "../../src/kinds/registry.ts";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { addCode } from "../../src/simulator/generate/generate-code.ts";
import type { Repository } from "../../src/simulator/world/records.ts";
import { type ToldRepository, tell } from "../events/tell.ts";
import { askAt } from "../support/asking.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { markResourceListsDue } from "../support/due.ts";
import { mirrorFirst, passRound } from "../support/rounds.ts";
import { openWorld, type TestWorld } from "../support/world.ts";

const LISTED = resources.filter(({ list, listBelow }) => list || listBelow);
/** The kind whose event shows another: its own, or as one beside its subject. */
const showing = ({ kind, events }: Resource) =>
  events ? kind : resources.find((one) => Object.values(one.events?.beside ?? {}).includes(kind))?.kind;
const STANDING = sql`deleted_at is null`;
const MINUTE = 60_000;
const MANY = 100;

let world: TestWorld;
let upstream: Repository;
let repository: ToldRepository;

beforeAll(async () => {
  world = await openWorld({
    env: { MIRROR: [...new Set(LISTED.map(({ part }) => part))].join() },
    fill: ({ world: filled }) => {
      generateWorld(filled, { seed: 7, repositories: 1, issues: 3, pulls: 2 });
      for (const one of filled.repositories.values())
        addCode(filled, one, { workflowRuns: 3, deployments: 3, releases: 3 }, 7, filled.now());
    },
  });
  upstream = await mirrorFirst(world);
  await pass(MINUTE);
  repository = (await world.get(`/repos/${world.first}`)).body as ToldRepository;
});
afterAll(() => world?.[Symbol.asyncDispose]());
beforeEach(async () => {
  await world.ctx.db.query(sql`delete from upkeep where task like 'told rows%'`);
  await world.ctx.db.query(sql`delete from refresh_marks`);
});

const pass = (ms: number) => passRound(world, ms, markResourceListsDue);
const charged = () => world.simulator.meter.read().callers[UPSTREAM_TOKEN]?.core?.charged ?? 0;

/** A row of this kind, as upstream lists it. */
async function listed(kind: Kind): Promise<Fields> {
  const { list, listBelow, parent, upstream: shown } = resourceOf(kind);
  const path = listBelow && parent ? listBelow.path(Number((await listed(parent.kind)).id)) : list?.path;
  const { body } = await askAt(world.simulator.url, "GET", `/repositories/${upstream.id}${path}`, {
    token: UPSTREAM_TOKEN,
  });
  const [row] = rowsOf(shown.rows === undefined ? body : objectOf(body)[shown.rows]);
  if (!row) throw new Error(`Upstream has no ${kind}`);
  return row;
}

/** The same with another id, in its addresses, too, and in those that name these others by the same. */
function madeUp(row: Fields, id: number, others: readonly Fields[]): Fields {
  const text = [row, ...others].reduce(
    (made, { id: known }) => made.replaceAll(new RegExp(`(?<!\\d)${known}(?!\\d)`, "g"), String(id)),
    JSON.stringify(row),
  );
  // What has changed since it was made may have more below it.
  const times = { created_at: "2020-01-01T00:00:00Z", updated_at: "2020-01-02T00:00:00Z" };
  return { ...JSON.parse(text), ...times, node_id: `MADE_${id}` };
}

/** Tells of so many that are not at upstream. */
async function tellOf(kind: Kind, first: number, count = MANY): Promise<void> {
  const subject = resourceOf(kind).events;
  if (!subject) throw new Error(`No event is about a ${kind}`);
  const beside = await Promise.all(
    Object.entries(subject.beside).map(async ([key, of]) => ({ key, row: await listed(of) })),
  );
  const row = await listed(kind);
  for (let id = first; id < first + count; id++) {
    const others = beside.map(({ row: other }) => other);
    const payload = {
      ...{ action: Object.keys(subject.actions)[0], repository, sender: repository.owner },
      ...Object.fromEntries(beside.map(({ key, row: other }) => [key, madeUp(other, id, others)])),
      [subject.in]: madeUp(row, id, others),
    };
    await tell(world, { event: subject.event, payload });
  }
  await world.settle();
}

/** How many of those are here. @param still whether upstream has not taken them back */
const rows = async (kind: Kind, first: number, still = sql`true`) => {
  const { table } = resourceOf(kind);
  return await world.ctx.db.count(sql`
    select from ${table} where id >= ${first} and id < ${first + MANY} and ${still}`);
};

test("each kind that a list confirms has an event that shows it, but for events of issues", () => {
  expect(LISTED.filter((one) => !showing(one)).map(({ kind }) => kind)).toEqual(["issue_event"]);
});

test.each(LISTED.flatMap((one) => (showing(one) ? [one.kind] : [])).map((kind, at) => [kind, at] as const))(
  "of a %s that deliveries alone have shown, upstream is asked twice a minute",
  async (kind, at) => {
    const by = showing(resourceOf(kind));
    if (!by) throw new Error("It is shown by no event");
    const first = 5_000_000_000 + at * 1_000_000;
    world.simulator.meter.reset();
    await tellOf(by, first);
    expect(await rows(kind, first)).toBe(MANY);
    // Each list is due after an hour.
    await pass(61 * MINUTE);
    for (let passed = 0; passed < 15; passed += 5) await pass(5 * MINUTE);
    // Eight at once. A row costs two requests at most: its own, and one for the repository. The lists are a few more.
    expect(charged()).toBeLessThanOrEqual(2 * (8 + 30) + 20);
  },
);

test("all of them are taken back in the end, and the repository is asked for once for those of one moment", async () => {
  const first = 6_000_000_000;
  await tellOf("release", first, 20);
  world.simulator.meter.reset();
  // A question for the repository lasts until all the others have come, however slow the machine.
  world.simulator.setFaults({ http: [{ match: "^GET /repositories/\\d+$", kind: "slow", delayMs: 1_000 }] });
  await pass(6 * MINUTE);
  world.simulator.setFaults({});
  const { routes } = world.simulator.meter.read();
  const reads = routes["GET /repos/:owner/:repo/releases/:id"]?.requests ?? 0;
  expect(reads).toBeGreaterThan(5);
  expect(reads).toBeLessThanOrEqual(8);
  expect(routes["GET /repos/:owner/:repo"]?.requests).toBeLessThanOrEqual(4);
  for (let passed = 0; passed < 60 && (await rows("release", first, STANDING)) > 0; passed++) await pass(MINUTE);
  expect(await rows("release", first, STANDING)).toBe(0);
});

test("what two deliveries contradict each other about costs no more", async () => {
  const first = 7_000_000_000;
  await tellOf("release", first);
  const row = await listed("release");
  world.simulator.meter.reset();
  for (let id = first; id < first + MANY; id++)
    await tell(world, {
      event: "release",
      payload: {
        ...{ action: "edited", changes: {}, repository, sender: repository.owner },
        release: { ...madeUp(row, id, []), body: "another" },
      },
    });
  await world.settle();
  await pass(MINUTE);
  await pass(MINUTE);
  expect(charged()).toBeLessThanOrEqual(2 * (8 + 4) + 10);
});
