import { setTimeout as delay } from "node:timers/promises";
import { sql } from "../../db/sql.ts";
import type { Context } from "../context.ts";

/** Payloads up to this size need no bound of their own: 64 targets with four repositories each make 64 MiB at most. */
const SMALL_BYTES = 256 * 1_024;
/** Larger payloads take at most this much together. Upstream sends none above 25 MB. */
const MOST_BYTES = 64 * 1_024 * 1_024;
/** A cursor is held for 20 seconds, and an attempt may take ten of them. */
const PATIENCE_MS = 5_000;

/** A payload in memory, until it is disposed of. */
export interface HeldPayload extends Disposable {
  bytes: Buffer;
  /** The trace in which the delivery arrived; null: unknown. */
  traceparent: string | null;
}

/** Bounds what large payloads under way hold of a process's memory. Small ones never wait behind them. */
export class PayloadRoom {
  readonly #mostBytes: number;
  readonly #patienceMs: number;
  #heldBytes = 0;
  /** Payloads that wait for room, in order. */
  readonly #waiting: { bytes: number; enter: () => void }[] = [];

  constructor({ mostBytes = MOST_BYTES, patienceMs = PATIENCE_MS } = {}) {
    this.#mostBytes = mostBytes;
    this.#patienceMs = patienceMs;
  }

  /** The bytes that are held now. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Waits for room. A payload that is larger than all the room goes alone. Null: there was no room in time. */
  async take(bytes: number): Promise<Disposable | null> {
    if (bytes <= SMALL_BYTES) return { [Symbol.dispose]: () => {} };
    if (this.#waiting.length > 0 || !this.#fits(bytes)) {
      if (!(await this.#entered(bytes))) return null;
    } else this.#heldBytes += bytes;
    let isHeld = true;
    return {
      [Symbol.dispose]: () => {
        if (!isHeld) return;
        isHeld = false;
        this.#heldBytes -= bytes;
        this.#admit();
      },
    };
  }

  #fits(bytes: number): boolean {
    return this.#heldBytes === 0 || this.#heldBytes + bytes <= this.#mostBytes;
  }

  /** Whether room became free in time. */
  async #entered(bytes: number): Promise<boolean> {
    const ended = new AbortController();
    const entered = Promise.withResolvers<boolean>();
    const one = { bytes, enter: () => entered.resolve(true) };
    this.#waiting.push(one);
    const late = delay(this.#patienceMs, false, { signal: ended.signal }).catch(() => false);
    const isIn = await Promise.race([entered.promise, late]);
    ended.abort();
    if (isIn) return true;
    const at = this.#waiting.indexOf(one);
    // The payload got its room at the same moment.
    if (at < 0) return true;
    this.#waiting.splice(at, 1);
    // The next in line may fit.
    this.#admit();
    return false;
  }

  #admit(): void {
    for (let next = this.#waiting[0]; next && this.#fits(next.bytes); next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#heldBytes += next.bytes;
      next.enter();
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
  const [row] = await db.prepared<{ payload: Buffer }>(sql`select payload from deliveries where id = ${deliveryId}`);
  return row?.payload ?? null;
}
