import { isOfOneEra, PEOPLE } from "../../../db/revisions.ts";
import type { Reading } from "../unchanged/reading.ts";
import type { Standings } from "../unchanged/unchanged.ts";
import { domainOf, type Mentioned, wholeRepository } from "./shared-keys.ts";
import type { SharedRow, SharedRows, Wanted } from "./shared-rows.ts";

/** The rows that one answer shows. Each is looked up once, at some moment after the request began. */
export class ShownRows {
  readonly #shared: SharedRows;
  readonly #reading: Reading | undefined;
  readonly #met: Set<number> | undefined;
  readonly #rows = new Map<string, SharedRow | null>();
  readonly #gone = new Set<string>();
  readonly #shapes = new Map<string, readonly string[]>();

  /**
   * @param options.reading undefined: no kept row counts as present
   * @param options.met notes the repositories that are shown, or would be shown if they were known
   */
  constructor(
    shared: SharedRows,
    { reading, met }: { reading?: Reading | undefined; met?: Set<number> | undefined } = {},
  ) {
    this.#shared = shared;
    this.#reading = reading;
    this.#met = met;
  }

  /** The loaded rows that must not be shown any more, by `sharedName`. */
  get gone(): Iterable<string> {
    return this.#gone;
  }

  /** Null: there is none. Undefined: it was not loaded. */
  row(name: string): SharedRow | null | undefined {
    return this.#rows.get(name);
  }

  repository(id: number): SharedRow | null | undefined {
    return this.#rows.get(wholeRepository(id).name);
  }

  /** The keys of a shape; undefined: it is not known. */
  keys(shape: string): readonly string[] | undefined {
    return this.#shapes.get(shape);
  }

  /** Loads rows and all that they refer to, with one statement for each level of rows never seen before. */
  async load(mentioned: Iterable<Mentioned>): Promise<void> {
    const all = [...mentioned];
    const unknownShapes = new Set<string>();
    // Standings are read before the rows, so that rows are never kept with standings newer than themselves.
    let before = await this.#before(all);
    let level = new Map<string, Wanted>();
    const want = ({ key, name, shape }: Mentioned) => {
      if (shape !== null && !this.#shapes.has(shape)) unknownShapes.add(shape);
      if (key.kind === "r") this.#met?.add(key.id);
      if (this.#rows.has(name) || level.has(name)) return;
      let recalled = this.#shared.recall(name);
      if (recalled && before && this.#shared.stands(recalled, before)) this.#add(name, recalled.value);
      else {
        // In another era of the database the same revision may belong to another row.
        if (recalled && !isOfOneEra(recalled.basis.stood[0]?.revision, before?.get(domainOf(key))?.revision))
          recalled = undefined;
        level.set(name, { key, name, recalled });
      }
      // A row's last known references are asked for along with the row.
      if (recalled) for (const one of recalled.value.refersTo) want(one);
    };
    for (const one of all) want(one);
    while (level.size > 0) {
      const asked = [...level.values()];
      level = new Map();
      before = await this.#before(asked);
      const found = await this.#shared.load(asked, before);
      for (const { name } of asked) {
        const row = found.get(name) ?? null;
        this.#add(name, row);
        for (const one of row?.refersTo ?? []) want(one);
      }
    }
    for (const [id, keys] of await this.#shared.loadShapes(unknownShapes)) this.#shapes.set(id, keys);
  }

  #add(name: string, row: SharedRow | null): void {
    this.#rows.set(name, row);
    if (row?.isGone) this.#gone.add(name);
  }

  /**
   * The standings that show whether these rows have changed. Standings that this reading has already learnt are not
   * read again.
   */
  async #before(rows: readonly Pick<Wanted, "key">[]): Promise<Standings | undefined> {
    const domains = new Set([PEOPLE]);
    for (const { key } of rows) if (key.kind !== "u") domains.add(domainOf(key));
    return this.#reading?.now(domains);
  }
}
