/**
 * Gathers what is asked for by the fields of one level and asks for it at once, so that the number of statements does not
 * grow with the number of rows. A key that is asked for twice is loaded once.
 */
export class Batch<Key, Value> {
  readonly #run: (keys: Key[]) => Promise<Value[]>;
  readonly #known = new Map<string, Promise<Value>>();
  #waiting: { key: Key; resolve: (value: Value) => void; reject: (error: unknown) => void }[] = [];

  /** @param run answers one value for each key, in their order */
  constructor(run: (keys: Key[]) => Promise<Value[]>) {
    this.#run = run;
  }

  load(key: Key): Promise<Value> {
    const name = JSON.stringify(key);
    let value = this.#known.get(name);
    if (!value) {
      value = new Promise<Value>((resolve, reject) => {
        this.#waiting.push({ key, resolve, reject });
        // All fields of a level are asked before the event loop turns.
        if (this.#waiting.length === 1) setImmediate(() => void this.#dispatch());
      });
      this.#known.set(name, value);
    }
    return value;
  }

  /** Tells what is known by other means. */
  settle(key: Key, value: Value): void {
    this.#known.set(JSON.stringify(key), Promise.resolve(value));
  }

  async #dispatch(): Promise<void> {
    const waiting = this.#waiting;
    this.#waiting = [];
    try {
      const values = await this.#run(waiting.map(({ key }) => key));
      for (const [at, { resolve }] of waiting.entries()) resolve(values[at] as Value);
    } catch (error) {
      for (const { reject } of waiting) reject(error);
    }
  }
}
