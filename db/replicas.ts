import type pg from "pg";
import { reasonOf } from "../src/failure.ts";
import type { Client } from "./lending.ts";
import { isPostgresCancelled, isPostgresOutage } from "./outage.ts";
import { type Lane, type LogPosition, Replica, type ReplicaOptions, type ReplicaState, untold } from "./replica.ts";

interface ReplicasOptions extends ReplicaOptions {
  /** Called with the name of the replica that answered a statement, or with "primary". */
  answered: (by: string) => void;
}

/**
 * Replicas that run reads in the primary's place. The one rule: a replica may answer a read only if it has replayed
 * everything that was durable on the primary when the read arrived. So its answer lacks nothing that the primary showed
 * at that moment. If no replica is so far, or the replica fails, the primary answers.
 */
export class Replicas {
  readonly #all: readonly Replica[];
  readonly #options: ReplicasOptions;
  #turn = 0;

  /** Opening waits for nothing. A replica gets reads only after a trial has shown that it keeps up with the primary. */
  constructor(urls: readonly string[], options: ReplicasOptions) {
    this.#options = options;
    this.#all = urls.map((url) => new Replica(url, options));
  }

  /** Runs statements on a replica, or else on the primary. */
  before(primary: Client, how: { signal: AbortSignal | null; lane: Lane }): Client {
    return new Nearest({ replicas: this, primary, ...how });
  }

  /** The next replica in turn. Null: all are left out. */
  next(): Replica | null {
    for (let looked = 0; looked < this.#all.length; looked++) {
      this.#turn = (this.#turn + 1) % this.#all.length;
      const replica = this.#all[this.#turn];
      if (replica?.isRead) return replica;
    }
    return null;
  }

  /**
   * The primary's position, asked for after this call began. Null: it is unknown, so the primary has to answer the
   * read.
   */
  async position(): Promise<LogPosition | null> {
    try {
      return await this.#options.position();
    } catch (error) {
      // While the primary is away, the read itself fails with that error. Any other error leaves the replicas out, and
      // the operator must see why.
      if (!isPostgresOutage(error)) for (const replica of this.#all) replica.leaveOut(untold(error));
      return null;
    }
  }

  answered(by: Replica | null): void {
    this.#options.answered(by?.name ?? "primary");
  }

  /** Waits for the end of all running trials. */
  async tried(): Promise<void> {
    await Promise.all(this.#all.map((replica) => replica.tried()));
  }

  states(): ReplicaState[] {
    return this.#all.map(({ state }) => state);
  }

  /** The sum over all replicas. */
  load(): { open: number; idle: number; waiting: number } {
    const sum = { open: 0, idle: 0, waiting: 0 };
    for (const replica of this.#all) {
      const { open, idle, waiting } = replica.load();
      sum.open += open;
      sum.idle += idle;
      sum.waiting += waiting;
    }
    return sum;
  }

  async close(): Promise<void> {
    await Promise.all(this.#all.map((replica) => replica.close()));
  }
}

class Nearest implements Client {
  readonly #replicas: Replicas;
  readonly #primary: Client;
  readonly #signal: AbortSignal | null;
  readonly #lane: Lane;
  readonly #clients = new Map<Replica, Client>();

  constructor(parts: { replicas: Replicas; primary: Client; signal: AbortSignal | null; lane: Lane }) {
    this.#replicas = parts.replicas;
    this.#primary = parts.primary;
    this.#signal = parts.signal;
    this.#lane = parts.lane;
  }

  async query<Row extends pg.QueryResultRow>(config: pg.QueryConfig): Promise<pg.QueryResult<Row>> {
    const replica = this.#replicas.next();
    const answer = replica && (await this.#ask<Row>(replica, config));
    this.#replicas.answered(answer && replica);
    return answer ?? (await this.#primary.query<Row>(config));
  }

  /** The replica's answer. Null: the primary has to answer. */
  async #ask<Row extends pg.QueryResultRow>(
    replica: Replica,
    config: pg.QueryConfig,
  ): Promise<pg.QueryResult<Row> | null> {
    const position = await this.#replicas.position();
    if (!position) return null;
    try {
      if (!(await replica.reaches(position))) return null;
      return await this.#on(replica).query<Row>(replica.at(position, config, this.#lane));
    } catch (error) {
      // The caller has gone, or the statement took too long. The primary would take just as long, so it is not asked.
      if (this.#signal?.aborted || isPostgresCancelled(error)) throw error;
      if (isPostgresOutage(error)) replica.leaveOut(reasonOf(error));
      // A replica may refuse for other reasons, such as a conflict with its replay. Then the primary answers, or says
      // what is wrong.
      return null;
    }
  }

  #on(replica: Replica): Client {
    const client = this.#clients.get(replica) ?? replica.client({ signal: this.#signal, lane: this.#lane });
    this.#clients.set(replica, client);
    return client;
  }
}
