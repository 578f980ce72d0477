import type { Access } from "../../src/simulator/world/access.ts";
import { type Answered, askAt } from "../support/asking.ts";
import { LONG_TEST_MS, TEST_MS } from "../support/bounds.ts";
import { accessOf, type Caller, maySee } from "./callers.ts";
import type { MatrixWorld } from "./matrix-world.ts";
import { type MarkKind, marksIn, type Place, type PlaceName } from "./places.ts";
import type { Question } from "./questions.ts";

/** One question of one caller about one place. */
export interface Cell {
  caller: Caller;
  place: Place;
  question: Question;
}

/** One of so many cells is asked. The number is a prime, so that no row or column stays out. */
const PART = Number(process.env.MATRIX ?? 67);

/** How long a test may take that asks every cell. */
export const CELLS_MS = PART < 10 ? 6 * LONG_TEST_MS : TEST_MS;

/** The cells that are asked in this run. */
export function sampled<T>(all: readonly T[], part = PART): T[] {
  return all.filter((_, at) => PART === 1 || at % part === 0);
}

/** What an answer tells: its status, the marks in it, its counts, and what it refuses. */
interface Told {
  status: number;
  marks: string[];
  counts: number[];
  refused: string[];
}

function toldBy({ status, text, body }: Answered): Told {
  const counts: number[] = Array.isArray(body) ? [body.length] : [];
  const refused: string[] = [];
  const look = (value: unknown) => {
    if (typeof value !== "object" || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      if (/^(totalCount|issueCount|repositoryCount|total_count)$/.test(key)) counts.push(inner);
      else look(inner);
    }
  };
  look(body);
  for (const { type, path } of body?.errors ?? []) refused.push(`${type} ${path?.join(".")}`);
  return { status, marks: marksIn(text), counts, refused: refused.sort() };
}

type Truth = (told: Told) => string[];

/** Finds out what each answer should be. The bounds of the access rule are checked elsewhere. */
class Truths {
  readonly #world: MatrixWorld;
  readonly #outsider: string;
  readonly #asked = new Map<string, Promise<Answered>>();

  /** @param outsider a token that sees only what is public */
  constructor(world: MatrixWorld, outsider: string) {
    this.#world = world;
    this.#outsider = outsider;
  }

  async of(cell: Cell): Promise<Truth> {
    const { caller, question } = cell;
    if (caller.isRefused || question.truth === "bounds") return () => [];
    // A token of ours sees no drafts, but the token of upstream's that stands for it does. So the two answers are not
    // compared.
    if (caller.isOurs && /\/releases$|Repository\.releases/.test(`${question.name} ${question.path}`)) return () => [];
    if (isUpstreamsToAnswer(cell) || isOfOurRule(cell)) return () => [];
    if (question.truth === "rule") return await this.#byRule(cell);
    const isSeen = accessOf(this.#world.api, caller, cell.place).metadata;
    return question.truth === "unknown" && !isSeen ? await this.#asUnknown(cell) : await this.#byUpstream(cell);
  }

  #ask(base: string, token: string | null, { method, path, body }: Question): Promise<Answered> {
    const asking = { token, ...(body === undefined ? {} : { body }) };
    return this.#asked.getOrInsertComputed(`${base} ${token} ${method} ${path} ${body}`, () =>
      askAt(base, method, path, asking),
    );
  }

  async #byUpstream({ caller, place, question }: Cell): Promise<Truth> {
    const isGraphql = question.path === "/graphql";
    // GraphQL takes no questions without a token. A token of ours that stands for none is shown what is public, as the
    // outsider's is.
    const token = caller.standsFor(place) ?? (caller.isOurs && isGraphql ? this.#outsider : null);
    const theirs = shown(toldBy(await this.#ask(this.#world.api.upstream.url, token, question)));
    return (told) => (shown(told) === theirs ? [] : [`it tells ${shown(told)}, and upstream ${theirs}`]);
  }

  async #asUnknown({ caller, question }: Cell): Promise<Truth> {
    const path = question.path.replace(/^\/(?:repos\/[^/]+\/[^/]+|repositories\/\d+)/, "/repos/acme/never-was");
    const { status } = await this.#ask(this.#world.api.url, caller.token, { ...question, path });
    return (told) => (told.status === status ? [] : [`it is answered ${told.status}, and of what never was ${status}`]);
  }

  async #byRule({ caller, place, question }: Cell): Promise<Truth> {
    const { api } = this.#world;
    const access = accessOf(api, caller, place);
    const { text, body } = await this.#ask(api.url, api.token, question);
    const isAllowed = (part: string) => marksIn(part).every((mark) => mayTell(question, access, mark));
    const rows: unknown[] | null = Array.isArray(body?.items) ? body.items : null;
    const left = rows?.map((row) => JSON.stringify(row)).filter(isAllowed);
    const all = access.metadata ? marksIn(left ? left.join() : text) : [];
    const marks = all.filter((mark) => mayTell(question, access, mark));
    return ({ status, marks: told, counts }) => {
      if (isRefusal(status) && (!access.metadata || isAnonymousGraphql({ caller, question }))) return [];
      const faults = `${told}` === `${marks}` ? [] : [`it shows ${told}, and should ${marks}`];
      if (left && counts[0] !== (access.metadata ? left.length : 0)) faults.push(`it counts ${counts[0]}`);
      return faults;
    };
  }
}

