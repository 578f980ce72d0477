/**
 * Rows ordered by (key, id). The key is a time that nearly always grows. A moved row is appended again; its old place
 * is stale because the key there is no longer the row's. So a change costs O(1), and a page costs its own length plus a
 * binary search. No row needs to know its place.
 *
 * A key that goes backwards (a loaded history, a clock set back) marks the index unsorted; the next read sorts it once.
 *
 * Every place below the length holds a key and a row; the compiler cannot know that, and the casts say it.
 */
export class OrderedIndex<Row extends { readonly id: number; readonly deleted: boolean }> {
  readonly #keyOf: (row: Row) => number;
  #keys: number[] = [];
  #rows: Row[] = [];
  #size = 0;
  #unsorted = false;

  constructor(keyOf: (row: Row) => number) {
    this.#keyOf = keyOf;
  }

  /** How many rows there are, deleted ones not counted. */
  get size(): number {
    return this.#size;
  }

  /** Takes a new row in. */
  add(row: Row): void {
    this.#size += 1;
    this.#append(row);
  }

  /** To be called after a row's key changed. Harmless when it did not: pass the key from before. */
  moved(row: Row, keyBefore: number): void {
    if (this.#keyOf(row) !== keyBefore) this.#append(row);
    if (this.#keys.length > 1_024 && this.#keys.length > this.#size * 2) this.#settle();
  }

  /** To be called after a row was marked deleted. */
  removed(): void {
    this.#size -= 1;
  }

  /** Rows in ascending order; `after` is exclusive. Rows must not change while the iteration runs. */
  *ascending(after?: { readonly key: number; readonly id: number }): Generator<Row> {
    if (this.#unsorted) this.#settle();
    for (let at = after ? this.#position(after.key, after.id, true) : 0; at < this.#keys.length; at++) {
      const row = this.#rows[at] as Row;
      if (!row.deleted && this.#keyOf(row) === this.#keys[at]) yield row;
    }
  }

  /** Rows in descending order; `before` is exclusive. Rows must not change while the iteration runs. */
  *descending(before?: { readonly key: number; readonly id: number }): Generator<Row> {
    if (this.#unsorted) this.#settle();
    let at = (before ? this.#position(before.key, before.id, false) : this.#keys.length) - 1;
    for (; at >= 0; at--) {
      const row = this.#rows[at] as Row;
      if (!row.deleted && this.#keyOf(row) === this.#keys[at]) yield row;
    }
  }

  #append(row: Row): void {
    const key = this.#keyOf(row);
    let at = this.#keys.length;
    // Within one second the id decides; only the rows of that second can stand behind the new one.
    while (at > 0 && this.#keys[at - 1] === key && (this.#rows[at - 1] as Row).id > row.id) at -= 1;
    if (at > 0 && (this.#keys[at - 1] as number) > key) this.#unsorted = true;
    if (at === this.#keys.length || this.#unsorted) {
      this.#keys.push(key);
      this.#rows.push(row);
    } else {
      this.#keys.splice(at, 0, key);
      this.#rows.splice(at, 0, row);
    }
  }

  /** First place whose (key, id) is not less than the given one; with `beyond`, not less or equal. */
  #position(key: number, id: number, beyond: boolean): number {
    let low = 0;
    let high = this.#keys.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const order = (this.#keys[middle] as number) - key || (this.#rows[middle] as Row).id - id;
      if (order < 0 || (beyond && order === 0)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Drops stale places and sorts what is left. */
  #settle(): void {
    const rows = [...new Set(this.#rows)].filter((row) => !row.deleted);
    rows.sort((a, b) => this.#keyOf(a) - this.#keyOf(b) || a.id - b.id);
    this.#rows = rows;
    this.#keys = rows.map(this.#keyOf);
    this.#unsorted = false;
  }
}
