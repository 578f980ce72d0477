/** Pages of REST that upstream cannot answer at once: they are read in parts, and answered as if they had been whole. */
import { type Json, objectOf } from "../../json.ts";
import type { Stores } from "../../stores.ts";
import { NotYetError, TooHeavyError, UpstreamUnavailableError } from "../protocol/errors.ts";
import { pageOfPath } from "../protocol/pagination.ts";
import type { GetOptions, Links, ReadAnswer } from "../protocol/upstream.ts";
import { inBearableSize } from "./bearable-sizes.ts";

type Get = (path: string, options: GetOptions) => Promise<ReadAnswer>;
type ShownPage = Extract<ReadAnswer, { kind: "ok" }>;

/**
 * Reads a page of a list. A page that fails while a single row of it is answered fails by its size: it is asked for in
 * halves, and the size that upstream bears is remembered for the list. A row that upstream cannot show even alone is null
 * in a list by number. For whoever waits, the page is asked for once.
 * @throws what `get` throws
 */
export async function readPage(
  ctx: Pick<Stores, "db" | "clock">,
  get: Get,
  path: string,
  options: GetOptions,
): Promise<ReadAnswer> {
  const asked = sizeIn(path);
  if (asked === null || asked === 1 || options.priority === "caller") return await get(path, options);
  const { repositoryId, list } = listOf(path);
  let isAnswering = false;
  return await inBearableSize(ctx, { repositoryId, query: `list ${list}`, atMost: asked }, async (wanted) => {
    // Parts of a page have to fill it.
    let size = wanted;
    while (asked % size !== 0) size -= 1;
    try {
      return await (size === asked ? get(path, options) : readParts(get, path, { asked, size }, options));
    } catch (error) {
      if (!mayBeBySize(error) || size === 1) throw error;
      // If the first two rows fail as well, each alone, upstream is away, and nothing is learnt.
      const isShown = (row: number) => isAnswered(get, partOf(path, { asked, size: 1 }, row), options);
      isAnswering ||= (await isShown(1)) || (await isShown(2));
      throw isAnswering ? new TooHeavyError(`${list}: upstream cannot show ${size} rows`, { cause: error }) : error;
    }
  });
}

function sizeIn(path: string): number | null {
  const [, size] = /[?&]per_page=([1-9]\d?|100)(?=&|$)/.exec(path) ?? [];
  return size === undefined ? null : Number(size);
}

/** The repository and its list, such as `pulls/comments`: the same of each pull request, and of each commit. */
function listOf(path: string): { repositoryId: number; list: string } {
  const [, id, list = ""] = /^\/repositories\/(\d+)\/([^?]*)/.exec(path) ?? [];
  if (id === undefined) return { repositoryId: 0, list: path.slice(1).split("?", 1).join() };
  return { repositoryId: Number(id), list: list.replace(/\/(\d+|[0-9a-f]{40})(?=\/)/g, "") };
}

/** Whether so large an answer may be the reason: upstream or a proxy gave up or cut it off, or it is too large for us. */
function mayBeBySize(error: unknown): boolean {
  if (!(error instanceof UpstreamUnavailableError) || error instanceof NotYetError) return false;
  return error.outage !== "unreachable";
}

async function isAnswered(get: Get, path: string, options: GetOptions): Promise<boolean> {
  try {
    await get(path, { ...options, conditional: false, anew: false });
    return true;
  } catch (error) {
    if (error instanceof UpstreamUnavailableError) return false;
    throw error;
  }
}

interface Sizes {
  /** How many rows the whole page has. */
  asked: number;
  /** How many rows each part has. */
  size: number;
}

/** The part's address. A cursor stands before its first row, whatever the size. */
function partOf(path: string, { asked, size }: Sizes, part: number): string {
  const page = Number(/[?&]page=(\d+)/.exec(path)?.[1] ?? 1);
  const number = ((page - 1) * asked) / size + part;
  const sized = path.replace(/([?&]per_page=)\d+/, `$1${size}`);
  if (/[?&]page=/.test(path)) return sized.replace(/([?&]page=)\d+/, `$1${number}`);
  return number === 1 ? sized : `${sized}&page=${number}`;
}

async function readParts(get: Get, path: string, sizes: Sizes, options: GetOptions): Promise<ReadAnswer> {
  const parts = sizes.asked / sizes.size;
  const address = (part: number) => partOf(path, sizes, part);
  let first = await firstPart(get, address, sizes, options);
  // The page is no longer than its first part, whose validator holds for it.
  if (first.kind === "unchanged" && first.next === null) return first;
  if (first.kind === "ok" && first.links.next === undefined) return { ...first, links: wholeLinks(first.links, sizes) };
  const anew = { ...options, conditional: false, anew: false };
  if (first.kind === "unchanged") first = await get(address(1), anew);
  if (first.kind !== "ok") return first;
  const read: ShownPage[] = [first];
  if (/[?&](after|before)=/.test(first.links.next ?? "")) {
    for (let { next } = first.links; next !== undefined && read.length < parts; ) {
      const part = await get(next, anew);
      if (part.kind !== "ok") return part;
      read.push(part);
      next = part.links.next;
    }
    return joined(read, sizes);
  }
  const lastNumber = pageOfPath(first.links.last ?? "");
  const count = lastNumber === null ? parts : Math.min(parts, lastNumber - (pageOfPath(address(1)) ?? 1) + 1);
  const others = Array.from({ length: count - 1 }, (_, at) => at + 2);
  // A row that changes leaves its place in the order of changes. All behind it move to the front, into parts that are
  // still to be read if the last is read first. The first part is then read again.
  const isBackwards = /[?&]direction=asc(&|$)/.test(path);
  for (const part of isBackwards ? [...others.reverse(), 1] : others) {
    const answer = await readLeft(get, address(part), sizes.size, { options: anew, like: first });
    if (answer.kind !== "ok") return answer;
    if (isBackwards) read.splice(part === 1 ? 0 : 1, part === 1 ? 1 : 0, answer);
    else read.push(answer);
    if (!isBackwards && answer.links.next === undefined) break;
  }
  return joined(read, sizes);
}