/**
 * With a token of upstream's, upstream itself is asked what no mirrored repository bounds. The simulator has no search.
 */
function isUpstreamsToAnswer({ caller, question }: Cell): boolean {
  const { pathname, searchParams } = new URL(question.path, "http://mirror");
  const isUnbounded = !(searchParams.get("q") ?? "").includes("repo:");
  return !caller.isOurs && caller.token !== null && pathname === "/search/repositories" && isUnbounded;
}

/** What callers without a token of upstream's are shown of people: `test/scenario/people.test.ts` has the rule. */
function isOfOurRule({ caller, question }: Cell): boolean {
  return (
    (caller.isOurs || caller.token === null) &&
    (question.truth === "theirs" || /^GET \/(collaborators|teams)\b/.test(question.name))
  );
}

/**
 * GitHub docs, "Permissions required for fine-grained personal access tokens": the search for labels takes metadata.
 */
const LABELS_FOR_METADATA = "/search/labels";

/** Whether an answer to the question may tell this mark. A mark reads `place kind`. */
function mayTell({ path }: Question, access: Access, mark: string): boolean {
  // No type can say that a mark ends with its kind.
  const kind = mark.split(" ")[1] as MarkKind;
  if (kind === "tag" && path.startsWith(LABELS_FOR_METADATA)) return access.metadata;
  return maySee(access, kind);
}

/**
 * Answers what is wrong with the answers to these cells, in words.
 * @param outsider a token that sees what is public
 * @param options.atOnce true right after changes: for a while the mirror may then show callers less than upstream does
 */
export async function askCells(
  world: MatrixWorld,
  cells: readonly Cell[],
  { outsider, atOnce = false }: { outsider: string; atOnce?: boolean },
): Promise<string[]> {
  const faults: string[] = [];
  const truths = new Truths(world, outsider);
  for (const cell of cells) {
    const { caller, place, question } = cell;
    const { method, path, body } = question;
    const isSeen = accessOf(world.api, caller, place).metadata;
    const truth = atOnce && isSeen ? () => [] : await truths.of(cell);
    const times = isSeen || method !== "GET" ? ["cold", "warm"] : ["cold", "warm", CONDITIONAL];
    for (const time of times) {
      const headers = time === CONDITIONAL ? { "if-none-match": "*" } : {};
      const asked = { token: caller.token, headers, ...(body === undefined ? {} : { body }) };
      const told = toldBy(await askAt(world.api.url, method, path, asked));
      const wrong = [
        ...beyondBounds(world, cell, told).filter((mark) => !atOnce || !EARLIER.test(mark)),
        // An answer that does not concern the repository may be unchanged.
        ...(time === CONDITIONAL && question.truth === "theirs" ? [] : truth(told)),
      ];
      if (told.status >= 500 || (caller.isRefused && !isRefusal(told.status)))
        wrong.push(`it is answered ${told.status}`);
      for (const fault of wrong)
        faults.push(`${caller.name}, ${place.name}, ${question.name}, ${path.slice(0, 80)}, ${time}: ${fault}`);
    }
  }
  return faults;
}

/** The marks in an answer that upstream's rule does not allow the caller to see. */
function beyondBounds({ api, places }: MatrixWorld, { caller, question }: Cell, { marks }: Told): string[] {
  return marks
    .filter((mark) => {
      // No type can say that a mark begins with its place.
      const name = mark.split(" ")[0] as PlaceName;
      return !mayTell(question, accessOf(api, caller, places[name]), mark);
    })
    .map((mark) => `it shows ${mark}`);
}

/** This question is asked by callers who see nothing of the repository. */
const CONDITIONAL = "with a validator that fits everything";

/** Those who saw a repository that has become private may see it for `UPSTREAM_CALLER_TTL` longer. */
const EARLIER = / moved /;

function shown({ status, marks, counts, refused }: Told): string {
  return JSON.stringify({ status, marks, counts, refused });
}

function isRefusal(status: number): boolean {
  return status >= 400 && status < 500;
}

function isAnonymousGraphql({ caller, question }: Pick<Cell, "caller" | "question">): boolean {
  return caller.token === null && question.path === "/graphql";
}
