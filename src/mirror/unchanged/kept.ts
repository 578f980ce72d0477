import { LRUCache } from "lru-cache";
import type { Standing, Standings, StandingsReader } from "./standings.ts";

/**
 * What one request has learnt of how repositories stand, each at some moment since the request began. The request need
 * not show later changes, so nothing is asked twice.
 */
export class Reading {
  readonly #standings: Pick<StandingsReader, "now">;
  readonly #isLasting: boolean;
  readonly #learnt = new Map<number, Standing>();
  readonly #asked = new Map<number, Promise<void>>();

  /**
   * @param options.learnt standings that were asked for earlier in the same request
   * @param options.isLasting false for a request that changes the mirror meanwhile: it must see the change, so it asks
   *   each time
   */
  constructor(
    standings: Pick<StandingsReader, "now">,
    { learnt, isLasting = true }: { learnt?: Standings | undefined; isLasting?: boolean } = {},
  ) {
    this.#standings = standings;
    this.#isLasting = isLasting;
    if (learnt) this.learn(learnt);
  }

  /** Whether all of these have been asked for. */
  knows(repositoryIds: Iterable<number>): boolean {
    for (const id of repositoryIds) if (!this.#asked.has(id)) return false;
    return true;
  }

  /** How each of these stands. @throws whatever Postgres refuses */
  async now(repositoryIds: Iterable<number>): Promise<Standings> {
    const ids = [...repositoryIds];
    if (!this.#isLasting) return this.#standings.now(ids);
    const unknown = ids.filter((id) => !this.#asked.has(id));
    if (unknown.length > 0) {
      const asking = this.#ask(unknown);
      for (const id of unknown) this.#asked.set(id, asking);
    }
    if (!ids.every((id) => this.#learnt.has(id))) await Promise.all(new Set(ids.map((id) => this.#asked.get(id))));
    return this.#only(ids);
  }

  /** Rows that are read from now on are at least as new as these standings, and may be kept with them. */
  soFar(): Standings {
    return new Map(this.#learnt);
  }

  /** Takes what was read along with something else. */
  learn(standings: Standings): void {
    if (!this.#isLasting) return;
    for (const [id, standing] of standings) {
      if (this.#asked.has(id)) continue;
      this.#asked.set(id, Promise.resolve());
      this.#learnt.set(id, standing);
    }
  }

  async #ask(ids: readonly number[]): Promise<void> {
    const answered = await this.#standings.now(ids);
    for (const id of ids) {
      const standing = answered.get(id);
      if (standing) this.#learnt.set(id, standing);
    }
  }

  /** A copy: what is learnt later may be newer than what is read now. */
  #only(ids: readonly number[]): Standings {
    const standings = new Map<number, Standing>();
    for (const id of ids) {
      const standing = this.#learnt.get(id);
      if (standing) standings.set(id, standing);
    }
    return standings;
  }
}

interface Entry<Value> {
  /** Null: some standings were unknown when the value was read. */
  value: Value | null;
  basis: Basis;
}

/** The repositories that a value shows, and their standings. */
interface Basis {
  /** The repositories that it shows, and people. */
  shown: readonly number[];
  /** How each of these stood before the value was read. */
  stood: readonly Standing[];
}

/** A kept value that is not confirmed as unchanged yet. */
export type Recalled<Value> = Entry<Value> & { value: Value };

/** The size of an entry beside its value and its key: the entry itself, its place, how everything stood. */
const OVERHEAD_BYTES = 500;
/** A value that would push out all others is not kept. */
const LARGEST_PART = 1 / 8;
/** How many repositories have a shared basis. */
const MAX_BASES = 1_000;

/**
 * Keeps values and gives them again while they are unchanged. Everything that the mirror keeps in memory follows this
 * one rule. A value is kept with the standings of all that it shows, taken before it was read. It is given again only
 * if these standings hold at some moment of the reading. So a read that begins after a commit in any process shows that
 * change.
 *
 * Often the read itself first shows what a value depends on. Then the first `keep` notes that, the next `get` asks for
 * its standings, and the second `keep` keeps the value. So values that are asked for only once are not kept.
 */
export class Kept<Value extends object> {
  readonly #entries: LRUCache<string, Entry<Value>> | null;
  /** The last basis of values that show a single repository; see `#shared`. */
  readonly #bases = new LRUCache<number, Basis>({ max: MAX_BASES });

  /**
   * @param options.maxBytes 0: nothing is kept
   * @param options.bytesOf how much a value takes
   * @param options.largestPart a value that takes more of the room is not kept
   */
  constructor({
    maxBytes,
    bytesOf,
    largestPart = LARGEST_PART,
  }: {
    maxBytes: number;
    bytesOf: (value: Value) => number;
    largestPart?: number;
  }) {
    this.#entries =
      maxBytes === 0
        ? null
        : new LRUCache({
            maxSize: maxBytes,
            maxEntrySize: Math.ceil(maxBytes * largestPart),
            sizeCalculation: ({ value, basis: { shown } }, key) =>
              Math.ceil(value === null ? 0 : bytesOf(value)) + key.length * 2 + shown.length * 8 + OVERHEAD_BYTES,
          });
  }

  /**
   * The value, if it is unchanged. What this asks of the reading lets the next `keep` keep the value.
   * @param options.learnsLater the read itself tells how everything stands, so a value that is only noted needs no question
   */
  async get(key: string, reading: Reading, { learnsLater = false } = {}): Promise<Value | undefined> {
    const entry = this.#entries?.get(key);
    if (!entry || (learnsLater && !isWhole(entry))) return undefined;
    const now = await reading.now(entry.basis.shown);
    return isWhole(entry) && stands(entry, now) ? entry.value : undefined;
  }

  /** Whether a value was asked for before. */
  knows(key: string): boolean {
    return this.#entries?.has(key) ?? false;
  }

  /** The value as it was kept, which may have changed since; see `stands`. */
  recall(key: string): Recalled<Value> | undefined {
    const entry = this.#entries?.get(key);
    return entry && isWhole(entry) ? entry : undefined;
  }

  /** Whether the value is unchanged, by standings that are known already. */
  stands(recalled: Recalled<Value>, now: Standings): boolean {
    return stands(recalled, now);
  }

  /**
   * Keeps the result of `make`, and answers it; undefined: it is not kept yet.
   * @param how.shown the repositories that the value shows, and `PEOPLE`
   * @param how.before how they stood before the value was read
   */
  keep(
    key: string,
    make: () => Value,
    { shown, before }: { shown: readonly number[]; before: Standings },
  ): Value | undefined {
    if (!this.#entries) return undefined;
    const stood: Standing[] = [];
    for (const id of shown) {
      const standing = before.get(id);
      if (!standing) {
        this.#entries.set(key, { value: null, basis: { shown, stood: [] } });
        return undefined;
      }
      stood.push(standing);
    }
    const value = make();
    this.#entries.set(key, { value, basis: this.#shared({ shown, stood }) });
    return value;
  }

  /**
   * Thousands of values show the same repository in the same standing. An answer compares the bases of hundreds of
   * values, and a shared basis stays in the processor's cache.
   */
  #shared(basis: Basis): Basis {
    const [id] = basis.shown;
    if (id === undefined || basis.shown.length > 1) return basis;
    const last = this.#bases.get(id);
    if (last && isSame(last.stood[0], basis.stood[0])) return last;
    this.#bases.set(id, basis);
    return basis;
  }

  /** Counts the bytes of a value anew that has grown since it was kept. */
  weigh(key: string, value: Value): void {
    const entry = this.#entries?.peek(key);
    if (entry?.value === value) this.#entries?.set(key, { ...entry });
  }

  /** From 0, empty, to 1. */
  get fullness(): number {
    return this.#entries ? this.#entries.calculatedSize / this.#entries.maxSize : 1;
  }
}

function isWhole<Value>(entry: Entry<Value>): entry is Recalled<Value> {
  return entry.value !== null;
}

function stands<Value>({ basis: { shown, stood } }: Recalled<Value>, now: Standings): boolean {
  for (let at = 0; at < shown.length; at++) {
    if (!isSame(stood[at], now.get(shown[at] ?? Number.NaN))) return false;
  }
  return true;
}

function isSame(before: Standing | undefined, now: Standing | undefined): boolean {
  // Without a revision the standing is not known.
  if (now === undefined || now.revision === null) return false;
  return now.revision === before?.revision && now.isMirrored === before.isMirrored;
}