/** If upstream cannot show the first row even alone, and shows the second, null stands for the first. */
async function firstPart(
  get: Get,
  address: (part: number) => string,
  { asked, size }: Sizes,
  options: GetOptions,
): Promise<ReadAnswer> {
  try {
    return await get(address(1), options);
  } catch (error) {
    if (!mayBeBySize(error) || size > 1 || asked === 1) throw error;
    const second = await get(address(2), { ...options, conditional: false, anew: false });
    if (second.kind !== "ok") throw error;
    return withoutRow(second, address(1));
  }
}

/**
 * Reads a part of a page of which upstream has shown another part: `like`. If it fails, it is divided until the one row
 * is found that upstream cannot show.
 * @throws what `get` throws if it shows nothing of a part of several rows
 */
async function readLeft(
  get: Get,
  path: string,
  size: number,
  { options, like }: { options: GetOptions; like: ShownPage },
): Promise<ReadAnswer> {
  try {
    return await get(path, options);
  } catch (error) {
    if (!mayBeBySize(error)) throw error;
    if (size === 1) return withoutRow(like, path);
    let smaller = Math.ceil(size / 2);
    while (size % smaller !== 0) smaller -= 1;
    const sizes = { asked: size, size: smaller };
    const parts: ShownPage[] = [];
    for (let part = 1; part <= size / smaller; part++) {
      const answer = await readLeft(get, partOf(path, sizes, part), smaller, { options, like });
      if (answer.kind !== "ok") return answer;
      parts.push(answer);
      if (answer.links.next === undefined) break;
    }
    if (parts.every(({ body }) => rowsIn(body).every((row) => row === null))) throw error;
    return joined(parts, sizes);
  }
}

/** The page of one row, at `path`, that upstream cannot show. Whether another row follows, the next page tells. */
function withoutRow(like: ShownPage, path: string): ShownPage {
  const number = (pageOfPath(path) ?? 1) + 1;
  const next = /[?&]page=/.test(path) ? path.replace(/([?&]page=)\d+/, `$1${number}`) : `${path}&page=${number}`;
  return { ...like, body: withRows(like.body, [null]), links: { next }, validator: null };
}

/** One page of its parts. It is as old as the oldest of them, and no validator covers it. */
function joined(parts: readonly ShownPage[], sizes: Sizes): ReadAnswer {
  const oldest = parts.reduce((one, other) => (other.seenAt < one.seenAt ? other : one));
  const [begin, end] = [parts[0] ?? oldest, parts.at(-1) ?? oldest];
  return {
    ...oldest,
    body: withRows(
      oldest.body,
      parts.flatMap(({ body }) => rowsIn(body)),
    ),
    links: wholeLinks({ ...end.links, ...onlyBefore(begin.links) }, sizes),
    upstreamNow: earliest(parts.map(({ upstreamNow }) => upstreamNow)),
    asOf: parts.some(({ asOf }) => asOf === null) ? null : earliest(parts.flatMap(({ asOf }) => asOf ?? [])),
    doubts: parts.some(({ doubts }) => doubts !== undefined) ? "all" : undefined,
    missing: parts.find(({ missing }) => missing !== undefined)?.missing,
    validator: null,
  };
}

/** A list is an array, or an object that has one beside its `total_count`. */
function rowsIn(body: Json): Json[] {
  if (Array.isArray(body)) return body;
  return Object.values(objectOf(body)).find((value) => Array.isArray(value)) ?? [];
}

function withRows(body: Json, rows: Json[]): Json {
  if (Array.isArray(body)) return rows;
  const shown = Object.entries(objectOf(body)).map(([key, value]) => [key, Array.isArray(value) ? rows : value]);
  return Object.fromEntries(shown);
}

function onlyBefore({ prev, first }: Links): Links {
  return { ...(prev !== undefined && { prev }), ...(first !== undefined && { first }) };
}

/** The links of a part as those of the whole page: the pages that begin where the named parts lie. */
function wholeLinks(links: Links, { asked, size }: Sizes): Links {
  const whole: Links = {};
  for (const relation of ["next", "prev", "first", "last"] as const) {
    const sized = links[relation]?.replace(/([?&]per_page=)\d+/, `$1${asked}`);
    if (sized === undefined) continue;
    const number = pageOfPath(sized);
    const page = number === null ? null : Math.floor(((number - 1) * size) / asked) + 1;
    whole[relation] = page === null ? sized : sized.replace(/([?&]page=)\d+/, `$1${page}`);
  }
  return whole;
}

function earliest(times: readonly Date[]): Date {
  return new Date(Math.min(...times.map(Number)));
}
