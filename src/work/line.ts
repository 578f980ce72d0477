/** The capacity that a line guards: places, or bytes. */
export interface Room<Want> {
  fits(want: Want): boolean;
  /** Also called for one that does not fit; see `Line.goIn`. */
  take(want: Want): void;
  free(want: Want): void;
}

interface Waiter<Want> {
  want: Want;
  goIn: () => void;
}

/** Room for so many at once. */
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
 * Bounds what is under way at once. What finds no room waits, and goes in by rank, and then in the order in which it
 * came.
 */
export class Line<Want> {
  readonly #room: Room<Want>;
  readonly #rankOf: (want: Want) => number;
  readonly #mayOvertake: boolean;
  readonly #waiting: Waiter<Want>[] = [];

  /**
   * @param how.rankOf the lowest goes in first; absent: all have one rank
   * @param how.mayOvertake what fits does not wait behind what does not
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
   * Waits for its turn. Dispose of the answer to make room.
   * @throws the signal's reason when it is aborted first
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
      // The next one may fit.
      this.#admit();
    };
    this.#waiting.splice(this.#placeOf(want), 0, waiter);
    signal?.addEventListener("abort", giveUp, { once: true });
    return await promise.finally(() => signal?.removeEventListener("abort", giveUp));
  }

  /** Goes in at once, whether there is room or not. */
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

  /** Behind how many this one waits. */
  #placeOf(want: Want): number {
    const rank = this.#rankOf(want);
    return this.#waiting.findLastIndex((before) => this.#rankOf(before.want) <= rank) + 1;
  }

  #admit(): void {
    for (let at = 0; at < this.#waiting.length; ) {
      const next = this.#waiting[at];
      if (next && this.#room.fits(next.want)) {
        this.#waiting.splice(at, 1);
        // Its room is taken before it goes on, so that nobody comes in between.
        next.goIn();
      } else if (this.#mayOvertake) at += 1;
      else return;
    }
  }
}
