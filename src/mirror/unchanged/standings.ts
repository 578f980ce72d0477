import pg from "pg";
import type { Config } from "../../config.ts";
import { Gather } from "../../operations/gather.ts";

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

const FIND_STANDINGS = `select x.id, v.revision, s.state <> 'gone', floor(extract(epoch from s.confirmed_at) * 1000)::bigint
  from unnest($1::bigint[]) as x(id)
  left join revisions v on v.repository_id = x.id left join repository_syncs s on s.repository_id = x.id`;

type Row = [id: string, revision: string | null, isMirrored: boolean | null, confirmedMs: string | null];

/** While one connection waits for its answer, the other takes the requests that have come since. */
const CONNECTIONS = 2;
const CONNECT_TIMEOUT_MS = 5_000;
/** An answer takes a millisecond. After this time its connection is given up, with the requests that wait for it. */
const ANSWER_TIMEOUT_MS = 10_000;

/**
 * Says how repositories stand. An answer is never older than its question, and all requests of one moment share a statement, so
 * that asking before each answer costs little. The connections are its own: no slow read holds it up.
 */
export class StandingsReader implements AsyncDisposable {
  readonly #idle: Connection[];
  readonly #all: readonly Connection[];
  readonly #questions: Gather<Iterable<number>, Standings>;

  constructor({ databaseUrl, databaseDirectUrl }: Pick<Config, "databaseUrl" | "databaseDirectUrl">) {
    // A pooler knows no names of statements, since it gives the session to others.
    const name = databaseDirectUrl === null ? "standings" : undefined;
    this.#all = Array.from({ length: CONNECTIONS }, () => new Connection(databaseUrl, name));
    this.#idle = [...this.#all];
    this.#questions = new Gather(
      async (lists) => {
        const asked = new Set<number>();
        for (const ids of lists) for (const id of ids) asked.add(id);
        const standings = await this.#find(asked);
        return lists.map(() => standings);
      },
      { atOnce: CONNECTIONS, patienceMs: null },
    );
  }

  /** How each of these stands now, and perhaps others. @throws whatever Postgres refuses */
  now(repositoryIds: Iterable<number>): Promise<Standings> {
    return this.#questions.ask(repositoryIds);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#all.map((connection) => connection.close()));
  }

  async #find(ids: Iterable<number>): Promise<Standings> {
    const connection = this.#idle.pop();
    if (!connection) throw new Error("More questions are under way than there are connections");
    try {
      const rows = await connection.rows(`{${[...ids].join(",")}}`);
      return new Map(rows.map(standingOf));
    } finally {
      this.#idle.push(connection);
    }
  }
}

function standingOf([id, revision, isMirrored, confirmedMs]: Row): [number, Standing] {
  const confirmedAt = confirmedMs === null ? null : new Date(Number(confirmedMs));
  return [Number(id), { revision, isMirrored: isMirrored === true, confirmedAt }];
}

/** One connection, made when it is needed, and again after it broke. A pool would cost a tenth of an answer that is a 304. */
class Connection {
  readonly #databaseUrl: string;
  readonly #name: string | undefined;
  #client: pg.Client | null = null;
  #connecting: Promise<pg.Client> | null = null;
  #isClosed = false;

  constructor(databaseUrl: string, name: string | undefined) {
    this.#databaseUrl = databaseUrl;
    this.#name = name;
  }

  async rows(ids: string): Promise<Row[]> {
    if (this.#isClosed) throw new Error("The connection is closed");
    const client = this.#client ?? (await this.#made());
    this.#client = client;
    // A connection that is dropped fails its query.
    const late = setTimeout(() => this.#drop(client), ANSWER_TIMEOUT_MS);
    try {
      return (await client.query<Row>({ name: this.#name, text: FIND_STANDINGS, values: [ids], rowMode: "array" }))
        .rows;
    } finally {
      clearTimeout(late);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    // One that is just being made would outlive us.
    const made = await this.#connecting?.catch(() => null);
    await (this.#client ?? made)?.end();
  }

  #made(): Promise<pg.Client> {
    this.#connecting = this.#connect();
    return this.#connecting;
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
    } catch (error) {
      this.#drop(client);
      throw error;
    }
    return client;
  }

  #drop(client: pg.Client): void {
    if (this.#client === client) this.#client = null;
    // Nobody waits for a goodbye.
    client.end().catch(() => {});
  }
}
