import { queryWithBytes } from "../../db/bytes.ts";
import type { Context } from "../context.ts";
import { Batches } from "../operations/batches.ts";
import type { Delivery } from "./delivery.ts";

// Upstream gives up after 10 s. Two stores are tried one after the other, so each may take this long.
export const STORE_TIMEOUT_MS = 3_000;

/** What one statement stores at most. More saves little, and takes the socket to Postgres several turns. */
const BATCH_SIZE = 16;
const BATCH_BYTES = 4_000_000;
/** While one batch waits for the disk, the next is on its way. */
const BATCHES_AT_ONCE = 3;

/** Answers the row's id when the delivery is to be applied, null when it was settled before. */
export type InboxWriter = Batches<Delivery, string | null>;

/**
 * Stores deliveries in the inbox, with one statement and one commit for all that have come while those before were stored:
 * a disk keeps many as fast as one.
 */
export function openInboxWriter({ db, log }: Pick<Context, "db" | "log">): InboxWriter {
  const limits = {
    size: BATCH_SIZE,
    bytes: { most: BATCH_BYTES, of: ({ payload }: Delivery) => payload.length },
    atOnce: BATCHES_AT_ONCE,
  };
  return new Batches({ log }, limits, async (batch) => {
    const [first, ...others] = batch;
    if (first && others.length === 0) return [await storeDelivery({ db }, first)];
    const ids = await storeNew(db, batch);
    return batch.map((delivery) => {
      const key = keyOf(delivery);
      const id = ids.get(key);
      ids.delete(key);
      // A worker that applies a known delivery holds its row. No other delivery waits for that.
      return id ?? storeDelivery({ db }, delivery);
    });
  });
}

const COLUMNS = "hook_id, guid, event, action, repository_id, received_at, payload";

/**
 * Answers the row's id when the delivery is to be applied, null when it was settled before.
 *
 * One statement, so that of two copies arriving at once one inserts a row and the other finds it. A redelivery makes a failed
 * delivery pending again. A pending one stays as it is and is dispatched again, since its job may be lost.
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

/** The ids of new deliveries, by hook and GUID. Of two copies among them the first is new. */
async function storeNew(db: Context["db"], deliveries: readonly Delivery[]): Promise<Map<string, string>> {
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
