import { LRUCache } from "lru-cache";
import { type Database, openDatabase } from "../../../db/database.ts";
import type { LogPosition } from "../../../db/replica.ts";
import { ERA_OF_PRIMARY, ERA_OF_REPLICA, PEOPLE } from "../../../db/revisions.ts";
import { MIRRORED } from "../../../db/schema/states.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import type { Config } from "../../config.ts";
import { ElsewhereError } from "../../operations/elsewhere.ts";
import { Rounds } from "../../work/gather.ts";

/** How a repository stood at a moment. 0 stands for people; see `db/revisions.ts`. */
export interface RepositoryVersion {
  /** Unique to this version, also across eras of the database; null: not known. */
  revision: string | null;
  /** The repository is followed, so it may be shown. */
  isMirrored: boolean;
  /** When upstream last confirmed the mirror's copy, by our clock; null: not yet. */
  confirmedAt: Date | null;
  /** The parts that upstream did not show then, as answers name them; null: none. */
  missing: string | null;
}

export type RepositoryVersions = ReadonlyMap<number, RepositoryVersion>;

/** The statement for versions. @param head one row with the `era`, perhaps with more */
function findRepositoryVersions(ids: readonly number[], head: SQL, more = sql``): SQL {
  return sql`select x.id, h.era || '/' || coalesce(v.revision, 0) as revision, ${MIRRORED} as "isMirrored",
      s.confirmed_at as "confirmedAt", s.parts_missing as missing ${more}
    from (${head}) h cross join unnest(${ids}::bigint[]) as x(id)
    left join revisions v on v.repository_id = x.id left join repository_syncs s on s.repository_id = x.id`;
}

/**
 * The position is read after the statement has begun. So it lies behind everything that the statement shows: what is
 * committed is durable before anybody sees it, unless `synchronous_commit` is off.
 */
const ERA_AND_POSITION = sql`select (${sql.script(ERA_OF_PRIMARY)}) as era, (case current_setting('synchronous_commit')
  when 'off' then pg_current_wal_insert_lsn() else pg_current_wal_flush_lsn() end - '0/0')::text as lsn`;
const POSITION = sql`, h.era, h.lsn, pg_current_snapshot()::text as snapshot`;

interface RepositoryVersionRow {
  id: number;
  revision: string | null;
  isMirrored: boolean | null;
  confirmedAt: Date | null;
  missing: string | null;
  /** This and what follows is there only if the position was asked for. */
  era?: string | null;
  lsn?: string;
  snapshot?: string;
}

interface RepositoryVersionsQuestion {
  ids: Iterable<number>;
  /**
   * Gets the primary's position: a replica that has replayed as much shows no less. Null: nobody asked. It is asked
   * only for replicas, since it makes each row wider.
   */
  tell: ((position: LogPosition) => void) | null;
}

/** The second connection serves questions while an answer on the first one is late. */
const CONNECTIONS = 2;
/** An answer takes a millisecond. After this time its connection is closed, and the requests that wait for it fail. */
const ANSWER_TIMEOUT_MS = 10_000;

/**
 * Says how repositories stand. An answer is never older than its question, and all requests of one moment share a
 * statement, so that asking before each answer costs little. The connections are its own: no slow read holds it up.
 */
export class RepositoryVersionsReader implements AsyncDisposable {
  readonly #db: Database;
  readonly #isOfReplica: boolean;
  readonly #questions: Rounds<RepositoryVersionsQuestion, RepositoryVersions>;
  /** The last position, and the transactions that had ended by then. */
  #last: { position: LogPosition; snapshot: string } | null = null;

