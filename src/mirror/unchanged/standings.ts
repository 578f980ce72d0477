import pg from "pg";
import type { Config } from "../../config.ts";

/** How a repository stood at a moment. 0 stands for people; see `db/revisions.ts`. */
export interface Standing {
  /** Unlike any that it had before or will have later; null: nothing has changed since revisions are kept. */
  revision: string | null;
  /** It is followed, and so may be shown at all. */
  isMirrored: boolean;
  /** When upstream last confirmed what the mirror holds of it, by our clock; null: not yet. */
  confirmedAt: Date | null;
}

export type Standings = ReadonlyMap<number, Standing>;

const STANDINGS = `select x.id, v.revision, s.state <> 'gone' as is_mirrored,
    floor(extract(epoch from s.confirmed_at) * 1000)::bigint as confirmed_ms
  from unnest($1::bigint[]) as x(id)
  left join revisions v on v.repository_id = x.id left join repository_syncs s on s.repository_id = x.id`;

/** Connections. While one waits for its answer the other takes those who have come since: nobody waits for two answers. */
const LANES = 2;
const CONNECT_TIMEOUT_MS = 5_000;
/** A connection over which nothing has come for so long is given up, with those who wait for it. It takes a millisecond. */
const ANSWER_TIMEOUT_MS = 10_000;

/** Somebody who waits for an answer. */
interface Waiting {
  resolve(standings: Standings): void;
  reject(error: unknown): void;
}

/** Those who wait for the same answer. */
interface Batch {
  ids: Set<number>;
  waiting: Waiting[];
}

/**
 * Says how repositories stand, for readers who may answer what they rendered before as long as nothing has changed. An answer
 * is never older than the question: its statement is sent after that, and all who have come in the meantime share it. So it
 * costs little however many ask; and it goes over connections of its own, which no slow read holds up.
 */
export class Revisions implements AsyncDisposable {
  readonly #lanes: Lane[];
  #next: Batch | null = null;

  constructor({ databaseUrl }: Pick<Config, "databaseUrl">) {
    this.#lanes = Array.from({ length: LANES }, () => new Lane(databaseUrl));
  }

  /** How each of these stands now, and perhaps others. @throws whatever Postgres refuses */
  now(repositoryIds: Iterable<number>): Promise<Standings> {
    return new Promise((resolve, reject) => this.ask(repositoryIds, { resolve, reject }));
  }

  /** The same; `resolve` and `reject` must not throw. */
  ask(repositoryIds: Iterable<number>, waiting: Waiting): void {
    if (this.#next === null) {
      this.#next = { ids: new Set(), waiting: [] };
      // All who arrive in this turn of the event loop go along.
      setImmediate(() => this.#send());
    }
    for (const id of repositoryIds) this.#next.ids.add(id);
    this.#next.waiting.push(waiting);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#lanes.map((lane) => lane.close()));
  }

  #send(): void {
    const batch = this.#next;
    const lane = batch && this.#lanes.find(({ isBusy }) => !isBusy);
    if (!lane) return;
    this.#next = null;
    lane.ask([...batch.ids]).then(
      (standings) => {
        for (const { resolve } of batch.waiting) resolve(standings);
        this.#send();
      },
      (error: unknown) => {
        for (const { reject } of batch.waiting) reject(error);
        this.#send();
      },
    );
  }
}

/** One connection, made when it is needed, and again after it broke. One question at a time. */
class Lane {
  readonly #databaseUrl: string;
  #client: pg.Client | null = null;
  isBusy = false;

  constructor(databaseUrl: string) {
    this.#databaseUrl = databaseUrl;
  }

  async ask(ids: number[]): Promise<Standings> {
    this.isBusy = true;
    try {
      const client = this.#client ?? (await this.#connect());
      this.#client = client;
      const { promise, resolve, reject } = Promise.withResolvers<Standings>();
      const late = setTimeout(() => {
        reject(new Error("Connection terminated due to timeout"));
        this.#drop(client);
      }, ANSWER_TIMEOUT_MS);
      try {
        client.query(new Question(ids, { resolve, reject }));
        return await promise;
      } finally {
        clearTimeout(late);
      }
    } finally {
      this.isBusy = false;
    }
  }

  async close(): Promise<void> {
    await this.#client?.end();
  }

  async #connect(): Promise<pg.Client> {
    const client = new pg.Client({
      connectionString: this.#databaseUrl,
      application_name: "tain revisions",
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      keepAlive: true,
    });
    client.on("error", () => this.#drop(client));
    client.on("end", () => this.#drop(client));
    try {
      await client.connect();
      // From now on the statement is known by its name.
      await client.query({ name: STATEMENT, text: STANDINGS, values: ["{}"] });
    } catch (error) {
      this.#drop(client);
      throw error;
    }
    return client;
  }

  #drop(client: pg.Client): void {
    if (this.#client === client) this.#client = null;
    // It says goodbye to nobody, and nobody waits for it.
    client.end().catch(() => {});
  }
}

const STATEMENT = "standings";

/**
 * One execution of the prepared statement. `pg` takes a query as an object that submits itself and is told of each message;
 * its own do for any statement what is needed for none here: look at types, parse values, build results.
 */
class Question implements pg.Submittable {
  readonly #ids: number[];
  readonly #told: Waiting;
  readonly #standings = new Map<number, Standing>();

  constructor(ids: number[], told: Waiting) {
    this.#ids = ids;
    this.#told = told;
  }

  submit(connection: unknown): void {
    (connection as { stream: { write(bytes: Buffer): void } }).stream.write(execution(`{${this.#ids.join(",")}}`));
  }

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    const [id, revision = null, isMirrored, confirmedMs] = fields;
    this.#standings.set(Number(id), {
      revision,
      isMirrored: isMirrored === "t",
      confirmedAt: typeof confirmedMs === "string" ? new Date(Number(confirmedMs)) : null,
    });
  }

  handleRowDescription(): void {}

  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    this.#told.resolve(this.#standings);
  }

  handleError(error: Error): void {
    this.#told.reject(error);
  }
}

/**
 * Bind, Execute and Sync of the statement in one piece; the value travels as text, and so does what is answered.
 * https://www.postgresql.org/docs/18/protocol-message-formats.html
 */
function execution(value: string): Buffer {
  const bind = `\0${STATEMENT}\0\0\0\0\x01`;
  const length = 4 + bind.length + 4 + value.length + 2;
  const bytes = Buffer.alloc(1 + length + EXECUTE_AND_SYNC.length);
  bytes.write("B", 0);
  bytes.writeInt32BE(length, 1);
  bytes.write(bind, 5, "latin1");
  bytes.writeInt32BE(value.length, 5 + bind.length);
  bytes.write(value, 9 + bind.length, "latin1");
  EXECUTE_AND_SYNC.copy(bytes, 1 + length);
  return bytes;
}

/** All rows of the unnamed portal, then the end of the exchange. */
const EXECUTE_AND_SYNC = Buffer.from("E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04", "latin1");
