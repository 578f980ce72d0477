import { Line } from "../../work/line.ts";

/** Bounds the work under way: in all, and for each name. Further work waits for a place, in order. */
export class Places {
  readonly #inAll: number;
  readonly #perName: number;
  #taken = 0;
  readonly #takenBy = new Map<string, number>();
  readonly #line = new Line<string>(
    {
      fits: (name) => this.#taken < this.#inAll && this.#of(name) < this.#perName,
      take: (name) => {
        this.#taken += 1;
        this.#takenBy.set(name, this.#of(name) + 1);
      },
      free: (name) => {
        this.#taken -= 1;
        if (this.#of(name) > 1) this.#takenBy.set(name, this.#of(name) - 1);
        else this.#takenBy.delete(name);
      },
    },
    { mayOvertake: true },
  );

  constructor({ inAll, perName }: { inAll: number; perName: number }) {
    this.#inAll = inAll;
    this.#perName = perName;
  }

  /**
   * Waits for a place. Dispose of the answer to leave it.
   * @throws the signal's reason when it is aborted first
   */
  enter(name: string, signal: AbortSignal): Promise<Disposable> {
    return this.#line.enter(name, signal);
  }

  #of(name: string): number {
    return this.#takenBy.get(name) ?? 0;
  }
}
