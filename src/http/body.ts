import type { IncomingMessage } from "node:http";
import { HttpError } from "./errors.ts";

const EMPTY = Buffer.alloc(0);

/** Who follows how a body arrives. */
export interface Following {
  /** Is called with the size of each piece, before it is kept. */
  onPiece: (bytes: number) => void;
  /** Ends the reading, with its reason as the error. What was read is let go at once. */
  signal: AbortSignal;
}

/**
 * The exact bytes of the request's body.
 * @throws HttpError 413 when there are more than `maxBytes`, 400 when the sender went away before the end
 */
export function readBody(request: IncomingMessage, maxBytes: number, following?: Following): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // Node.js reads and drops what is left unread once we have answered, so the sender gets to see the answer.
    const tooLarge = () => reject(new HttpError(413, "Request body is too large"));
    if (request.readableEnded) return resolve(EMPTY);
    if (Number(request.headers["content-length"]) > maxBytes) return tooLarge();

    const chunks: Buffer[] = [];
    let size = 0;
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBytes) return settle(tooLarge);
      following?.onPiece(chunk.length);
      if (!following?.signal.aborted) chunks.push(chunk);
    };
    const onAbort = () =>
      settle(() => {
        chunks.length = 0;
        reject(following?.signal.reason);
      });
    const onEnd = () =>
      settle(() => resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, size)));
    const onCut = () => settle(() => reject(new HttpError(400, "The body ended before all of it had arrived")));
    const settle = (outcome: () => void) => {
      request.off("data", onData).off("end", onEnd).off("error", onCut).off("close", onCut);
      following?.signal.removeEventListener("abort", onAbort);
      // An error that follows (the sender resets while we answer) has nothing to tell any more.
      request.on("error", () => {});
      outcome();
    };
    following?.signal.addEventListener("abort", onAbort);
    request.on("data", onData).on("end", onEnd).on("error", onCut).on("close", onCut);
  });
}

const TOKEN = "[\\w!#$%&'*+.^`|~-]+";
const CONTENT_TYPE = new RegExp(`^\\s*${TOKEN}/${TOKEN}\\s*(;|$)`);

/** Whether a Content-Type names a type and a subtype, as RFC 9110 writes them. */
export function isContentType(header: string): boolean {
  return CONTENT_TYPE.test(header);
}

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
