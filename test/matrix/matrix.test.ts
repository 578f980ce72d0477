/**
 * Who sees what: every kind of caller, every visibility and every operation, each question asked twice. Upstream is
 * asked the same with the same token, and its access rule bounds every answer. MATRIX=1 asks every cell, MATRIX=5 every
 * fifth.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { apiSchema } from "../../src/api/graphql/schema.ts";
import { printFigures } from "../support/figures.ts";
import { type Caller, makeCallers } from "./callers.ts";
import { askCells, CELLS_MS, type Cell, sampled } from "./cells.ts";
import { changeAll, type MatrixWorld, openMatrixWorld } from "./matrix-world.ts";
import { marksIn, type Place } from "./places.ts";
import { addressesOf, mutationsOf, type Question, queriesOf, readsAbove, readsOf, writesOf } from "./questions.ts";
import { type Following, follow } from "./streams.ts";
import { tryMutations, tryWrites } from "./writes.ts";

let world: MatrixWorld;
let callers: Caller[];
let outsider: string;
/** How many cells were asked. */
let asked = 0;

beforeAll(async () => {
  world = await openMatrixWorld();
  callers = await makeCallers(world.api, { secret: world.places.secret, acme: "acme" });
  outsider = callers.find(({ name }) => name === "an outsider's classic token")?.token ?? "";
});
afterAll(async () => {
  printFigures("matrix", { cells: asked });
  await world?.[Symbol.asyncDispose]();
});

/** The cells of these questions. The callers take turns at being the first to ask. */
function byEachCaller(place: Place, questions: readonly Question[]): Cell[] {
  const { length } = callers;
  return questions.flatMap((question, at) =>
    callers.map((_, one): Cell => ({ caller: callers[(at + one) % length] as Caller, place, question })),
  );
}

const schema = apiSchema();

function readsIn(place: Place): Cell[] {
  const { login, id } = world.api.upstream.world.user(place.repository.ownerId);
  const below = addressesOf(place).flatMap((address) => readsOf(place, address));
  return byEachCaller(place, [...below, ...readsAbove(place, { login, id }), ...queriesOf(schema, place)]);
}

/** A run that asks only a part of the cells still asks every one of these. */
const nameOf = {
  caller: ({ caller }: Cell) => caller.name,
  place: ({ place }: Cell) => place.name,
  operation: ({ question }: Cell) => /^\w+ [^ ,]+/.exec(question.name)?.[0],
};

async function expectRight(cells: readonly Cell[], options: { atOnce?: boolean } = {}): Promise<void> {
  asked += cells.length;
  expect(await askCells(world, cells, { outsider, ...options })).toEqual([]);
}

test("checks are answered from the mirror to those who may see them", async () => {
  const { targets } = world.places.secret;
  const { fullName, params } = targets.pull;
  for (const list of ["check-runs", "check-suites", "statuses", "status"]) {
    const { status, headers } = await world.api.get(`/repos/${fullName}/commits/${params.ref}/${list}`);
    expect([status, headers.get("x-tain-passed-through")], list).toEqual([200, null]);
  }
});

test("commits and files of pull requests are answered from the mirror to those who may see them", async () => {
  const { targets } = world.places.secret;
  const { fullName, params } = targets.pull;
  for (const list of ["commits", "files"]) {
    const { status, headers, body } = await world.api.get(`/repos/${fullName}/pulls/${params.number}/${list}`);
    expect([status, headers.get("x-tain-passed-through"), body.length], list).toEqual([200, null, 1]);
  }
});

test("branches, tags and refs are answered from the mirror", async () => {
  const { fullName } = world.places.secret.targets.pull;
  for (const path of ["branches", "tags", "git/ref/heads/seen", "git/matching-refs/heads/s"]) {
    const { status, headers } = await world.api.get(`/repos/${fullName}/${path}`);
    expect([status, headers.get("x-tain-passed-through")], path).toEqual([200, null]);
  }
});

test("releases are answered from the mirror to those who may see them, and drafts to nobody else", async () => {
  const { targets } = world.places.secret;
  const { fullName, params } = targets.pull;
  for (const path of ["releases", "releases/latest", `releases/tags/${params.tag}`]) {
    const { status, headers, text } = await world.api.get(`/repos/${fullName}/${path}`);
    expect([status, headers.get("x-tain-passed-through"), marksIn(text)], path).toEqual([200, null, ["secret news"]]);
  }
});

test(
  "each is shown what upstream shows them, also what is about to change",
  async () => {
    const { closed, paused, gone, renamed, moved } = world.places;
    await expectRight(sampled([closed, paused, gone, renamed, moved].flatMap(readsIn)));
  },
  CELLS_MS,
);

test(
  "what closes, closes to all at once, also where its answers were kept",
  async () => {
    const { closed, paused, gone } = world.places;
    const seenBefore = [closed, paused, gone].flatMap(readsIn);
    await changeAll(world);
    await expectRight(sampled(seenBefore), { atOnce: true });
  },
  CELLS_MS,
);

test(
  "after the changes each is shown what upstream shows them",
  async () => {
    // Upstream's word about a caller is no longer believed after this time.
    world.api.advance(61_000);
    const all = Object.values(world.places).flatMap(readsIn);
    const some = sampled(all);
    for (const kind of [nameOf.caller, nameOf.place, nameOf.operation])
      expect(new Set(some.map(kind))).toEqual(new Set(all.map(kind)));
    await expectRight(some);
  },
  CELLS_MS,
);

test(
  "each hears of changes in what upstream shows them",
  async () => {
    const all = Object.values(world.places).flatMap((place) =>
      callers.flatMap((caller) =>
        (["issueChanged", "pullRequestChanged"] as const).map((field): Following => ({ caller, place, field })),
      ),
    );
    const some = sampled(all, 7);
    asked += some.length;
    expect(await follow(world, some)).toEqual([]);
  },
  CELLS_MS,
);

test(
  "each may write where upstream lets them, and is refused elsewhere as there",
  async () => {
    const places = Object.values(world.places);
    const writes = places.flatMap((place) =>
      byEachCaller(
        place,
        addressesOf(place).flatMap((address) => writesOf(place, address)),
      ),
    );
    const mutations = places.flatMap((place) => byEachCaller(place, mutationsOf(schema, place)));
    const [someWrites, someMutations] = [sampled(writes), sampled(mutations)];
    asked += someWrites.length + someMutations.length;
    expect(await tryWrites(world, someWrites)).toEqual([]);
    expect(await tryMutations(world, someMutations)).toEqual([]);
  },
  CELLS_MS,
);
