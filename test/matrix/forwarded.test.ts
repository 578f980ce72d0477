/**
 * Upstream's answers that Tain only forwards and keeps for all: who is shown which? Every kind of caller asks every
 * kind of route at every visibility, twice in each of two processes. Upstream is asked the same with the same token at
 * that moment.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { pushBranch } from "../../src/simulator/changes/pulls.ts";
import { type Answered, askAt } from "../support/asking.ts";
import { printFigures } from "../support/figures.ts";
import { accessOf, type Caller, makeCallers } from "./callers.ts";
import { CELLS_MS, sampled } from "./cells.ts";
import { changeAll, type MatrixWorld, openMatrixWorld } from "./matrix-world.ts";
import { marksIn, type Place } from "./places.ts";

let world: MatrixWorld;
let callers: Caller[];
/** Two web processes that share the kept answers. */
let bases: string[];
/** How many answers were compared, and how many of them were kept ones. */
const figures = { cells: 0, hit: 0, revalidated: 0 };

beforeAll(async () => {
  world = await openMatrixWorld();
  callers = await makeCallers(world.api, { secret: world.places.secret, acme: "acme" });
  bases = [world.api.url, await world.api.openSibling()];
});
afterAll(async () => {
  printFigures("matrix of what is forwarded", figures);
  await world?.[Symbol.asyncDispose]();
});

interface Question {
  path: string;
  accept: string;
  isBySha: boolean;
}

/**
 * A question for each class of routes: by sha, by name, something that is not there, a permission, another media type,
 * and a tag of Git's.
 */
function questionsOf({ repository, targets, formerName, pull }: Place): Question[] {
  const sha = repository.branches.get("main") ?? "";
  const json = "application/vnd.github+json";
  const [old, renamed] = [`/repos/${formerName}`, `/repos/${targets.issue.fullName}`];
  const at = (base: string, rest: string, accept = json): Question => ({
    path: base + rest,
    accept,
    isBySha: rest.includes(sha),
  });
  return [...new Set([old, renamed, `/repositories/${repository.id}`])].flatMap((base) => [
    at(base, `/git/blobs/${sha}`),
    at(base, `/commits/${sha}`, "application/vnd.github.sha"),
    at(base, `/contents/README.md?ref=${sha}`, "application/vnd.github.raw"),
    at(base, `/contents/README.md?ref=${sha}`),
    at(base, `/compare/${sha}...${sha}`),
    at(base, "/commits/main"),
    at(base, "/compare/main...main"),
    at(base, "/commits/main/branches-where-head"),
    at(base, "/contents/NONE.md"),
    at(base, "/collaborators?affiliation=direct"),
    at(base, `/pulls/${pull.number}`, "application/vnd.github.diff"),
  ]);
}

interface Cell {
  caller: Caller;
  place: Place;
  question: Question;
}

/**
 * Some of the questions, each asked by all callers. The callers take turns at being the first to ask.
 * @param part one of so many questions is asked
 */
function cellsOf(places: readonly Place[], part: number): Cell[] {
  const rows = places.flatMap((place) => questionsOf(place).map((question) => ({ place, question })));
  return sampled(rows, process.env.MATRIX === undefined ? part : undefined).flatMap((row, at) =>
    // No type can say that the rest of a division is an index.
    callers.map((_, one) => ({ ...row, caller: callers[(at + one) % callers.length] as Caller })),
  );
}

/** @param isTold whether the time has passed for which the mirror believes what upstream said about a caller */
async function faultsOf(cells: readonly Cell[], isTold = true): Promise<string[]> {
  const faults: string[] = [];
  for (const cell of cells) {
    const { caller, place, question } = cell;
    const headers = { accept: question.accept, "accept-encoding": "identity" };
    for (const base of [...bases, ...bases]) {
      const ours = await askAt(base, "GET", question.path, { token: caller.token, headers });
      figures.cells += 1;
      const outcome = ours.headers.get("x-cache");
      if (outcome === "hit" || outcome === "revalidated") figures[outcome] += 1;
      const theirs = await askAt(world.api.upstream.url, "GET", question.path, {
        token: caller.standsFor(place),
        headers,
      });
      for (const fault of wrongWith(cell, { ours, theirs, base, isTold }))
        faults.push(`${caller.name}, ${place.name}, ${question.accept} of ${question.path}, ${outcome}: ${fault}`);
    }
  }
  return faults;
}

