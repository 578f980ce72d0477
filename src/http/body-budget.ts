import type { RequestBody } from "./body.ts";
import { HttpError } from "./errors.ts";
import type { Exchange } from "./exchange.ts";

/**
 * The rough size of a piece of a body beside its bytes: each is an object with memory of its own. A body that is sent
 * byte by byte would else hold a hundred times what is counted.
 */
const PIECE_BYTES = 256;

/** A whole body. Its bytes count until it is disposed of. */
export class HeldBody implements Disposable {
  readonly bytes: Buffer;
  readonly #release: () => void;

  constructor(bytes: Buffer, release: () => void) {
    this.bytes = bytes;
    this.#release = release;
  }

  [Symbol.dispose](): void {
    this.#release();
  }
}

/** A body under way. */
interface ArrivingBody {
  readonly body: RequestBody;
  /** By the monotonic clock, in milliseconds. */
  readonly beganAt: number;
  heldBytes: number;
}

/**
 * Bounds the memory that bodies of requests take in a process. Bytes that have arrived count until the request is
 * answered. Announced bytes do not count, so an announcement takes nothing from others. When there is no room, the body
 * that has been arriving for the longest is given up: a small one, which comes in one piece, is never that.
 */
export class BodyBudget {
  readonly #maxBytes: number;
  readonly #patienceMs: number;
  #heldBytes = 0;
  /** Bodies that are awaited, the oldest first. */
  readonly #awaited = new Set<ArrivingBody>();
  /** Those of them that have arrived in part, the oldest first. */
  readonly #arriving = new Set<ArrivingBody>();
  /** Goes off when the oldest may be late: one timer for all, since most bodies arrive at once. Null: it is not set. */
  #lateness: NodeJS.Timeout | null = null;

  constructor({ maxBytes, patienceMs }: { maxBytes: number; patienceMs: number }) {
    this.#maxBytes = maxBytes;
    this.#patienceMs = patienceMs;
  }

  /** The bytes that are held now. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /**
   * Reads a body of at most `maxBytes`.
   * @throws HttpError 503 when there is no room for it, 408 when it has not arrived in time, and as `Exchange.body`
   */
  async read(exchange: Exchange, maxBytes: number): Promise<HeldBody> {
    const body = exchange.beginBody(maxBytes, (bytes) => this.#take(arriving, bytes + PIECE_BYTES));
    const arriving: ArrivingBody = { body, beganAt: performance.now(), heldBytes: 0 };
    this.#awaited.add(arriving);
    this.#lateness ??= this.#lookIn(this.#patienceMs);
    try {
      return new HeldBody(await body.whole, () => this.#release(arriving));
    } catch (error) {
      this.#release(arriving);
      throw error;
    } finally {
      this.#awaited.delete(arriving);
      this.#arriving.delete(arriving);
    }
  }

  #lookIn(ms: number): NodeJS.Timeout {
    return setTimeout(() => this.#endLate(), ms).unref();
  }

  #endLate(): void {
    this.#lateness = null;
    for (const oldest of this.#awaited) {
      const leftMs = oldest.beganAt + this.#patienceMs - performance.now();
      if (leftMs > 0) {
        this.#lateness = this.#lookIn(leftMs);
        return;
      }
      this.#giveUp(oldest, new HttpError(408, "The body has not arrived in time"));
    }
  }

  #take(arriving: ArrivingBody, bytes: number): void {
    this.#arriving.add(arriving);
    arriving.heldBytes += bytes;
    this.#heldBytes += bytes;
    for (const oldest of this.#arriving) {
      if (this.#heldBytes <= this.#maxBytes) return;
      this.#giveUp(oldest, new HttpError(503, "There is no room for the body at the moment"));
    }
  }

  #giveUp(arriving: ArrivingBody, reason: HttpError): void {
    this.#arriving.delete(arriving);
    this.#release(arriving);
    arriving.body.stop(reason);
  }

  #release(arriving: ArrivingBody): void {
    this.#heldBytes -= arriving.heldBytes;
    arriving.heldBytes = 0;
  }
}
