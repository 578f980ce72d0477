import { LRUCache } from "lru-cache";
import { PEOPLE } from "../../db/revisions.ts";
import type { Config } from "../config.ts";
import { Revisions, type Standing } from "../mirror/unchanged/standings.ts";
import type { Answer, Call } from "./call.ts";
import { classOf } from "./callers/caller.ts";
import { compressed, type Encoding } from "./compression.ts";
import { ownBytes } from "./own-bytes.ts";
import type { Page } from "./page.ts";
import type { Match } from "./router.ts";

/** What is remembered of a request that was answered: what it showed, and from the second time on the page. */
type Entry = { met: readonly number[] } | Page;

/** Of an entry, beside the page's bytes: keys, headers, maps. */
const OVERHEAD_BYTES = 1_500;
/** Compressed twice a page of JSON has a third of its bytes once more; more than that is not foreseen. */
const COMPRESSED = 1.4;
/** A page that would push out all others is not kept. */
const LARGEST_PART = 1 / 8;

/**
 * Gives an answer again that was given before. It is asked each time whether anything of what the page shows has changed
 * since it was rendered, so a read that begins after a change was committed, by whichever process, shows the change.
 *
 * What a page shows is known only once it was rendered, and its revisions have to be read before that: so a page is kept from
 * the second time on that it is asked for, which also keeps out what is asked for once.
 */
export class PageCache implements AsyncDisposable {
  readonly #entries: LRUCache<string, Entry> | null;
  readonly #largestBytes: number;
  readonly revisions: Revisions;

  constructor({ config }: { config: Pick<Config, "databaseUrl" | "pageCacheBytes"> }) {
    this.#largestBytes = config.pageCacheBytes * LARGEST_PART;
    this.#entries =
      config.pageCacheBytes === 0 ? null : new LRUCache({ maxSize: config.pageCacheBytes, sizeCalculation: bytesOf });
    this.revisions = new Revisions(config);
  }

  /** The page, or what `render` answers, which becomes the page where it can. `render` notes in `call.met` what it shows. */
  async answer(call: Call, match: Match, render: () => Promise<Answer>): Promise<Answer> {
    if (!this.#entries || !isKept(call, match)) return render();
    const key = keyOf(call);
    const known = this.#entries.get(key);
    // A copy: what is learnt later may be newer than what is rendered.
    const standings = known && new Map(await call.revisions.now(metBy(known)));
    if (known && standings && "bytes" in known) {
      const standing = standingOf(known, standings);
      if (standing) return answerOf(known, standing);
    }
    const answer = await render();
    const met = [PEOPLE, ...call.met];
    if (!isPage(answer) || Buffer.byteLength(answer.body) > this.#largestBytes) {
      this.#entries.delete(key);
      return answer;
    }
    const page = standings && pageOf(answer, met, standings);
    this.#entries.set(key, page ?? { met });
    return page ? { ...answer, body: null, page } : answer;
  }

  /** A page that is kept; whether it still may be given is asked of its `revisions`. */
  find(key: string): Page | null {
    const entry = this.#entries?.get(key);
    return entry && "bytes" in entry ? entry : null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#entries?.clear();
    await this.revisions[Symbol.asyncDispose]();
  }
}

/** How its repository stands, if the page shows what there is; null: it has to be rendered anew. */
export function standingOf(page: Page, standings: ReadonlyMap<number, Standing>): Standing | null {
  for (const [id, revision] of page.revisions) if (standings.get(id)?.revision !== revision) return null;
  const home = standings.get(page.repositoryId);
  return home?.isMirrored ? home : null;
}

/** The page's bytes in this encoding, which is made once and kept with it. */
export async function encoded(page: Pick<Page, "bytes" | "encoded">, encoding: Encoding): Promise<Buffer> {
  const known = page.encoded.get(encoding);
  if (known) return known;
  const bytes = ownBytes(await compressed(page.bytes, encoding, "often"));
  page.encoded.set(encoding, bytes);
  return bytes;
}

/** Names what is asked for, in which form, and as how much of it is shown to whom. */
export function keyOf(call: Pick<Call, "path" | "query" | "api" | "version" | "media" | "caller">): string {
  return `${call.path}?${call.query}\n${call.api}\n${call.version}\n${call.media.form}\n${classOf(call.caller)}`;
}

function isKept(call: Call, { route }: Match): boolean {
  return (
    route.run.of === "repository" &&
    route.method === "GET" &&
    !call.isFresh &&
    call.media.patch === null &&
    // What is long-running depends on the time of day.
    call.query.get("sort") !== "long-running"
  );
}

function isPage(answer: Answer): answer is Answer & { body: string | Buffer } {
  const { status, body, contentType, headers, isUncached, notFresh } = answer;
  return (
    status === 200 && body !== null && contentType === undefined && headers === undefined && !isUncached && !notFresh
  );
}

/** Null: it shows something of which it was not known beforehand that it would. */
function pageOf(
  { body, link, lastModified }: Answer & { body: string | Buffer },
  [people, repositoryId, ...others]: readonly number[],
  standings: ReadonlyMap<number, Standing>,
): Page | null {
  if (people === undefined || repositoryId === undefined) return null;
  const revisions = new Map<number, string | null>();
  for (const id of [people, repositoryId, ...others]) {
    const standing = standings.get(id);
    if (!standing) return null;
    revisions.set(id, standing.revision);
  }
  lastId += 1;
  return {
    id: lastId,
    bytes: ownBytes(body),
    link: link ?? null,
    lastModified: lastModified ?? null,
    repositoryId,
    revisions,
    encoded: new Map(),
    tags: new Map(),
  };
}

let lastId = 0;

function answerOf(page: Page, { confirmedAt }: Standing): Answer {
  const { link, lastModified } = page;
  return { status: 200, body: null, page, link, lastModified, confirmedAt };
}

function metBy(entry: Entry): Iterable<number> {
  return "bytes" in entry ? entry.revisions.keys() : entry.met;
}

function bytesOf(entry: Entry, key: string): number {
  const own = "bytes" in entry ? entry.bytes.length * COMPRESSED : 0;
  return Math.ceil(own) + key.length * 2 + OVERHEAD_BYTES;
}
