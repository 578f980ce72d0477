import { type Fields, type Json, parseStored } from "../../json.ts";
import { literalOf, PLACEHOLDER } from "../../kinds/contract/placeholders.ts";
import type { Pace } from "../../work/pace.ts";
import { withLogin } from "../documents/bots.ts";
import {
  labelsHomeOf,
  type Mentioned,
  type Referred,
  referredBy,
  wholeRepository,
  wholeUser,
} from "../documents/documents.ts";
import { rowNamed, UNSHOWN } from "./left-out.ts";
import type { Audience, StoredDocument } from "./rendering.ts";
import { type SharedRow, type SharedRows, ShownRows } from "./shared-rows.ts";

/**
 * The resolved references of one repository's documents, by their placeholders. Repository 0 stands for documents outside
 * repositories.
 */
interface RepositoryUnfolding {
  repositoryId: number;
  resolved: Map<string, Json>;
}

/** Where an object or a list holds a placeholder. */
interface Slot {
  holder: Fields | Json[];
  key: string | number;
}

/** The slots that wait for their placeholder's resource. */
type PendingSlots = Map<string, Slot[]>;

/**
 * Unfolds stored documents to the objects of upstream's REST JSON. Documents that refer to the same row share one
 * object; nothing may change it.
 */
export class Unfolding {
  /** The repositories that anything unfolded here belongs to or refers to, known or not. */
  readonly met = new Set<number>();
  readonly #api: string;
  readonly #shared: SharedRows;
  readonly #rows: ShownRows;
  readonly #places = new Map<number, RepositoryUnfolding>();
  readonly #pace: Pace;

  constructor(shared: SharedRows, { api, reading }: Omit<Audience, "met">, pace: Pace) {
    this.#pace = pace;
    this.#api = api;
    this.#shared = shared;
    this.#rows = new ShownRows(shared, { reading, met: this.met });
  }

  /** The whole of a repository; null: it is gone. */
  async repository(id: number): Promise<Fields | null> {
    const repository = wholeRepository(id);
    await this.#rows.load([repository]);
    const row = this.#rows.row(repository.name);
    return row && !row.isGone ? this.#object(repository, row) : null;
  }

  /** The whole of an account that something unfolded here refers to. Undefined: not known; null: it is gone. */
  user(id: number): Fields | null | undefined {
    const account = wholeUser(id);
    const row = this.#rows.row(account.name);
    return row && (row.isDeleted ? null : this.#object(account, row));
  }

  /** One object for each document, in order. That of a document which cannot be shown is empty. */
  async unfold(documents: readonly StoredDocument[]): Promise<Fields[]> {
    // A repository's addresses have to be known before its documents' addresses are put together.
    const homes = new Set(documents.map(({ repositoryId }) => repositoryId));
    homes.delete(0);
    await this.#rows.load(Array.from(homes, wholeRepository));
    const places = new Map<RepositoryUnfolding, PendingSlots>();
    const unfolded: Fields[] = [];
    for (const { document, detail, body, repositoryId } of documents) {
      // One level of a query may ask for thousands of documents.
      if (this.#pace.isOver()) await this.#pace.turn();
      const place = this.#place(repositoryId);
      const waiting = places.get(place) ?? new Map();
      places.set(place, waiting);
      const read = () => {
        const fields = parseStored<Fields>(document);
        if (detail) Object.assign(fields, parseStored<Fields>(detail));
        this.#unfoldIn(fields, place, body ?? null, waiting);
        return fields;
      };
      const { leftOut } = this.#shared;
      unfolded.push((leftOut ? leftOut.unless(() => rowNamed({ repositoryId, document }), read) : read()) ?? UNSHOWN);
    }
    await this.#rows.load(this.#mentionedIn(places));
    for (const [place, waiting] of places) {
      if (this.#pace.isOver()) await this.#pace.turn();
      this.#fill(place, waiting);
    }
    return unfolded;
  }

  #place(repositoryId: number): RepositoryUnfolding {
    return this.#places.getOrInsertComputed(repositoryId, newPlace);
  }

  /**
   * Fills the slots. All referenced rows were loaded before, at any depth. Deleting a label takes it off its issues, and
   * no event says so of each issue. So deleted labels are left out of lists.
   */
  #fill(place: RepositoryUnfolding, waiting: PendingSlots): void {
    const lacking = new Set<Json[]>();
    for (const [placeholder, slots] of waiting) {
      const value = this.#resolve(placeholder, place);
      const isLeftOut = value === null && this.#referredBy(placeholder, place).key.kind === "l";
      for (const { holder, key } of slots) {
        put(holder, key, value);
        if (isLeftOut && Array.isArray(holder)) lacking.add(holder);
      }
    }
    for (const list of lacking) list.splice(0, list.length, ...list.filter((one) => one !== null));
  }

  #resolve(placeholder: string, place: RepositoryUnfolding): Json {
    const known = place.resolved.get(placeholder);
    if (known !== undefined) return known;
    const mentioned = this.#referredBy(placeholder, place);
    const row = this.#rows.row(mentioned.name);
    if (!row || row.isGone) {
      place.resolved.set(placeholder, null);
      return null;
    }
    // Noted before the object is filled, since its references may lead back to it.
    return this.#object(mentioned, row, (fields) => place.resolved.set(placeholder, fields));
  }