  constructor({
    databaseUrl,
    databaseDirectUrl,
    isReadOnly = false,
  }: Pick<Config, "databaseUrl" | "databaseDirectUrl"> & { isReadOnly?: boolean }) {
    this.#isOfReplica = isReadOnly;
    this.#db = openDatabase(databaseUrl, {
      isPooled: databaseDirectUrl !== null,
      maxConnections: CONNECTIONS,
      applicationName: "tain revisions",
    });
    // One round at a time, unless it is late. The more requests share a statement, the less each one costs.
    this.#questions = new Rounds((questions) => {
      const asked = new Set<number>();
      const told: NonNullable<RepositoryVersionsQuestion["tell"]>[] = [];
      let last: RepositoryVersionsQuestion["ids"] | null = null;
      for (const { ids, tell } of questions) {
        // Most are those of the same page.
        if (ids !== last) for (const id of ids) asked.add(id);
        last = ids;
        if (tell) told.push(tell);
      }
      return this.#find(asked, told);
    });
  }

  /** How each of these stands now, and perhaps others. @throws whatever Postgres refuses */
  now(repositoryIds: Iterable<number>): Promise<RepositoryVersions> {
    return this.#questions.join({ ids: repositoryIds, tell: null }).answer;
  }

  /** Where the primary is now. @throws whatever Postgres refuses */
  position(): Promise<LogPosition> {
    return new Promise((resolve, reject) => {
      this.#questions.join({ ids: [PEOPLE], tell: resolve }).answer.catch(reject);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#db.close();
  }

  /**
   * While no transaction ends, the position stays. Postgres also writes to the log when it reads, to note ended
   * transactions. Such records change no answer, and may reach the replicas late.
   */
  #positionOf(rows: readonly RepositoryVersionRow[]): LogPosition {
    const [{ era = null, lsn = 0, snapshot = "" } = {}] = rows;
    const position = { era: era ?? "", lsn: BigInt(lsn) };
    const last = this.#last;
    if (last?.snapshot === snapshot && last.position.era === position.era) return last.position;
    this.#last = { position, snapshot };
    return position;
  }

  async #find(
    ids: Iterable<number>,
    tellPosition: readonly ((position: LogPosition) => void)[],
  ): Promise<RepositoryVersions> {
    const era = sql.script(this.#isOfReplica ? ERA_OF_REPLICA : ERA_OF_PRIMARY);
    const statement =
      tellPosition.length > 0
        ? findRepositoryVersions([...ids], ERA_AND_POSITION, POSITION)
        : findRepositoryVersions([...ids], sql`select (${era}) as era`);
    const find = () => this.#db.prepared<RepositoryVersionRow>(statement, { timeoutMs: ANSWER_TIMEOUT_MS });
    let rows = await find();
    if (rows.some(({ revision }) => revision === null)) {
      if (this.#isOfReplica) throw new ElsewhereError("DATABASE_URL leads to a server that is no replica");
      await this.#db.query(sql`select begin_era()`);
      rows = await find();
    }
    if (tellPosition.length > 0) {
      const position = this.#positionOf(rows);
      for (const tell of tellPosition) tell(position);
    }
    return new Map(rows.map(standingOf));
  }
}

function standingOf({
  id,
  revision,
  isMirrored,
  confirmedAt,
  missing,
}: RepositoryVersionRow): [number, RepositoryVersion] {
  return [id, { revision, isMirrored: isMirrored === true, confirmedAt, missing }];
}

/**
 * What one request has learnt of how repositories stand, each at some moment since the request began. The request need
 * not show later changes, so nothing is asked twice.
 */
export class Reading {
  readonly #repositoryVersions: Pick<RepositoryVersionsReader, "now">;
  readonly #isLasting: boolean;
  readonly #learnt: Map<number, RepositoryVersion>;
  readonly #asked = new Map<number, Promise<void>>();

  /**
   * @param options.learnt versions that were asked for earlier in the same request
   * @param options.isLasting false for a request that changes the mirror meanwhile: it must see the change, so it asks
   *   each time
   */
  constructor(
    repositoryVersions: Pick<RepositoryVersionsReader, "now">,
    { learnt, isLasting = true }: { learnt?: RepositoryVersions | undefined; isLasting?: boolean } = {},
  ) {
    this.#repositoryVersions = repositoryVersions;
    this.#isLasting = isLasting;
    this.#learnt = new Map(isLasting ? learnt : null);
  }

  /** How each of these stands. @throws whatever Postgres refuses */
  async now(repositoryIds: Iterable<number>): Promise<RepositoryVersions> {
    const ids = [...repositoryIds];
    if (!this.#isLasting) return this.#repositoryVersions.now(ids);
    const unknown = ids.filter((id) => !this.#learnt.has(id) && !this.#asked.has(id));
    if (unknown.length > 0) {
      const asking = this.#repositoryVersions.now(unknown).then((answered) => {
        for (const [id, repositoryVersion] of only(unknown, answered)) this.#learnt.set(id, repositoryVersion);
      });
      for (const id of unknown) this.#asked.set(id, asking);
    }
    if (!ids.every((id) => this.#learnt.has(id))) await Promise.all(new Set(ids.map((id) => this.#asked.get(id))));
    return only(ids, this.#learnt);
  }

  /** Rows that are read from now on are at least as new as these versions, and may be kept with them. */
  soFar(): RepositoryVersions {
    return new Map(this.#learnt);
  }
}

/** A copy: what is learnt later may be newer than what is read now. */
function only(ids: readonly number[], repositoryVersions: RepositoryVersions): Map<number, RepositoryVersion> {
  const found = new Map<number, RepositoryVersion>();
  for (const id of ids) {
    const repositoryVersion = repositoryVersions.get(id);
    if (repositoryVersion) found.set(id, repositoryVersion);
  }
  return found;
}

interface Entry<Value> {
  /** Null: some versions were unknown when the value was read. */
  value: Value | null;
  basis: Basis;
}

/** The repositories that a value shows, and their versions. */
interface Basis {
  /** The repositories that it shows, and people. */
  shown: readonly number[];
  /** How each of these stood before the value was read. */
  stood: readonly RepositoryVersion[];
}

/** A kept value that is not confirmed as unchanged yet. */
export type Recalled<Value> = Entry<Value> & { value: Value };

/** The size of an entry beside its value and its key: the entry itself, its place, how everything stood. */
const ENTRY_OVERHEAD_BYTES = 500;
/** A value that would push out all others is not kept. */
const LARGEST_PART = 1 / 8;

/**
 * Keeps values and gives them again while they are unchanged. Everything that is kept of mirrored rows, so as not to
 * read or render them again, follows this one rule. Tokens, rights and upstream's answers have rules of their own. A
 * value is kept with the versions of all that it shows, taken before it was read. It is given again only if these
 * versions hold at some moment of the reading. So a read that begins after a commit in any process shows that change.
 *
 * Often the read itself first shows what a value depends on. Then the first `keep` notes that, the next `get` asks for
 * its versions, and the second `keep` keeps the value. So values that are asked for only once are not kept.
 */
export class Kept<Value extends object> {
  readonly #entries: LRUCache<string, Entry<Value>> | null;

  /**
   * @param options.maxBytes 0: nothing is kept
   * @param options.bytesOf how much a value takes
   * @param options.largestPart a value that takes more of the room is not kept
   */
  constructor({
    maxBytes,
    bytesOf,
    largestPart = LARGEST_PART,
  }: {
    maxBytes: number;
    bytesOf: (value: Value) => number;
    largestPart?: number;
  }) {
    this.#entries =
      maxBytes === 0
        ? null
        : new LRUCache({
            maxSize: maxBytes,
            maxEntrySize: Math.ceil(maxBytes * largestPart),
            sizeCalculation: ({ value, basis: { shown } }, key) =>
              Math.ceil(value === null ? 0 : bytesOf(value)) + key.length * 2 + shown.length * 8 + ENTRY_OVERHEAD_BYTES,
          });
  }

  /** The value, if it is unchanged. The reading learns the versions that the next `keep` needs to keep the value. */
  async get(key: string, reading: Pick<RepositoryVersionsReader, "now">): Promise<Value | undefined> {
    const entry = this.#entries?.get(key);
    if (!entry) return undefined;
    const now = await reading.now(entry.basis.shown);
    return hasValue(entry) && this.stands(entry, now) ? entry.value : undefined;
  }

  /** The value as it was kept, which may have changed since; see `stands`. */
  recall(key: string): Recalled<Value> | undefined {
    const entry = this.#entries?.get(key);
    return entry && hasValue(entry) ? entry : undefined;
  }

  /** Whether the value is unchanged, by versions that are known already. */
  stands({ basis: { shown, stood } }: Entry<Value>, now: RepositoryVersions): boolean {
    for (let at = 0; at < shown.length; at++)
      if (!isSameStanding(stood[at], now.get(shown[at] ?? Number.NaN))) return false;
    return true;
  }

  /**
   * Keeps the result of `make`, and answers it; undefined: it is not kept yet.
   * @param how.shown the repositories that the value shows, and `PEOPLE`
   * @param how.before how they stood before the value was read
   */
  keep(
    key: string,
    make: () => Value,
    { shown, before }: { shown: readonly number[]; before: RepositoryVersions },
  ): Value | undefined {
    if (!this.#entries) return undefined;
    const stood: RepositoryVersion[] = [];
    for (const id of shown) {
      const repositoryVersion = before.get(id);
      if (!repositoryVersion) {
        this.#entries.set(key, { value: null, basis: { shown, stood: [] } });
        return undefined;
      }
      stood.push(repositoryVersion);
    }
    const value = make();
    this.#entries.set(key, { value, basis: { shown, stood } });
    return value;
  }

  /** Counts the bytes of a value anew that has grown since it was kept. */
  weigh(key: string, value: Value): void {
    const entry = this.#entries?.peek(key);
    if (entry?.value === value) this.#entries?.set(key, { ...entry });
  }
}

function hasValue<Value>(entry: Entry<Value>): entry is Recalled<Value> {
  return entry.value !== null;
}

function isSameStanding(before: RepositoryVersion | undefined, now: RepositoryVersion | undefined): boolean {
  // Without a revision the version is not known.
  if (now === undefined || now.revision === null) return false;
  return now.revision === before?.revision && now.isMirrored === before.isMirrored;
}
