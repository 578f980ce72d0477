import { LRUCache } from "lru-cache";
import { Database, type Queries } from "../../../db/database.ts";
import { GatheredRead } from "../../../db/gathered.ts";
import { PEOPLE } from "../../../db/revisions.ts";
import { type Sql, sql } from "../../../db/sql.ts";
import { type Reference, references, type SharedKind } from "../store/template.ts";

/** Which row: labels and milestones belong to a repository, users and repositories to none (0). */
export interface SharedKey {
  kind: SharedKind;
  repositoryId: number;
  id: number;
}

/** A user, repository, label or milestone as it was stored at one moment. A changed one is another object. */
export interface SharedRow {
  revision: string;
  /** With its detail: a shape may have keys of it. Null for a user of whom only `texts` are remembered. */
  document: string | null;
  /** What the document refers to. */
  references: readonly Reference[];
  isGone: boolean;
  /** Upstream has it no more; users are shown nevertheless. */
  isDeleted: boolean;
  /** Of a repository; else empty. */
  fullName: string;
  htmlUrl: string;
  /** The revision of its repository, or of people, for which it is known to be so; undefined: none. */
  asOf?: string | null;
  /** What it was rendered as, by shape and addresses; see `keepText`. */
  texts: ReadonlyMap<string, string>;
}

/** So many characters a process remembers, roughly: of some 20,000 people what is shown of them. */
const REMEMBERED = 40 * 1024 * 1024;
const REMEMBERED_SHAPES = 5_000;
/** See `#isMetAgain`. */
const MET = 2 ** 16;
/** Callers choose the address in a text, so there may be any number. */
const MAX_TEXTS = 4;

const KINDS = ["u", "r", "l", "m"] as const satisfies SharedKind[];
const UNNAMED = sql`null, null, null`;
/** Where the rows of a kind lie, and their names, addresses and details. */
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
}

/** Which row a reference in a document of this repository stands for. */
export function keyOf({ kind, id }: Reference, repositoryId: number): SharedKey {
  return { kind, repositoryId: kind === "l" || kind === "m" ? repositoryId : 0, id };
}

/** Whose revision tells of a change of it. */
export function domainOf({ kind, repositoryId, id }: SharedKey): number {
  return kind === "u" ? PEOPLE : kind === "r" ? id : repositoryId;
}

/** The name of a row in maps. */
export function sharedName({ kind, repositoryId, id }: SharedKey): string {
  return kind === "l" || kind === "m" ? `${kind}${repositoryId}/${id}` : `${kind}${id}`;
}

/**
 * What is embedded in others, as this process has seen it. `load` answers a row only after Postgres has said that it is still
 * so, or sent it anew: whoever asks after a change sees it, whichever process made it.
 */
export class SharedRows {
  readonly #rows: LRUCache<string, SharedRow>;
  readonly #gathered = { ifChanged: this.#gather(false), anew: this.#gather(true) };
  readonly #shapes = new LRUCache<string, readonly string[]>({ max: REMEMBERED_SHAPES });
  /** Whoever was met last of all accounts that share a place here. */
  readonly #met: Float64Array;

  /**
   * @param options.maxSize so many characters are remembered, roughly
   * @param options.met so many accounts are known to have been met
   */
  constructor({ maxSize = REMEMBERED, met = MET } = {}) {
    this.#rows = new LRUCache({ maxSize, sizeCalculation: sizeOf });
    this.#met = new Float64Array(met);
  }

  /** By `sharedName`, as it was when it was last asked for; undefined where that is not known. May have changed since. */
  remembered(name: string): SharedRow | undefined {
    return this.#rows.get(name);
  }

  /**
   * The rows as they are now, by `sharedName`, and perhaps others; null where there is none. `isAnew` has them sent also where
   * they have not changed, with their documents.
   */
  load(queries: Queries, keys: readonly SharedKey[], isAnew: boolean): Promise<ReadonlyMap<string, SharedRow | null>> {
    if (!(queries instanceof Database)) return this.#load(queries, keys, isAnew);
    return this.#gathered[isAnew ? "anew" : "ifChanged"].find(queries, keys);
  }

  /**
   * Keeps what a row was rendered as; only of one that refers to no other, which could change without it. Of a user, of whom
   * there are most, nothing else is kept then.
   */
  keepText(name: string, row: SharedRow, variant: string, text: string): void {
    if (row.references.length > 0) return;
    const known = this.#rows.peek(name);
    // Another may have been loaded in the meantime.
    if (known?.revision !== row.revision) return;
    const texts = new Map(known.texts.size < MAX_TEXTS ? known.texts : []).set(variant, text);
    this.#rows.set(name, { ...known, document: name.startsWith("u") ? null : known.document, texts });
  }

