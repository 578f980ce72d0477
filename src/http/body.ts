import type { IncomingMessage } from "node:http";
import { HttpError } from "./errors.ts";

const EMPTY_BODY = Buffer.alloc(0);

/** A body that is being read. */
export class RequestBody {
  /**
   * Its exact bytes.
   * @throws HttpError 413 when there are more than `maxBytes`, 400 when the sender went away before the end
   */
  readonly whole: Promise<Buffer>;
  #stop: (reason: Error) => void = () => {};

  /** @param onPiece is called with the size of each piece */
  constructor(request: IncomingMessage, maxBytes: number, onPiece: (bytes: number) => void = () => {}) {
    this.whole = new Promise((resolve, reject) => {
      // Node.js reads and drops what is left unread once we have answered, so the sender gets to see the answer.
      const tooLarge = () => new HttpError(413, "Request body is too large");
      const cut = () => new HttpError(400, "The body ended before all of it had arrived");
      if (request.readableEnded) return resolve(EMPTY_BODY);
      // The sender is gone already, and no event will say so.
      if (request.destroyed) return reject(cut());
      if (Number(request.headers["content-length"]) > maxBytes) return reject(tooLarge());

      let chunks: Buffer[] = [];
      let size = 0;
      const onData = (chunk: Buffer) => {
        size += chunk.length;
        if (size > maxBytes) return this.#stop(tooLarge());
        chunks.push(chunk);
        onPiece(chunk.length);
      };
      const onEnd = () => {
        ignore();
        resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, size));
      };
      const onCut = () => this.#stop(cut());
      const ignore = () => {
        request.off("data", onData).off("end", onEnd).off("error", onCut).off("close", onCut);
        // An error that follows (the sender resets while we answer) has nothing to tell any more.
        request.on("error", () => {});
      };
      this.#stop = (reason) => {
        ignore();
        chunks = [];
        reject(reason);
      };
      request.on("data", onData).on("end", onEnd).on("error", onCut).on("close", onCut);
    });
  }

  /** Ends the reading, with this error. What was read is let go at once. */
  stop(reason: Error): void {
    this.#stop(reason);
  }
}

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
   * @throws HttpError 503 when there is no room for it, 408 when it has not arrived in time, and as `RequestBody.whole`
   */
  async read(request: IncomingMessage, maxBytes: number): Promise<HeldBody> {
    const body = new RequestBody(request, maxBytes, (bytes) => this.#take(arriving, bytes + PIECE_BYTES));
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

const TOKEN = "[\\w!#$%&'*+.^`|~-]+";
const CONTENT_TYPE = new RegExp(`^\\s*${TOKEN}/${TOKEN}\\s*(;|$)`);

/** Whether a Content-Type names a type and a subtype, as RFC 9110 writes them. */
export function isContentType(header: string): boolean {
  return CONTENT_TYPE.test(header);
}