  /** A row as an object of this shape. */
  #object({ key, name, shape, login }: Mentioned, row: SharedRow, onMade: (fields: Fields) => void = () => {}): Fields {
    const home = this.#rows.repository(key.repositoryId);
    const variant = `${shape}:${login}\n${this.#api}\n${home?.fullName}\n${home?.htmlUrl}`;
    const kept = row.objects.get(variant);
    const stands = kept && row.refersTo.every((one, at) => this.#rows.row(one.name) === kept.shows[at]);
    const fields = stands ? kept.fields : {};
    onMade(fields);
    if (stands) return fields;
    this.#fillFrom(row, fields, { shape, login }, this.#place(labelsHomeOf(key)));
    const shows = row.refersTo.map((one) => this.#rows.row(one.name));
    this.#shared.keepObject(name, row, variant, { fields, shows });
    return fields;
  }

  /** Fills `fields` with the keys of the shape; null: with all known keys. */
  #fillFrom(
    row: SharedRow,
    fields: Fields,
    { shape, login }: Pick<Mentioned, "shape" | "login">,
    place: RepositoryUnfolding,
  ): void {
    const parsed = parseStored<Fields>(row.document);
    const stored = login === null ? parsed : withLogin(parsed, login);
    for (const key of (shape !== null && this.#rows.keys(shape)) || Object.keys(stored)) {
      const value = stored[key];
      if (value !== undefined) fields[key] = value;
    }
    const waiting: PendingSlots = new Map();
    this.#unfoldIn(fields, place, null, waiting);
    this.#fill(place, waiting);
  }

  /** Puts the cut texts back, except references: their slots go to `waiting`. */
  #unfoldIn(holder: Fields | Json[], place: RepositoryUnfolding, body: string | null, waiting: PendingSlots): void {
    if (Array.isArray(holder)) {
      for (let at = 0; at < holder.length; at++) this.#unfoldAt(holder, at, holder[at], place, body, waiting);
    } else for (const key in holder) this.#unfoldAt(holder, key, holder[key], place, body, waiting);
  }

  #unfoldAt(
    holder: Fields | Json[],
    key: string | number,
    value: Json | undefined,
    place: RepositoryUnfolding,
    body: string | null,
    waiting: PendingSlots,
  ): void {
    if (typeof value === "string") {
      const code = value.charCodeAt(0);
      if (code < PLACEHOLDER.repository || code > PLACEHOLDER.number) return;
      // GraphQL has no number that a double would change.
      if (code === PLACEHOLDER.number) put(holder, key, Number(literalOf(value)) || value);
      else if (code !== PLACEHOLDER.reference)
        put(holder, key, code === PLACEHOLDER.body ? body : this.#text(code, value, place.repositoryId));
      else {
        const resolved = place.resolved.get(value);
        const slots = waiting.get(value);
        // A list lacks what is gone, and that is settled once it is filled.
        if (resolved != null) put(holder, key, resolved);
        else if (slots) slots.push({ holder, key });
        else waiting.set(value, [{ holder, key }]);
      }
    } else if (typeof value === "object" && value !== null) this.#unfoldIn(value, place, body, waiting);
  }

  *#mentionedIn(places: ReadonlyMap<RepositoryUnfolding, PendingSlots>): Iterable<Mentioned> {
    for (const [place, waiting] of places)
      for (const placeholder of waiting.keys()) yield this.#referredBy(placeholder, place);
  }

  /** A slot's placeholder is one of a reference, by how slots are made. */
  #referredBy(placeholder: string, { repositoryId }: RepositoryUnfolding): Referred {
    return referredBy(placeholder.slice(1), repositoryId);
  }

  #text(code: number, value: string, repositoryId: number): string {
    const home = this.#rows.repository(repositoryId);
    switch (code) {
      case PLACEHOLDER.repository:
        return `${this.#api}/repos/${home?.fullName ?? ""}${value.slice(1)}`;
      case PLACEHOLDER.api:
        return this.#api + value.slice(1);
      case PLACEHOLDER.page:
        return (home?.htmlUrl ?? "") + value.slice(1);
      default:
        return literalOf(value);
    }
  }
}

function newPlace(repositoryId: number): RepositoryUnfolding {
  return { repositoryId, resolved: new Map() };
}

function put(holder: Fields | Json[], key: string | number, value: Json): void {
  // `key` is an index if `holder` is a list, and a name if it is an object. TypeScript does not know that they match.
  (holder as Fields)[key] = value;
}