function wrongWith(
  { caller, place, question }: Cell,
  { ours, theirs, base, isTold }: { ours: Answered; theirs: Answered; base: string; isTold: boolean },
): string[] {
  const isShown = ours.status < 400 && ours.text !== "";
  const isAllowed = accessOf(world.api, caller, place).metadata;
  if (caller.isRefused) return ours.status < 400 ? [`it is answered ${ours.status}`] : [];
  // For a while the mirror believes what upstream said about a caller, here as with what is mirrored. So somebody who
  // saw a repository before it became private may still see it.
  if (!isTold && place.name === "moved") return [];
  const wrong: string[] = [];
  if (!isAllowed && (isShown || marksIn(ours.text).length > 0))
    wrong.push(`it is shown ${ours.status} ${ours.text.slice(0, 80)}`);
  const isAsked = !caller.isOurs && caller.token !== null;
  if (isAsked) {
    const text = theirs.text.replaceAll(world.api.upstream.url, base);
    // The mirror does not ask upstream for a pull request of a repository that it does not show the caller.
    const isMirrored = question.accept.endsWith("diff") && !isAllowed;
    if (ours.status !== theirs.status || (!isMirrored && ours.text !== text))
      wrong.push(
        `it is told ${ours.status} ${ours.text.slice(0, 60)}, and upstream says ${theirs.status} ${text.slice(0, 60)}`,
      );
    if (isShown && ours.headers.get("etag") !== theirs.headers.get("etag")) wrong.push("it has another tag");
  } else if (isShown) {
    // The caller sees what the mirror's own credential is shown, with the permissions of the caller.
    const text = withPermissionsOf(caller, place, theirs.text.replaceAll(world.api.upstream.url, base));
    if (theirs.status === 200 && !ours.text.includes("download_url") && ours.text !== text)
      wrong.push("it is shown another text");
  }
  return wrong;
}

const READS = '"permissions":{"admin":false,"maintain":false,"push":false,"triage":false,"pull":true}';

/**
 * Replaces the permissions in upstream's answer by those that a caller without a token of upstream's has through this
 * mirror.
 */
function withPermissionsOf(caller: Caller, place: Place, text: string): string {
  if (caller.mayWrite && caller.standsFor(place) !== null) return text;
  if (caller.isOurs) return text.replace(/"permissions":\{"admin":[^}]*\}/g, READS);
  return text.replace(/,"permissions":\{"admin":[^}]*\}/g, "");
}

test(
  "each is shown what upstream shows them, whoever asked before",
  async () => {
    expect(await faultsOf(cellsOf(Object.values(world.places), 29))).toEqual([]);
    expect(Math.min(figures.hit, figures.revalidated)).toBeGreaterThan(0);
  },
  CELLS_MS,
);

test(
  "after a push each is shown what is there now",
  async () => {
    const places = Object.values(world.places);
    for (const { repository } of places) pushBranch(world.api.upstream.world, world.owners.octo.id, repository, "main");
    expect(await faultsOf(cellsOf(places, 59))).toEqual([]);
  },
  CELLS_MS,
);

test(
  "what closes, closes to all at once, and what moves is where upstream says",
  async () => {
    const { closed, paused, gone, renamed, moved } = world.places;
    const some = cellsOf([closed, paused, gone, renamed, moved], 47);
    expect(await faultsOf(some)).toEqual([]);
    await changeAll(world);
    expect(await faultsOf(some, false)).toEqual([]);
    world.api.advance(61_000);
    expect(await faultsOf(some)).toEqual([]);
  },
  CELLS_MS,
);
