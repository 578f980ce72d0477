import type { Database } from "./database.ts";

/** Who asks while a statement is under way is gathered for the next, but does not wait longer for it: it may never come back. */
const PATIENCE_MS = 50;
/** A statement is asked for no more keys than that. */
const MAX_KEYS = 500;

interface Waiting<Key, Value> {
  key: Key;
  resolve: (value: Value) => void;
  reject: (error: unknown) => void;
}

/**
 * One kind of short read. Those who ask at the same time are answered by one statement, so that many callers cost Postgres and
 * us little more than one does. The statement begins after each of them has asked: nobody is shown less than was committed by
 * then.
 */
export class GatheredRead<Key, Value> {
  readonly #run: (db: Database, keys: Key[]) => Promise<Value[]>;
  readonly #readers = new WeakMap<Database, { waiting: Waiting<Key, Value>[]; isBusy: boolean }>();

  /** @param run answers one value for each key, in their order */
  constructor(run: (db: Database, keys: Key[]) => Promise<Value[]>) {
    this.#run = run;
  }

  find(db: Database, key: Key): Promise<Value> {
    let reader = this.#readers.get(db);
    if (!reader) {
      reader = { waiting: [], isBusy: false };
      this.#readers.set(db, reader);
    }
    const { waiting } = reader;
    return new Promise<Value>((resolve, reject) => {
      waiting.push({ key, resolve, reject });
      // Whoever else has arrived in this turn of the event loop goes along.
      if (waiting.length === 1) setImmediate(() => void this.#next(db));
    });
  }

  async #next(db: Database): Promise<void> {
    const reader = this.#readers.get(db);
    if (!reader || reader.waiting.length === 0 || reader.isBusy) return;
    const asked = reader.waiting.splice(0, MAX_KEYS);
    reader.isBusy = true;
    let isOver = false;
    const goOn = () => {
      if (isOver) return;
      isOver = true;
      reader.isBusy = false;
      void this.#next(db);
    };
    const timer = setTimeout(goOn, PATIENCE_MS);
    try {
      const values = await this.#run(
        db,
        asked.map(({ key }) => key),
      );
      for (const [at, { resolve }] of asked.entries()) resolve(values[at] as Value);
    } catch (error) {
      for (const { reject } of asked) reject(error);
    } finally {
      clearTimeout(timer);
      goOn();
    }
  }
}
