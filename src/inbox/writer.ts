import { queryWithBytes } from "../../db/bytes.ts";
import { isPostgresOutage } from "../../db/outage.ts";
import type { Context } from "../context.ts";
import type { Delivery } from "./delivery.ts";

// Upstream gives up after 10 s. Two stores are tried one after the other, so each may take this long.
export const STORE_TIMEOUT_MS = 3_000;

/**
 * What one statement stores at most. More saves little, and takes the socket to Postgres several turns. A single delivery may
 * be larger.
 */
const MOST = 16;
const MOST_BYTES = 4_000_000;
/** While one waits for the disk, the next is on its way. */
const AT_ONCE = 3;

interface Waiting {
  delivery: Delivery;
  resolve: (id: string | null) => void;
  reject: (error: unknown) => void;
}

/**
 * Stores deliveries in the inbox, with one statement and one commit for all that have come while those before were stored:
 * a disk keeps many as fast as one. A lone delivery waits for nobody.
 */
export class InboxWriter {
  readonly #db: Context["db"];
  readonly #waiting: Waiting[] = [];
  #running = 0;

  constructor({ db }: Pick<Context, "db">) {
    this.#db = db;
  }

  /** Answers the row's id when the delivery is to be applied, null when it was settled before. */
  store(delivery: Delivery): Promise<string | null> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ delivery, resolve, reject });
      this.#next();
    });
  }

  #next(): void {
    if (this.#running === AT_ONCE || this.#waiting.length === 0) return;
    this.#running += 1;
    this.#run(this.#take()).finally(() => {
      this.#running -= 1;
      this.#next();
    });
  }

  #take(): Waiting[] {
    let bytes = 0;
    const end = this.#waiting.findIndex(({ delivery }, index) => {
      bytes += delivery.payload.length;
      return index > 0 && (index === MOST || bytes > MOST_BYTES);
    });
    return this.#waiting.splice(0, end === -1 ? this.#waiting.length : end);
  }

  async #run(batch: Waiting[]): Promise<void> {
    if (batch.length === 1) return this.#storeEach(batch);
    try {
      const ids = await storeNew(
        this.#db,
        batch.map(({ delivery }) => delivery),
      );
      // What is known already may be held by a worker that applies it; nobody else waits for that.
      const known: Waiting[] = [];
      for (const one of batch) {
        const key = keyOf(one.delivery);
        const id = ids.get(key);
        if (id === undefined) known.push(one);
        else one.resolve(id);
        ids.delete(key);
      }
      void this.#storeEach(known);
    } catch (error) {
      if (isPostgresOutage(error)) for (const { reject } of batch) reject(error);
      // One that Postgres refuses must not take others with it.
      else await this.#storeEach(batch);
    }
  }

  async #storeEach(batch: Waiting[]): Promise<void> {
    await Promise.all(
      batch.map(({ delivery, resolve, reject }) => storeDelivery({ db: this.#db }, delivery).then(resolve, reject)),
    );
  }
}

/**
 * Answers the row's id when the delivery is to be applied, null when it was settled before.
 *
 * One statement, so that of two copies arriving at once one inserts and the other finds it. A redelivery of what failed
 * makes it pending again; a redelivery of what is pending changes nothing but is dispatched again, since its job may be lost.
 */
export async function storeDelivery({ db }: Pick<Context, "db">, delivery: Delivery): Promise<string | null> {
  const { hookId, guid, event, action, repositoryId, payload, receivedAt } = delivery;
  const { rows } = await queryWithBytes<{ id: string }>(
    db.$client,
    {
      name: "store-delivery",
      text: `insert into deliveries (${COLUMNS}) values ($1, $2, $3, $4, $5, $6, $7)
        on conflict (hook_id, guid) do update set status = 'pending', reason = null, settled_at = null
          where deliveries.status in ('pending', 'failed')
        returning id`,
      values: [hookId, guid, event, action, repositoryId, receivedAt],
      // A connection whose server stopped answering is thrown away, not waited for.
      queryTimeoutMs: STORE_TIMEOUT_MS,
    },
    [payload],
  );
  return rows[0]?.id ?? null;
}

const COLUMNS = "hook_id, guid, event, action, repository_id, received_at, payload";

/** The ids of those that are new, by hook and GUID. Of two copies among them the first is new. */
async function storeNew(db: Context["db"], deliveries: Delivery[]): Promise<Map<string, string>> {
  const of = <Key extends keyof Delivery>(key: Key) => deliveries.map((delivery) => delivery[key]);
  let end = 1;
  const starts = deliveries.map(({ payload }) => {
    const start = end;
    end += payload.length;
    return start;
  });
  const { rows } = await queryWithBytes<{ id: string; hook_id: string; guid: string }>(
    db.$client,
    {
      name: "store-deliveries",
      // The payloads are one parameter: an array of them would be sent as text, twice as long.
      text: `insert into deliveries (${COLUMNS})
        select hook_id, guid, event, action, repository_id, received_at, substring($9::bytea from start for length)
        from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::timestamptz[], $7::integer[], $8::integer[])
          as x(hook_id, guid, event, action, repository_id, received_at, start, length)
        on conflict (hook_id, guid) do nothing returning id, hook_id, guid`,
      values: [
        of("hookId"),
        of("guid"),
        of("event"),
        of("action"),
        of("repositoryId"),
        of("receivedAt"),
        starts,
        deliveries.map(({ payload }) => payload.length),
      ],
      queryTimeoutMs: STORE_TIMEOUT_MS,
    },
    of("payload"),
  );
  return new Map(rows.map(({ id, hook_id, guid }) => [`${hook_id} ${guid}`, id]));
}

function keyOf({ hookId, guid }: Delivery): string {
  return `${hookId} ${guid}`;
}
