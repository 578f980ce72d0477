import { eq } from "drizzle-orm";
import { sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";
import { deliveries } from "../schema.ts";
import { Line } from "../work/line.ts";

/** Payloads up to this size need no bound of their own: 64 targets with four repositories each make 64 MiB at most. */
const SMALL_BYTES = 256 * 1_024;
/** Larger payloads take at most this much together. Upstream sends none above 25 MB. */
const MOST_LARGE_BYTES = 64 * 1_024 * 1_024;
/** A cursor is held for 20 seconds, and an attempt may take ten of them. */
const ROOM_PATIENCE_MS = 5_000;

/** A payload in memory, until it is disposed of. */
export interface HeldPayload extends Disposable {
  bytes: Buffer;
  /** The trace in which the delivery arrived; null: unknown. */
  traceparent: string | null;
}

/** Bounds what large payloads under way hold of a process's memory. Small ones never wait behind them. */
export class PayloadRoom {
  readonly #patienceMs: number;
  readonly #line: Line<number>;
  #heldBytes = 0;

  constructor({ mostBytes = MOST_LARGE_BYTES, patienceMs = ROOM_PATIENCE_MS } = {}) {
    this.#patienceMs = patienceMs;
    this.#line = new Line({
      fits: (bytes) => this.#heldBytes === 0 || this.#heldBytes + bytes <= mostBytes,
      take: (bytes) => {
        this.#heldBytes += bytes;
      },
      free: (bytes) => {
        this.#heldBytes -= bytes;
      },
    });
  }

  /** The bytes that are held now. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Waits for room. One that is larger than all of it goes alone. Null: there was none in time. */
  async take(bytes: number): Promise<Disposable | null> {
    if (bytes <= SMALL_BYTES) return { [Symbol.dispose]: () => {} };
    const late = AbortSignal.timeout(this.#patienceMs);
    try {
      return await this.#line.enter(bytes, late);
    } catch (error) {
      if (error === late.reason) return null;
      throw error;
    }
  }
}

interface StoredPayload {
  bytes: number;
  payload: Buffer | null;
  traceparent: string | null;
}

/** A delivery's payload. "gone": it is no longer kept. "crowded": there is no room for it now. */
export async function openPayload(
  { db }: Pick<Context, "db">,
  room: PayloadRoom,
  deliveryId: string | null,
): Promise<HeldPayload | "gone" | "crowded"> {
  const [row] = await db.prepared<StoredPayload>(sql`select octet_length(payload) as bytes, traceparent,
    case when octet_length(payload) <= ${SMALL_BYTES} then payload end as payload from deliveries where id = ${deliveryId}`);
  if (!row) return "gone";
  const held = await room.take(row.bytes);
  if (!held) return "crowded";
  const bytes = row.payload ?? (await readLarge(db, deliveryId));
  if (bytes) return { bytes, traceparent: row.traceparent, [Symbol.dispose]: () => held[Symbol.dispose]() };
  held[Symbol.dispose]();
  return "gone";
}

async function readLarge(db: Context["db"], deliveryId: string | null): Promise<Buffer | null> {
  if (deliveryId === null) return null;
  const [row] = await db.select({ payload: deliveries.payload }).from(deliveries).where(eq(deliveries.id, deliveryId));
  return row?.payload ?? null;
}
