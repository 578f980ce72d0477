import { Pieces, sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";
import { Batches } from "../work/batches.ts";
import type { Delivery } from "./delivery.ts";

// Upstream gives up after 10 s. Two stores are tried one after the other, so each may take this long.
export const STORE_TIMEOUT_MS = 3_000;

/**
 * How many deliveries one statement stores. More saves little, and the socket to Postgres takes several turns for it.
 */
const BATCH_SIZE = 16;
const BATCH_BYTES = 4_000_000;
/** While one batch waits for the disk, the next is already sent. */
const BATCHES_AT_ONCE = 3;

/** Answers the row's id when the delivery is to be applied, null when it was settled before. */
export type InboxWriter = Batches<Delivery, string | null>;

/**
 * Stores deliveries in the inbox. Those that arrive during a write share the next statement and commit, because a disk
 * stores many as fast as one.
 */
export function openInboxWriter({ db, log, tracing }: Pick<Context, "db" | "log" | "tracing">): InboxWriter {
  const limits = {
    size: BATCH_SIZE,
    bytes: { most: BATCH_BYTES, of: ({ payload }: Delivery) => payload.length },
    atOnce: BATCHES_AT_ONCE,
  };
  return new Batches({ log, tracing }, limits, async (batch) => {
    const [first, ...others] = batch;
    if (first && others.length === 0) return [await storeDelivery({ db }, first)];
    const ids = await storeNew(db, batch);
    return batch.map((delivery) => {
      const key = keyOf(delivery);
      const id = ids.get(key);
      ids.delete(key);
      // A known delivery is stored by itself: a worker that applies it holds its row, and no other delivery should wait
      // for that.
      return id ?? storeDelivery({ db }, delivery);
    });
  });
}

/** A connection whose server stopped answering is thrown away, not waited for. */
const LIMITS = { timeoutMs: STORE_TIMEOUT_MS };

/**
 * Answers the row's id when the delivery is to be applied, null when it was settled before.
 *
 * One statement, so that of two copies arriving at once one inserts a row and the other finds it. A redelivery makes a failed
 * delivery pending again. A pending one stays as it is and is dispatched again, since its job may be lost.
 */
export async function storeDelivery({ db }: Pick<Context, "db">, delivery: Delivery): Promise<string | null> {
  const { hookId, guid, event, action, repositoryId, payload, receivedAt, traceparent, isMade } = delivery;
  const [row] = await db.prepared<{ id: string }>(
    sql`
      insert into deliveries (hook_id, guid, event, action, repository_id, received_at, payload, traceparent, is_made)
        values (${hookId}, ${guid}, ${event}, ${action}, ${repositoryId}, ${receivedAt}, ${payload}, ${traceparent},
          ${isMade})
        on conflict (hook_id, guid) do update set status = 'pending', reason = null, settled_at = null,
          traceparent = excluded.traceparent
          where deliveries.status in ('pending', 'failed')
        returning id`,
    LIMITS,
  );
  return row?.id ?? null;
}

/** The ids of new deliveries, by hook and GUID. If two copies are among them, the first is new. */
async function storeNew(db: Context["db"], deliveries: readonly Delivery[]): Promise<Map<string, string>> {
  const of = <Key extends keyof Delivery>(key: Key) => deliveries.map((delivery) => delivery[key]);
  let end = 1;
  const starts = deliveries.map(({ payload }) => {
    const start = end;
    end += payload.length;
    return start;
  });
  const lengths = deliveries.map(({ payload }) => payload.length);
  // The payloads are one parameter: an array of them would be sent as text, twice as long.
  const payloads = new Pieces(of("payload"));
  const rows = await db.prepared<{ id: string; hook_id: string; guid: string }>(
    sql`
      insert into deliveries (hook_id, guid, event, action, repository_id, received_at, traceparent, is_made, payload)
        select hook_id, guid, event, action, repository_id, received_at, traceparent, is_made,
            substring(${payloads}::bytea from start for length)
          from unnest(${of("hookId")}::bigint[], ${of("guid")}::text[], ${of("event")}::text[], ${of("action")}::text[],
            ${of("repositoryId")}::bigint[], ${of("receivedAt")}::timestamptz[], ${starts}::integer[],
            ${lengths}::integer[], ${of("traceparent")}::text[], ${of("isMade")}::boolean[])
            as x(hook_id, guid, event, action, repository_id, received_at, start, length, traceparent, is_made)
        on conflict (hook_id, guid) do nothing returning id, hook_id, guid`,
    LIMITS,
  );
  return new Map(rows.map(({ id, hook_id, guid }) => [keyOf({ hookId: hook_id, guid }), id]));
}

function keyOf({ hookId, guid }: { hookId: number | string; guid: string }): string {
  return `${hookId} ${guid}`;
}
