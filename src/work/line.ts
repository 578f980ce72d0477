/** The capacity that a line guards: places, or bytes. */
export interface Room<Want> {
  fits(want: Want): boolean;
  /** May also be called if there is no room; see `Line.goIn`. */
  take(want: Want): void;
  free(want: Want): void;
}

interface Waiter<Want> {
  want: Want;
  goIn: () => void;
}

/** Room for this many at once. */
export function roomFor(most: number): Room<unknown> {
  let taken = 0;
  return {
    fits: () => taken < most,
    take: () => {
      taken += 1;
    },
    free: () => {
      taken -= 1;
    },
  };
}

/**
 * A queue that bounds how much runs at once. If there is no room, entries wait, and are admitted by rank and then by
 * arrival.
 */
export class Line<Want> {
  readonly #room: Room<Want>;
  readonly #rankOf: (want: Want) => number;
  readonly #mayOvertake: boolean;
  readonly #waiting: Waiter<Want>[] = [];

  /**
   * @param how.rankOf the lowest rank is admitted first; absent: all have the same rank
   * @param how.mayOvertake an entry that fits may pass an entry that does not
   */
  constructor(
    room: Room<Want>,
    { rankOf = () => 0, mayOvertake = false }: { rankOf?: (want: Want) => number; mayOvertake?: boolean } = {},
  ) {
    this.#room = room;
    this.#rankOf = rankOf;
    this.#mayOvertake = mayOvertake;
  }

  /** How many wait. */
  get length(): number {
    return this.#waiting.length;
  }

  /**
   * Waits for admission. Dispose of the returned object to free the room.
   * @throws the signal's reason if it aborts first
   */
  async enter(want: Want, signal?: AbortSignal): Promise<Disposable> {
    signal?.throwIfAborted();
    const isBehind = !this.#mayOvertake && this.#placeOf(want) > 0;
    if (!isBehind && this.#room.fits(want)) return this.goIn(want);
    const { promise, resolve, reject } = Promise.withResolvers<Disposable>();
    const waiter: Waiter<Want> = { want, goIn: () => resolve(this.goIn(want)) };
    const giveUp = () => {
      const at = this.#waiting.indexOf(waiter);
      if (at < 0) return;
      this.#waiting.splice(at, 1);
      reject(signal?.reason);
      // Without this entry, the next one may fit.
      this.#admit();
    };
    this.#waiting.splice(this.#placeOf(want), 0, waiter);
    signal?.addEventListener("abort", giveUp, { once: true });
    return await promise.finally(() => signal?.removeEventListener("abort", giveUp));
  }

  /** Admits an entry at once, even without room. */
  goIn(want: Want): Disposable {
    this.#room.take(want);
    let isInside = true;
    return {
      [Symbol.dispose]: () => {
        if (!isInside) return;
        isInside = false;
        this.#room.free(want);
        this.#admit();
      },
    };
  }

  /** The place in the queue: how many entries are admitted earlier. */
  #placeOf(want: Want): number {
    const rank = this.#rankOf(want);
    return this.#waiting.findLastIndex((before) => this.#rankOf(before.want) <= rank) + 1;
  }

  #admit(): void {
    for (let at = 0; at < this.#waiting.length; ) {
      const next = this.#waiting[at];
      if (next && this.#room.fits(next.want)) {
        this.#waiting.splice(at, 1);
        // The room is taken here, before the entry's own code runs, so that no other entry can take it.
        next.goIn();
      } else if (this.#mayOvertake) at += 1;
      else return;
    }
  }
}
