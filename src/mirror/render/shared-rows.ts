import { LRUCache } from "lru-cache";
import type { Queries } from "../../../db/database.ts";
import { isOfOneEra, PEOPLE } from "../../../db/revisions.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import type { Fields } from "../../json.ts";
import type { SharedKind } from "../../kinds/contract/placeholders.ts";
import { Rounds } from "../../work/gather.ts";
import {
  domainOf,
  hasPublicKeysOnly,
  labelsHomeOf,
  type Mentioned,
  mentionedBy,
  references,
  type SharedKey,
  wholeRepository,
} from "../documents/documents.ts";
import { Kept, type Reading, type Recalled, type RepositoryVersions } from "../unchanged/unchanged.ts";
import type { LeftOut } from "./left-out.ts";

/** A user, repository, label or milestone as it was stored at one moment. A changed one is another object. */
export interface SharedRow {
  revision: string;
  /** The document with the detail's keys, since a shape may name them. */
  document: string;
  /** The rows that the document refers to. */
  refersTo: readonly Mentioned[];
  /** The row must not be shown any more. */
  isGone: boolean;
  /** When what it shows last changed, in ms; 0: not since it was first stored. */
  changedAt: number;
  /** Whether the row has no keys that some callers may not see. */
  isPublic: boolean;
  /** Upstream has deleted the resource. Deleted users are still shown. */
  isDeleted: boolean;
  /** A repository's name; empty for other rows. */
  fullName: string;
  htmlUrl: string;
  /**
   * Rendered texts, by shape and addresses. Empty if the row has references, since the rows behind them change on their
   * own.
   */
  texts: Map<string, string>;
  /** Unfolded objects, by shape and addresses. */
  objects: Map<string, KeptObject>;
}

/** A row as an object that must not be changed. It stays valid while its references lead to the same row objects. */
export interface KeptObject {
  fields: Fields;
  /** The rows that the object's references lead to, in their order. */
  shows: readonly (SharedRow | null | undefined)[];
}

const MAX_SHAPES = 5_000;
/**
 * How many texts and objects are kept for one row. Callers choose the API's address in them, so there may be any
 * number.
 */
const MAX_FORMS = 4;
/** The estimated memory of a row without its texts. */
const ROW_OVERHEAD_BYTES = 300;

const ROW_KINDS = ["u", "r", "l", "m"] as const satisfies SharedKind[];
const UNNAMED = sql`null, null, null`;
/** For each kind, the table of its rows, and the columns with names, addresses and details. */
const SOURCES = {
  u: { from: sql`users t on t.id = x.id`, name: UNNAMED },
  r: { from: sql`repositories t on t.id = x.id`, name: sql`t.full_name, t.html_url, t.detail::text` },
  l: { from: sql`labels t on t.repository_id = x.r and t.id = x.id`, name: UNNAMED },
  m: { from: sql`milestones t on t.repository_id = x.r and t.id = x.id`, name: UNNAMED },
};

interface ChangedRow {
  kind: SharedKind;
  at: number;
  revision: string | null;
  document: string;
  deleted: boolean;
  full_name: string | null;
  html_url: string | null;
  detail: string | null;
  changed: number | null;
}

/** A row that is needed, and the kept copy of it. */
export interface Wanted {
  key: SharedKey;
  /** Its `sharedName`. */
  name: string;
  recalled: Recalled<SharedRow> | undefined;
}

interface RowsQuestion {
  wanted: readonly Wanted[];
  before: RepositoryVersions | undefined;
}

type Rows = ReadonlyMap<string, SharedRow | null>;

/**
 * Rows that other rows show: stored once, and put into each document that refers to them. Kept rows serve while they
 * are unchanged. After a change of a repository or of people, Postgres sends only the rows that changed.
 */
export class SharedRows {
  /** Leaves out rows that cannot be shown. Null: such a row fails what shows it. */
  readonly leftOut: LeftOut | null;
  readonly #db: Queries;
  readonly #kept: Kept<SharedRow>;
  readonly #changed: Rounds<RowsQuestion, Rows>;
  readonly #shapes = new LRUCache<string, readonly string[]>({ max: MAX_SHAPES });

  /** @param options.maxBytes 0: nothing is kept */
  constructor(db: Queries, { maxBytes = 0, leftOut = null }: { maxBytes?: number; leftOut?: LeftOut | null } = {}) {
    this.leftOut = leftOut;
    this.#db = db;
    this.#kept = new Kept({ maxBytes, bytesOf });
    this.#changed = new Rounds((questions) => this.#load(questions));
  }

  /** The kept copy of the row. It may be out of date; see `stands`. */
  recall(name: string): Recalled<SharedRow> | undefined {
    return this.#kept.recall(name);
  }

  /** Whether the kept row is still current. */
  stands(recalled: Recalled<SharedRow>, now: RepositoryVersions): boolean {
    return this.#kept.stands(recalled, now);
  }

  /**
   * The current rows by `sharedName`, perhaps with some that were not asked for. Null: the row does not exist.
   * @param before the versions that were read before the rows; undefined: the rows are not kept
   */
  load(wanted: readonly Wanted[], before: RepositoryVersions | undefined): Promise<Rows> {
    return this.#changed.join({ wanted, before }).answer;
  }

  /** Notes what a row was rendered as. */
  keepText(name: string, row: SharedRow, variant: string, text: string): void {
    if (row.refersTo.length > 0) return;
    if (row.texts.size >= MAX_FORMS) row.texts.clear();
    row.texts.set(variant, text);
    this.#kept.weigh(name, row);
  }

