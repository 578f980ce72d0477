import type { Following } from "./body.ts";
import { HttpError } from "./errors.ts";

/**
 * The rough size of a piece of a body beside its bytes: each is an object with memory of its own. A body that is sent
 * byte by byte would else hold a hundred times what is counted.
 */
const PIECE_BYTES = 256;

/** A whole body. Its bytes count until it is disposed of. */
export interface HeldBody extends Disposable {
  readonly bytes: Buffer;
}

/** A request whose body has still to be read. */
interface Unread {
  body: (maxBytes: number, following: Following) => Promise<Buffer>;
}

/** A body under way. */
interface ArrivingBody {
  heldBytes: number;
  readonly ending: AbortController;
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
  /** Bodies that have arrived in part, the oldest first. */
  readonly #arriving = new Set<ArrivingBody>();

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
  async read(exchange: Unread, maxBytes: number): Promise<HeldBody> {
    const body: ArrivingBody = { heldBytes: 0, ending: new AbortController() };
    const late = () => this.#giveUp(body, new HttpError(408, "The body has not arrived in time"));
    const timer = setTimeout(late, this.#patienceMs);
    try {
      const onPiece = (bytes: number) => this.#take(body, bytes + PIECE_BYTES);
      const bytes = await exchange.body(maxBytes, { onPiece, signal: body.ending.signal });
      return { bytes, [Symbol.dispose]: () => this.#release(body) };
    } catch (error) {
      this.#release(body);
      throw error;
    } finally {
      clearTimeout(timer);
      this.#arriving.delete(body);
    }
  }

  #take(body: ArrivingBody, bytes: number): void {
    this.#arriving.add(body);
    body.heldBytes += bytes;
    this.#heldBytes += bytes;
    for (const oldest of this.#arriving) {
      if (this.#heldBytes <= this.#maxBytes) return;
      this.#giveUp(oldest, new HttpError(503, "There is no room for the body at the moment"));
    }
  }

  #giveUp(body: ArrivingBody, reason: HttpError): void {
    this.#arriving.delete(body);
    this.#release(body);
    body.ending.abort(reason);
  }

  #release(body: ArrivingBody): void {
    this.#heldBytes -= body.heldBytes;
    body.heldBytes = 0;
  }
}
