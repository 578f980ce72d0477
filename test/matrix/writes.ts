import { wholeState } from "../../src/simulator/control/state.ts";
import { openView } from "../../src/simulator/views/view.ts";
import { askAt } from "../support/asking.ts";
import { accessOf } from "./callers.ts";
import type { Cell } from "./cells.ts";
import type { MatrixWorld } from "./matrix-world.ts";
import { marksIn, type Place } from "./places.ts";

/**
 * Upstream refuses these with an empty body, even from callers who may write. So mirror and upstream can both be asked.
 * Adding labels to an issue is not among them, because adding none is no mistake.
 */
const HARMLESS = /^POST \S*\/(issues|comments|(?<!issues\/\d+\/)labels|milestones|pulls)$/;

/** Upstream computes these fields once they are read, and knows them some time later. */
const COMPUTED = /"(?:mergeable|rebaseable|mergeable_state|merge_commit_sha)":(?:"[^"]*"|\w+)/g;

/** Everything that upstream has of the place. */
function stateOf({ api: { upstream } }: MatrixWorld, { repository }: Place): string {
  const view = openView({ world: upstream.world, apiUrl: upstream.url, htmlUrl: upstream.url });
  return [...wholeState(view, [repository])].join("").replace(COMPUTED, "");
}

/** The status that the write should get. Null: upstream would carry the write out, so it is not tried. */
async function dueStatus({ api }: MatrixWorld, cell: Cell): Promise<number | null> {
  const { caller, place, question } = cell;
  const { method, path, body = "" } = question;
  const access = accessOf(api, caller, place);
  if (!access.metadata) return caller.isRefused ? 401 : 404;
  const token = caller.standsFor(place);
  const isRedirected = !path.startsWith(`/repos/${place.targets.issue.fullName}/`) && path.startsWith("/repos/");
  if (!isRedirected && caller.isOurs && (!caller.mayWrite || token === null)) return 403;
  const mayWrite = access.issues === "write" || access.pulls === "write";
  if (!isRedirected && mayWrite && !HARMLESS.test(`${method} ${path}`)) return null;
  return (await askAt(api.upstream.url, method, path, { token, body })).status;
}

/** Answers what is wrong with who may write, in words. */
export async function tryWrites(world: MatrixWorld, cells: readonly Cell[]): Promise<string[]> {
  const faults: string[] = [];
  for (const cell of cells) {
    const { caller, place, question } = cell;
    const { method, path, body = "" } = question;
    const expected = await dueStatus(world, cell);
    if (expected === null) continue;
    const before = stateOf(world, place);
    const { status, text } = await askAt(world.api.url, method, path, { token: caller.token, body });
    const what = `${caller.name}, ${place.name}, ${question.name}, ${path}`;
    if (status >= 400 && stateOf(world, place) !== before) faults.push(`${what}: ${status}, and upstream has changed`);
    // While upstream does not show a repository, nothing is sent to it.
    const isHeld = place.name === "paused" && status === 503;
    const isAs = status === expected || isHeld || (caller.isRefused && status === 403);
    if (!isAs) faults.push(`${what}: ${status}, and not ${expected}: ${text.slice(0, 200)}`);
    if (!accessOf(world.api, caller, place).metadata)
      faults.push(...marksIn(text).map((mark) => `${what}: it shows ${mark}`));
  }
  return faults;
}

/** Does the same for mutations, with callers who may write nothing in the place. */
export async function tryMutations(world: MatrixWorld, cells: readonly Cell[]): Promise<string[]> {
  const faults: string[] = [];
  for (const { caller, place, question } of cells) {
    const access = accessOf(world.api, caller, place);
    const isHeld = access.issues !== "write" && access.pulls !== "write";
    if (!isHeld && (!caller.isOurs || (caller.mayWrite && caller.standsFor(place) !== null))) continue;
    const { method, path, body = "" } = question;
    const before = stateOf(world, place);
    const { status, text, body: told } = await askAt(world.api.url, method, path, { token: caller.token, body });
    const what = `${caller.name}, ${place.name}, ${question.name}`;
    if (stateOf(world, place) !== before) faults.push(`${what}: upstream has changed`);
    const isRefused = status < 500 && (status >= 400 || (told?.errors?.length > 0 && isEmpty(told.data)));
    if (!isRefused || marksIn(text).length > 0) faults.push(`${what}: ${status} ${text.slice(0, 200)}`);
  }
  return faults;
}

function isEmpty(data: object | null | undefined): boolean {
  return Object.values(data ?? {}).every((value) => value === null);
}
