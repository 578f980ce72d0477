import type { Database } from "../../../db/database.ts";
import { type Fields, type Json, literalOf, type Reference, reference } from "../store/template.ts";
import type { Addresses, StoredDocument } from "./rendering.ts";
import { domainOf, keyOf, type SharedKey, type SharedRow, SharedRows, sharedName } from "./shared-rows.ts";

/** Where a repository is: from this the addresses of what is in it are made. */
export interface Home {
  fullName: string;
  htmlUrl: string;
}

/** Where what a reference stands for belongs. */
interface Slot {
  holder: Fields | Json[];
  key: string | number;
}

/** What is referred to from within one repository, or from where there is none (0), by the references' marks. */
interface Place {
  repositoryId: number;
  resolved: Map<string, Json>;
  waiting: Map<string, Slot[]>;
}

interface Waiting {
  mark: string;
  place: Place;
  slots: readonly Slot[];
}

/** Callers choose the address in an object, so there may be any number. */
const MAX_VARIANTS = 4;
/** Of what is embedded in others, so many characters are remembered as they are stored. */
const REMEMBERED = 16 * 1024 * 1024;
/** Rows of our own: of those that are rendered the documents are forgotten. */
const ofDatabases = new WeakMap<Database, SharedRows>();
const variants = new WeakMap<SharedRow, Map<string, Fields>>();

/**
 * Unfolds stored documents to the objects that upstream's REST JSON has. What several of them refer to is one object, which
 * nobody may change, and stays the same object until it is changed in the mirror; Postgres is asked about it once for all that
 * is unfolded here, by one statement for each level of references.
 */
export class Unfolding {
  /** The repositories that anything unfolded here belongs to or refers to, known or not. */
  readonly met = new Set<number>();
  readonly #db: Database;
  readonly #api: string;
  readonly #revisionOf: (id: number) => string | null | undefined;
  readonly #known: SharedRows;
  readonly #rows = new Map<string, SharedRow | null>();
  readonly #shapes = new Map<string, readonly string[]>();
  readonly #homes = new Map<number, Home>();
  readonly #places = new Map<number, Place>();

  /** @param revisionOf of a repository, or of people: as it was when or after what is unfolded here was asked for */
  constructor(
    db: Database,
    { api, revisionOf = () => undefined }: Addresses & { revisionOf?: (id: number) => string | null | undefined },
  ) {
    this.#db = db;
    this.#revisionOf = revisionOf;
    this.#api = api;
    const known = ofDatabases.get(db) ?? new SharedRows({ maxSize: REMEMBERED });
    ofDatabases.set(db, known);
    this.#known = known;
  }

  /** Tells where a repository is, so that it need not be asked. */
  settle(repositoryId: number, home: Home): void {
    this.met.add(repositoryId);
    this.#homes.set(repositoryId, home);
  }

  /** The whole of an account that something unfolded here refers to. Undefined: not known; null: it is gone. */
  user(id: number): Fields | null | undefined {
    const row = this.#rows.get(sharedName({ kind: "u", repositoryId: 0, id }));
    if (!row) return row;
    return row.isDeleted ? null : this.#object(row, null, 0);
  }

  /** One object for each document, in order. */
  async unfold(documents: readonly StoredDocument[]): Promise<Fields[]> {
    const homeless = new Set<number>();
    for (const { repositoryId } of documents)
      if (repositoryId !== 0 && !this.#homes.has(repositoryId)) homeless.add(repositoryId);
    if (homeless.size > 0) await this.#load([], homeless);
    const unfolded = documents.map(({ document, detail, body, repositoryId }) => {
      const fields = JSON.parse(document) as Fields;
      if (detail) Object.assign(fields, JSON.parse(detail));
      this.#unfoldIn(fields, this.#place(repositoryId), body ?? null);
      return fields;
    });
    for (let waiting = this.#takeWaiting(); waiting.length > 0; waiting = this.#takeWaiting()) {
      await this.#load(waiting, new Set());
      for (const { mark, place, slots } of waiting) {
        const found = this.#resolve(reference(mark) as Reference, place.repositoryId);
        place.resolved.set(mark, found);
        for (const { holder, key } of slots) (holder as Fields)[key] = found;
      }
    }
    return unfolded;
  }

  #place(repositoryId: number): Place {
    let place = this.#places.get(repositoryId);
    if (!place) {
      place = { repositoryId, resolved: new Map(), waiting: new Map() };
      this.#places.set(repositoryId, place);
    }
    return place;
  }

