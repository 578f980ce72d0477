import type { Database } from "../../../db/database.ts";
import { CallersLine, type CallersLineBounds } from "../../work/callers-line.ts";
import { type Payer, payerName, type Stranger } from "../callers/quota.ts";
import { placeRefused } from "../dialect/fault.ts";

/** A GraphQL document has up to thirty searches and filters by text, which ask at the same time. */
const OF_ONE: Pick<CallersLineBounds, "mostEach" | "mostWaitingEach" | "mostWaiting" | "patienceMs"> = {
  mostEach: 1,
  mostWaitingEach: 40,
  mostWaiting: 200,
  patienceMs: 10_000,
};

/**
 * Searches, and lists that filter by what no index orders. Each may take Postgres seconds, so they have connections of
 * their own, and each caller has one of them at a time.
 */
export class Searches {
  readonly #db: Database;
  readonly #line: CallersLine;

  /** @param db of connections that no other reads use @param connections how many there are */
  constructor(db: Database, connections: number) {
    this.#db = db;
    this.#line = new CallersLine({ most: connections, ...OF_ONE });
  }

  /**
   * Where this caller's searches run, until the signal aborts. A statement that finds no place fails with an ApiFault: 403
   * if the caller's own searches have taken it, 503 if those of others have.
   */
  of(caller: Payer | Stranger, signal: AbortSignal): Database {
    const name = payerName(caller);
    return this.#db.until(signal, () => this.#line.enter(name, signal).catch(placeRefused));
  }
}
