import { LRUCache } from "lru-cache";
import { PEOPLE } from "../../../../db/revisions.ts";
import type { FoundRepository } from "../../../mirror/read/nodes.ts";
import type { Standing, StandingsReader } from "../../../mirror/unchanged/standings.ts";

const MAX_REPOSITORIES = 2_000;
const MAX_VALUES = 20_000;
/** Of a text, beside its characters. */
const TEXT_OVERHEAD_BYTES = 80;

interface RememberedRepository {
  found: FoundRepository;
  /** Undefined: it was not known when it was read. */
  revision: string | null | undefined;
}

interface RememberedValue {
  /** Of the repository and of people, from before it was read. */
  revisions: readonly [string | null, string | null];
  value: unknown;
}

const DROPPED = -1;

/** What the issues of a repository were written as at one place of a query, by their numbers. */
export class Texts {
  readonly #texts = new Map<number, string>();
  readonly #grown: (bytes: number) => void;

  constructor(grown: (bytes: number) => void) {
    this.#grown = grown;
  }

  get isEmpty(): boolean {
    return this.#texts.size === 0;
  }

  get(number: number): string | undefined {
    return this.#texts.get(number);
  }

  set(number: number, text: string): void {
    if (this.#texts.has(number)) return;
    this.#texts.set(number, flat(text));
    this.#grown(text.length + TEXT_OVERHEAD_BYTES);
  }
}

/** One string, rather than the hundred that it was put together from, each of which would be kept with it. */
function flat(text: string): string {
  return Buffer.from(text).toString();
}

/** What this process has read of repositories. It is true as long as their revisions are what they were before it was read. */
export class Memory {
  readonly revisions: StandingsReader;
  readonly #repositories = new LRUCache<string, RememberedRepository>({ max: MAX_REPOSITORIES });
  readonly #values = new LRUCache<string, RememberedValue>({ max: MAX_VALUES });

  readonly #texts = new LRUCache<string, Texts>({ max: MAX_REPOSITORIES, dispose: (texts) => this.#dropped(texts) });
  readonly #sizes = new WeakMap<Texts, number>();
  readonly #maxTextBytes: number;
  #textBytes = 0;

  /** @param maxTextBytes 0: no texts are kept */
  constructor(revisions: StandingsReader, maxTextBytes: number) {
    this.revisions = revisions;
    this.#maxTextBytes = maxTextBytes;
  }

  /** The texts that are kept under this name; null: none are kept at all. */
  texts(name: string): Texts | null {
    if (this.#maxTextBytes === 0) return null;
    const known = this.#texts.get(name);
    if (known) return known;
    const texts: Texts = new Texts((bytes) => this.#grow(texts, bytes));
    this.#texts.set(name, texts);
    return texts;
  }

  /** What was not asked for longest goes first; what was dropped already may be filled for a moment, and counts for nothing. */
  #grow(texts: Texts, bytes: number): void {
    const size = this.#sizes.get(texts);
    if (size === DROPPED) return;
    this.#sizes.set(texts, (size ?? 0) + bytes);
    this.#textBytes += bytes;
    while (this.#textBytes > this.#maxTextBytes && this.#texts.size > 0) this.#texts.pop();
  }

  #dropped(texts: Texts): void {
    this.#textBytes -= this.#sizes.get(texts) ?? 0;
    this.#sizes.set(texts, DROPPED);
  }

  /** What was found by this name, in lower case, when it was last read. May have changed since. */
  named(name: string): RememberedRepository | undefined {
    return this.#repositories.get(name);
  }

  keepNamed(name: string, remembered: RememberedRepository): void {
    this.#repositories.set(name, remembered);
  }

  value(key: string): RememberedValue | undefined {
    return this.#values.get(key);
  }

  keepValue(key: string, remembered: RememberedValue): void {
    this.#values.set(key, remembered);
  }
}

/** How repositories and people stand, asked at most once for one request; what it has read of them before may be shown then. */
export class Recollection {
  readonly #memory: Memory;
  readonly #standings = new Map<number, Standing>();

  constructor(memory: Memory) {
    this.#memory = memory;
  }

  /** Of a repository or of people, if that was asked for this request. */
  revisionOf(id: number): string | null | undefined {
    return this.#standings.get(id)?.revision;
  }

  /** What is found by this name, in lower case, as it is now; null: that has to be read. */
  async repository(name: string): Promise<FoundRepository | null> {
    const known = this.#memory.named(name);
    if (!known) return null;
    const { found, revision } = known;
    const standing = await this.#standing(found.repositoryId);
    if (!standing?.isMirrored || standing.revision !== revision) return null;
    return { ...found, confirmedAt: standing.confirmedAt };
  }

  /** Keeps what was just read by this name. */
  keepRepository(name: string, found: FoundRepository): void {
    // Who bears the name of which another was relieved is told by the other's revision alone.
    if (found.home.fullName.toLowerCase() !== name) return;
    this.#memory.keepNamed(name, { found, revision: this.revisionOf(found.repositoryId) });
  }

  /** What was read of this repository and of people before, if it is still so; else what is read now. */
  value<T>(repositoryId: number, key: string, read: () => Promise<T>): T | Promise<T> {
    const [repository, people] = [this.revisionOf(repositoryId), this.revisionOf(PEOPLE)];
    if (repository === undefined || people === undefined) return read();
    const name = `${repositoryId} ${key}`;
    const known = this.#memory.value(name);
    if (known && known.revisions[0] === repository && known.revisions[1] === people) return known.value as T;
    return read().then((value) => {
      this.#memory.keepValue(name, { revisions: [repository, people], value });
      return value;
    });
  }

  /** What issues of this repository were written as before, by that name; null: that is not known to be still so. */
  texts(repositoryId: number, name: string): Texts | null {
    const [repository, people] = [this.revisionOf(repositoryId), this.revisionOf(PEOPLE)];
    if (repository === undefined || people === undefined) return null;
    return this.#memory.texts(`${name} ${repositoryId} ${repository} ${people}`);
  }

  async #standing(repositoryId: number): Promise<Standing | undefined> {
    if (!this.#standings.has(repositoryId)) {
      const now = await this.#memory.revisions.now([PEOPLE, repositoryId]);
      // What was asked first stays: what was read since is as new as that at least.
      for (const id of [PEOPLE, repositoryId]) {
        const standing = now.get(id);
        if (standing && !this.#standings.has(id)) this.#standings.set(id, standing);
      }
    }
    return this.#standings.get(repositoryId);
  }
}
