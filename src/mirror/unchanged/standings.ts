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
  readonly #pool: pg.Pool;
  readonly #questions: Gather<Iterable<number>, Standings>;

  constructor({ databaseUrl }: Pick<Config, "databaseUrl">) {
    this.#pool = new pg.Pool({
      connectionString: databaseUrl,
      max: CONNECTIONS,
      application_name: "tain revisions",
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: ANSWER_TIMEOUT_MS,
      idleTimeoutMillis: 0,
      keepAlive: true,
    });
    // A connection that breaks while it is idle leaves the pool by itself.
    this.#pool.on("error", () => {});
    this.#questions = new Gather(
      async (lists) => {
        const standings = await this.#find(new Set(lists.flatMap((ids) => [...ids])));
        return lists.map(() => standings);
      },
      { atOnce: CONNECTIONS },
    );
  }

  /** How each of these stands now, and perhaps others. @throws whatever Postgres refuses */
  now(repositoryIds: Iterable<number>): Promise<Standings> {
    return this.#questions.ask(repositoryIds);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool.end();
  }

  async #find(ids: Iterable<number>): Promise<Standings> {
    const { rows } = await this.#pool.query<Row>({
      name: "standings",
      text: FIND_STANDINGS,
      values: [`{${[...ids].join(",")}}`],
      rowMode: "array",
    });
    return new Map(
      rows.map(([id, revision, isMirrored, confirmedMs]) => [
        Number(id),
        {
          revision,
          isMirrored: isMirrored === true,
          confirmedAt: confirmedMs === null ? null : new Date(Number(confirmedMs)),
        },
      ]),
    );
  }
}