  /**
   * Keeps the object that a row was unfolded to. It is not kept if the row shows rows by way of another row, since
   * those may change unseen.
   */
  keepObject(name: string, row: SharedRow, variant: string, object: KeptObject): void {
    if (object.shows.some((shown) => shown && shown.refersTo.length > 0)) return;
    if (row.objects.size >= MAX_FORMS) row.objects.clear();
    row.objects.set(variant, object);
    this.#kept.weigh(name, row);
  }

  /** Loads the rows of all questions in one statement. */
  async #load(questions: readonly RowsQuestion[]): Promise<Rows> {
    const loaded = new Map<string, SharedRow | null>();
    const asked: Record<SharedKind, Wanted[]> = { u: [], r: [], l: [], m: [] };
    const befores = new Map<string, RepositoryVersions | undefined>();
    for (const { wanted, before } of questions) {
      for (const one of wanted) {
        if (befores.has(one.name)) continue;
        befores.set(one.name, before);
        asked[one.key.kind].push(one);
        loaded.set(one.name, one.recalled?.value ?? null);
      }
    }
    for (const row of await this.#db.prepared<ChangedRow>(changedAmong(asked))) {
      const one = asked[row.kind][row.at - 1];
      if (one) loaded.set(one.name, row.revision === null ? null : sharedRow(row, row.revision, one.key));
    }
    for (const one of Object.values(asked).flat()) {
      const [row, before] = [loaded.get(one.name), befores.get(one.name)];
      if (row && before) this.#kept.keep(one.name, () => row, { shown: [domainOf(one.key)], before });
    }
    return loaded;
  }

  /** The keys of each shape. Unknown shapes are left out. */
  async loadShapes(ids: Iterable<string>): Promise<Map<string, readonly string[]>> {
    const loaded = new Map<string, readonly string[]>();
    const unknown: string[] = [];
    for (const id of ids) {
      const keys = this.#shapes.get(id);
      if (keys) loaded.set(id, keys);
      else unknown.push(id);
    }
    if (unknown.length === 0) return loaded;
    const rows = await this.#db.prepared<{ id: string; keys: string }>(
      sql`select id, keys from shapes where id = any(${unknown}::text[])`,
    );
    for (const { id, keys } of rows) {
      // An id is a hash of the keys, so its meaning never changes.
      this.#shapes.set(id, keys.split(","));
      loaded.set(id, keys.split(","));
    }
    return loaded;
  }
}

/** Answers a row only if its revision differs from the known one; nulls if the row does not exist. */
function changedAmong(asked: Readonly<Record<SharedKind, readonly Wanted[]>>): SQL {
  const changed = ROW_KINDS.map((kind) => {
    const { from, name } = SOURCES[kind];
    const ids = arrayOf(asked[kind].map(({ key }) => key.id));
    const known = arrayOf(asked[kind].map(({ recalled }) => recalled?.value.revision ?? 0));
    const repositories = arrayOf(asked[kind].map(({ key }) => key.repositoryId));
    return sql`
      select ${sql.script(`'${kind}'`)}, x.at, t.revision::text, t.document::text, t.deleted_at is not null, ${name},
          (extract(epoch from t.changed_at) * 1000)::float8
        from unnest(${ids}, ${known}, ${repositories}) with ordinality as x(id, known, r, at)
        left join ${from} where t.revision is distinct from x.known`;
  });
  return sql`
    select * from (${sql.join(changed, " union all ")})
      as c(kind, at, revision, document, deleted, full_name, html_url, detail, changed)`;
}

/** Writes an array as text, which is several times as quick as the driver's way. */
function arrayOf(numbers: readonly (number | string)[]): SQL {
  return sql`${`{${numbers.join(",")}}`}::bigint[]`;
}

function sharedRow(
  { kind, document, detail, deleted, full_name, html_url, changed }: ChangedRow,
  revision: string,
  key: SharedKey,
): SharedRow {
  const whole = detail === null ? document : joinObjects(document, detail);
  return {
    revision,
    document: whole,
    refersTo: references(whole).map((one) => mentionedBy(one, labelsHomeOf(key))),
    // Users are shown as they were when upstream deletes them.
    isGone: deleted && kind !== "u",
    isPublic: hasPublicKeysOnly(whole),
    isDeleted: deleted,
    changedAt: changed ?? 0,
    fullName: full_name ?? "",
    htmlUrl: html_url ?? "",
    texts: new Map(),
    objects: new Map(),
  };
}

function bytesOf({ document, texts, objects }: SharedRow): number {
  // An object takes about twice the size of its text: once for its strings, once for its slots.
  let bytes = ROW_OVERHEAD_BYTES + document.length * (1 + 2 * objects.size);
  for (const text of texts.values()) bytes += text.length;
  return bytes;
}

/** Two JSON objects as one. */
export function joinObjects(a: string, b: string): string {
  return a === "{}" ? b : `${a.slice(0, a.lastIndexOf("}"))},${b.slice(b.indexOf("{") + 1)}`;
}

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

  /** When any of these rows, or of those that they show, last changed, in ms. All were loaded. */
  changedAt(mentioned: Iterable<Pick<Mentioned, "name">>, met = new Set<string>()): number {
    let latest = 0;
    for (const { name } of mentioned) {
      const row = met.has(name) ? null : this.#rows.get(name);
      met.add(name);
      if (row) latest = Math.max(latest, row.changedAt, this.changedAt(row.refersTo, met));
    }
    return latest;
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
    // Versions are read before the rows, so that rows are never kept with versions newer than themselves.
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
   * The versions that show whether these rows have changed. Versions that this reading has already learnt are not
   * read again.
   */
  async #before(rows: readonly Pick<Wanted, "key">[]): Promise<RepositoryVersions | undefined> {
    const domains = new Set([PEOPLE]);
    for (const { key } of rows) if (key.kind !== "u") domains.add(domainOf(key));
    return this.#reading?.now(domains);
  }
}