  #gather(isAnew: boolean): GatheredRead<readonly SharedKey[], ReadonlyMap<string, SharedRow | null>> {
    return new GatheredRead(async (db, lists) => {
      const loaded: ReadonlyMap<string, SharedRow | null> = await this.#load(db, lists.flat(), isAnew);
      return lists.map(() => loaded);
    });
  }

  /** One statement, however many there are. */
  async #load(queries: Queries, keys: Iterable<SharedKey>, isAnew: boolean): Promise<Map<string, SharedRow | null>> {
    const loaded = new Map<string, SharedRow | null>();
    const asked: Record<SharedKind, SharedKey[]> = { u: [], r: [], l: [], m: [] };
    const revisions: Record<SharedKind, string[]> = { u: [], r: [], l: [], m: [] };
    for (const key of keys) {
      const name = sharedName(key);
      if (loaded.has(name)) continue;
      const known = this.remembered(name) ?? null;
      loaded.set(name, known);
      asked[key.kind].push(key);
      revisions[key.kind].push((isAnew ? null : known?.revision) ?? "0");
    }
    // A row is answered only where it is not as it is known, with nulls where there is none.
    const changed = KINDS.map((kind) => {
      const { from, name } = SOURCES[kind];
      const ids = arrayOf(asked[kind].map(({ id }) => id));
      const repositories = arrayOf(asked[kind].map(({ repositoryId }) => repositoryId));
      return sql`
        select ${sql.script(`'${kind}'`)}, x.at::integer, t.revision::text, t.document::text, t.deleted_at is not null, ${name}
          from unnest(${ids}, ${arrayOf(revisions[kind])}, ${repositories}) with ordinality as x(id, known, r, at)
          left join ${from} where t.revision is distinct from x.known`;
    });
    const rows = await queries.prepared<ChangedRow>(sql`
      select * from (${sql.join(changed, " union all ")})
        as c(kind, at, revision, document, deleted, full_name, html_url, detail)`);
    for (const { kind, at, revision, document, deleted, full_name, html_url, detail } of rows) {
      const key = asked[kind][at - 1] as SharedKey;
      const name = sharedName(key);
      if (revision === null) {
        loaded.set(name, null);
        continue;
      }
      const whole = detail === null ? document : joinObjects(document, detail);
      const row: SharedRow = {
        revision,
        document: whole,
        references: references(whole),
        // Users are shown as they were when upstream deletes them.
        isGone: deleted && kind !== "u",
        isDeleted: deleted,
        fullName: full_name ?? "",
        htmlUrl: html_url ?? "",
        texts: new Map(),
      };
      loaded.set(name, row);
      if (kind !== "u" || this.#rows.has(name) || this.#hasRoom() || this.#isMetAgain(key.id))
        this.#rows.set(name, row);
    }
    return loaded;
  }

  /** While half is free, people are remembered at once: all of them in the mirror of a small team. */
  #hasRoom(): boolean {
    return this.#rows.calculatedSize < this.#rows.maxSize / 2;
  }

  /**
   * Most accounts of a large mirror come up once in a long while. Were each remembered at once, they would push out those that
   * come up again and again, and be old before they are forgotten, when it takes longest to collect them.
   */
  #isMetAgain(id: number): boolean {
    const place = id % this.#met.length;
    if (this.#met[place] === id) return true;
    this.#met[place] = id;
    return false;
  }

  /** The keys of each shape that is known. */
  async loadShapes(queries: Queries, ids: Iterable<string>): Promise<Map<string, readonly string[]>> {
    const loaded = new Map<string, readonly string[]>();
    const unknown: string[] = [];
    for (const id of ids) {
      const keys = this.#shapes.get(id);
      if (keys) loaded.set(id, keys);
      else unknown.push(id);
    }
    if (unknown.length === 0) return loaded;
    const rows = await queries.prepared<{ id: string; keys: string }>(sql`
      select id, keys from shapes where id = any(${unknown}::text[])`);
    for (const { id, keys } of rows) {
      // An id is a hash of the keys, so it never means others.
      this.#shapes.set(id, keys.split(","));
      loaded.set(id, keys.split(","));
    }
    return loaded;
  }
}

function sizeOf({ document, texts }: SharedRow): number {
  let size = 500 + (document?.length ?? 0);
  for (const text of texts.values()) size += text.length;
  return size;
}

/** Two JSON objects as one. */
export function joinObjects(a: string, b: string): string {
  return a === "{}" ? b : `${a.slice(0, a.lastIndexOf("}"))},${b.slice(b.indexOf("{") + 1)}`;
}

const ofDatabases = new WeakMap<Queries, SharedRows>();

/** What this process remembers of a database; of a transaction, which may see its own changes, nothing beyond its end. */
export function sharedRowsOf(queries: Queries): SharedRows {
  if (!(queries instanceof Database)) return new SharedRows({ met: 1 });
  const known = ofDatabases.get(queries) ?? new SharedRows();
  ofDatabases.set(queries, known);
  return known;
}

/** As text, which is quicker to make of so many numbers than an array of the driver's. */
function arrayOf(numbers: readonly (number | string)[]): Sql {
  return sql`${`{${numbers.join(",")}}`}::bigint[]`;
}
