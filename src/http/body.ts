import type { IncomingMessage } from "node:http";
import { HttpError } from "./errors.ts";

/** A body may come in so many pieces, and in more if they have `LEAST_PIECE_BYTES` on average: each takes 3 µs. */
const MOST_PIECES = 4_000;
const LEAST_PIECE_BYTES = 64;
/** Smaller pieces than this are joined in buffers of this size. */
const KEPT_PIECE_BYTES = 16 * 1024;

/** The body comes in so many small pieces that reading on would cost more than it holds. */
export class TooManyPiecesError extends HttpError {
  override name = "TooManyPiecesError";
}

/** A body that is being read. */
class RequestBody {
  /**
   * Its exact bytes, in pieces.
   * @throws HttpError 413 when there are more than `maxBytes`, 400 when the sender went away before the end, or sends
   *   too many pieces
   */
  readonly whole: Promise<readonly Buffer[]>;
  #stop: (reason: Error) => void = () => {};

  /** @param onGrown is called with the bytes of memory that a piece has taken beyond those before it */
  constructor(request: IncomingMessage, maxBytes: number, onGrown: (bytes: number) => void) {
    this.whole = new Promise((resolve, reject) => {
      // Node.js reads and drops what is left unread once we have answered, so the sender gets to see the answer.
      const tooLarge = () => new HttpError(413, "Request body is too large");
      const cut = () => new HttpError(400, "The body ended before all of it had arrived");
      if (request.readableEnded) return resolve([]);
      // The sender is gone already, and no event will say so.
      if (request.destroyed) return reject(cut());
      const announced = Number(request.headers["content-length"] ?? maxBytes);
      if (announced > maxBytes) return reject(tooLarge());

      const pieces = new BodyPieces();
      const onData = (piece: Buffer) => {
        if (pieces.size + piece.length > maxBytes) return this.#stop(tooLarge());
        if (pieces.isTooFragmented) {
          // The rest is not even read, since reading is what takes long.
          request.pause();
          return this.#stop(new TooManyPiecesError(400, "The body comes in too many small pieces: send larger ones"));
        }
        onGrown(pieces.add(piece));
      };
      const onEnd = () => {
        ignore();
        resolve(pieces.all);
      };
      const onCut = () => this.#stop(cut());
      const ignore = () => {
        request.off("data", onData).off("end", onEnd).off("error", onCut).off("close", onCut);
        // An error that follows (the sender resets while we answer) has nothing to tell any more.
        request.on("error", () => {});
      };
      this.#stop = (reason) => {
        ignore();
        pieces.clear();
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

const NO_ROOM = Buffer.alloc(0);

/**
 * The pieces as they arrived: to join those of 25 MB holds the event loop for 100 ms. Only small ones are joined, since
 * each takes more memory than it has bytes. The only piece of most bodies stays where it arrived.
 */
class BodyPieces {
  readonly all: Buffer[] = [];
  /** The free end of the buffer that the last of them begins. */
  #room = NO_ROOM;
  #count = 0;
  size = 0;

  get isTooFragmented(): boolean {
    return this.#count > MOST_PIECES + this.size / LEAST_PIECE_BYTES;
  }

  /** Answers the bytes of memory that it has taken for it. */
  add(piece: Buffer): number {
    this.#count += 1;
    this.size += piece.length;
    if (this.#count > 1 && piece.length < KEPT_PIECE_BYTES) return this.#join(piece);
    this.#room = NO_ROOM;
    this.all.push(piece);
    return piece.length;
  }

  #join(piece: Buffer): number {
    const isFull = piece.length > this.#room.length;
    if (isFull) this.#room = Buffer.allocUnsafeSlow(KEPT_PIECE_BYTES);
    piece.copy(this.#room);
    const joined = isFull ? this.#room.subarray(0, 0) : this.all.pop();
    const { buffer, byteOffset, length } = joined ?? this.#room;
    this.all.push(Buffer.from(buffer, byteOffset, length + piece.length));
    this.#room = this.#room.subarray(piece.length);
    return isFull ? KEPT_PIECE_BYTES : 0;
  }

  clear(): void {
    this.all.length = 0;
    this.#room = NO_ROOM;
    this.size = 0;
  }
}

/** The rough size of what is kept of a body beside its bytes. */
const BODY_OVERHEAD_BYTES = 256;
/** The part of all memory for bodies that one sender's may take. */
const SHARE_OF_ONE = 1 / 4;

/** A whole body. Its bytes count until it is disposed of. */
export class HeldBody implements Disposable {
  readonly pieces: readonly Buffer[];
  readonly #release: () => void;

  constructor(pieces: readonly Buffer[], release: () => void) {
    this.pieces = pieces;
    this.#release = release;
  }

  get size(): number {
    return this.pieces.reduce((sum, { length }) => sum + length, 0);
  }

  /** The pieces joined, which holds the event loop for as long as they are large. */
  get bytes(): Buffer {
    const [first, ...others] = this.pieces;
    return first && others.length === 0 ? first : Buffer.concat(this.pieces);
  }

  [Symbol.dispose](): void {
    this.#release();
  }
}

/** A body under way. */
interface ArrivingBody {
  readonly body: RequestBody;
  /** Null: the sender is not told apart. */
  readonly sender: string | null;
  /** By the monotonic clock, in milliseconds. */
  readonly beganAt: number;
  heldBytes: number;
}

/**
 * Bounds the memory that bodies of requests take in a process, whichever door they come by. Bytes that have arrived
 * count until the request is answered. Announced bytes do not count, so an announcement takes nothing from others. When
 * there is no room, the body that has been arriving for the longest is given up: a small one, which comes in one piece,
 * is never that. A sender who fills their own share gives up their own bodies, and takes no room from others.
 */
export class BodyBudget {
  readonly #maxBytes: number;
  readonly #patienceMs: number;
  #heldBytes = 0;
  /** Bodies that are awaited, the oldest first. */
  readonly #awaited = new Set<ArrivingBody>();
  /** Those of them that have arrived in part, the oldest first. */
  readonly #arriving = new Set<ArrivingBody>();
  /** The bytes that are held of each sender who is told apart. */
  readonly #heldOf = new Map<string, number>();
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
   * @param sender whose share of the memory it takes. Null: senders are not told apart, as those of signed bodies
   * @throws HttpError 503 when there is no room for it, 408 when it has not arrived in time, and as `RequestBody.whole`
   */
  async read(request: IncomingMessage, maxBytes: number, sender: string | null = null): Promise<HeldBody> {
    const body = new RequestBody(request, maxBytes, (bytes) => this.#take(arriving, bytes));
    const arriving: ArrivingBody = { body, sender, beganAt: performance.now(), heldBytes: 0 };
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

  #take(arriving: ArrivingBody, grownBytes: number): void {
    this.#count(arriving, arriving.heldBytes === 0 ? grownBytes + BODY_OVERHEAD_BYTES : grownBytes);
    this.#arriving.add(arriving);
    const { sender } = arriving;
    if (sender !== null) {
      for (const oldest of this.#arriving) {
        if ((this.#heldOf.get(sender) ?? 0) <= this.#maxBytes * SHARE_OF_ONE) break;
        if (oldest.sender === sender) this.#giveUp(oldest, noRoom("There is no room for more bodies of one sender"));
      }
    }
    for (const oldest of this.#arriving) {
      if (this.#heldBytes <= this.#maxBytes) return;
      this.#giveUp(oldest, noRoom("There is no room for the body"));
    }
  }

  #giveUp(arriving: ArrivingBody, reason: HttpError): void {
    this.#arriving.delete(arriving);
    this.#release(arriving);
    arriving.body.stop(reason);
  }

  #release(arriving: ArrivingBody): void {
    this.#count(arriving, -arriving.heldBytes);
  }

  #count(arriving: ArrivingBody, bytes: number): void {
    arriving.heldBytes += bytes;
    this.#heldBytes += bytes;
    const { sender } = arriving;
    if (sender === null) return;
    const held = (this.#heldOf.get(sender) ?? 0) + bytes;
    if (held === 0) this.#heldOf.delete(sender);
    else this.#heldOf.set(sender, held);
  }
}

function noRoom(why: string): HttpError {
  return new HttpError(503, `${why} at the moment: send it again later`, { headers: { "Retry-After": "5" } });
}

const TOKEN = "[\\w!#$%&'*+.^`|~-]+";
const CONTENT_TYPE = new RegExp(`^\\s*${TOKEN}/${TOKEN}\\s*(;|$)`);

/** Whether a Content-Type names a type and a subtype, as RFC 9110 writes them. */
export function isContentType(header: string): boolean {
  return CONTENT_TYPE.test(header);
}