  #takeWaiting(): Waiting[] {
    const taken: Waiting[] = [];
    for (const place of this.#places.values()) {
      for (const [mark, slots] of place.waiting) taken.push({ mark, place, slots });
      place.waiting.clear();
    }
    return taken;
  }

  #resolve(found: Reference, repositoryId: number): Json {
    const key = keyOf(found, repositoryId);
    const row = this.#rows.get(sharedName(key));
    if (!row || row.isGone) return null;
    return this.#object(row, found.shape, found.kind === "r" ? found.id : key.repositoryId);
  }

  /** What a row is in this shape; null: with everything that is known of it. */
  #object(row: SharedRow, shape: string | null, repositoryId: number): Fields {
    const home = this.#homes.get(repositoryId);
    const variant = `${shape}\n${this.#api}\n${home?.fullName}\n${home?.htmlUrl}`;
    const known = variants.get(row)?.get(variant);
    if (known) return known;
    const stored = JSON.parse(row.document ?? "{}") as Fields;
    const keys = (shape !== null && this.#shapes.get(shape)) || Object.keys(stored);
    const fields: Fields = {};
    for (const key of keys) {
      const value = stored[key];
      if (value !== undefined) fields[key] = value;
    }
    this.#unfoldIn(fields, this.#place(repositoryId), null);
    // What refers to others may change without being changed itself.
    if (row.references.length === 0) remember(row, variant, fields);
    return fields;
  }

  /** Puts back what was cut out, in place; what it refers to is left to the slots. */
  #unfoldIn(holder: Fields | Json[], place: Place, body: string | null): void {
    if (Array.isArray(holder)) for (let at = 0; at < holder.length; at++) this.#unfoldAt(holder, at, place, body);
    else for (const key in holder) this.#unfoldAt(holder, key, place, body);
  }

  #unfoldAt(holder: Fields | Json[], key: string | number, place: Place, body: string | null): void {
    const value = (holder as Fields)[key];
    if (typeof value === "string") {
      const code = value.charCodeAt(0);
      if (code > 6 || code < 1) return;
      if (code !== 5) {
        (holder as Fields)[key] = code === 4 ? body : this.#text(code, value, place.repositoryId);
        return;
      }
      const known = place.resolved.get(value);
      if (known !== undefined) {
        (holder as Fields)[key] = known;
        return;
      }
      const slots = place.waiting.get(value);
      if (slots) slots.push({ holder, key });
      else place.waiting.set(value, [{ holder, key }]);
    } else if (typeof value === "object" && value !== null) this.#unfoldIn(value, place, body);
  }

  #text(code: number, value: string, repositoryId: number): string {
    const home = this.#homes.get(repositoryId);
    switch (code) {
      case 1:
        return `${this.#api}/repos/${home?.fullName ?? ""}${value.slice(1)}`;
      case 2:
        return this.#api + value.slice(1);
      case 3:
        return (home?.htmlUrl ?? "") + value.slice(1);
      default:
        return literalOf(value);
    }
  }

  /** Asks for what is referred to and for these repositories, so far as that was not done here before. */
  async #load(waiting: readonly Waiting[], repositories: Set<number>): Promise<void> {
    const wanted = new Map<string, SharedKey>();
    const unknownShapes = new Set<string>();
    const want = (key: SharedKey) => {
      const name = sharedName(key);
      if (key.kind === "r") this.met.add(key.id);
      if (this.#rows.has(name) || wanted.has(name)) return;
      const known = this.#known.remembered(name);
      const revision = this.#revisionOf(domainOf(key));
      if (known && revision !== undefined && known.asOf === revision) this.#know(key, known);
      else wanted.set(name, key);
      // What it referred to when it was last seen is asked for along with it.
      for (const inner of known?.references ?? []) {
        if (!this.#shapes.has(inner.shape)) unknownShapes.add(inner.shape);
        want(keyOf(inner, key.kind === "r" ? key.id : key.repositoryId));
      }
    };
    for (const id of repositories) want({ kind: "r", repositoryId: 0, id });
    for (const { mark, place } of waiting) {
      const found = reference(mark) as Reference;
      if (!this.#shapes.has(found.shape)) unknownShapes.add(found.shape);
      want(keyOf(found, place.repositoryId));
    }
    const [rows, shapes] = await Promise.all([
      wanted.size > 0 ? this.#known.load(this.#db, [...wanted.values()], false) : new Map<string, SharedRow | null>(),
      this.#known.loadShapes(this.#db, unknownShapes),
    ]);
    for (const [id, keys] of shapes) this.#shapes.set(id, keys);
    for (const [name, key] of wanted) {
      const row = rows.get(name) ?? null;
      this.#know(key, row);
      const revision = this.#revisionOf(domainOf(key));
      if (row && revision !== undefined) row.asOf = revision;
    }
  }

  #know(key: SharedKey, row: SharedRow | null): void {
    this.#rows.set(sharedName(key), row);
    if (row && key.kind === "r") this.settle(key.id, row);
  }
}

function remember(row: SharedRow, variant: string, fields: Fields): void {
  let known = variants.get(row);
  if (!known || known.size >= MAX_VARIANTS) {
    known = new Map();
    variants.set(row, known);
  }
  known.set(variant, fields);
}
