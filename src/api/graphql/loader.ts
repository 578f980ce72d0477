import { Gather } from "../../work/gather.ts";

/** All fields of a level ask before the event loop turns. No level waits for another. */
const OF_A_LEVEL = { atOnce: Number.POSITIVE_INFINITY, most: Number.POSITIVE_INFINITY, patienceMs: null };

/** Gathers the questions of one level's fields and answers them together. */
export function openLevel<Key, Value>(answer: (keys: Key[]) => Promise<readonly Value[]>): Gather<Key, Value> {
  return new Gather(answer, OF_A_LEVEL);
}

/**
 * Loads what the fields of one level ask for together, so the number of statements does not grow with the number of
 * rows. A key that is asked for twice is loaded once.
 */
export class Loader<Key, Value> {
  readonly #level: Gather<Key, Value>;
  readonly #known = new Map<string, Promise<Value>>();

  /** @param load answers one value for each key, in the keys' order */
  constructor(load: (keys: Key[]) => Promise<readonly Value[]>) {
    this.#level = openLevel(load);
  }

  load(key: Key): Promise<Value> {
    const name = JSON.stringify(key);
    let value = this.#known.get(name);
    if (!value) {
      value = this.#level.ask(key);
      this.#known.set(name, value);
    }
    return value;
  }

  /** Takes a value that is known by other means. */
  settle(key: Key, value: Value): void {
    this.#known.set(JSON.stringify(key), Promise.resolve(value));
  }
}
