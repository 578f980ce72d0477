import { IncomingMessage } from "node:http";

/** How many pieces of bodies are read in a turn of the event loop, of at most 64 KiB each: together less than 1 ms. */
const PIECES_A_TURN = 8;

/** Those who wait to read on, a few of whom do so in each turn of the event loop. */
class ReadingTurns {
  readonly #waiting: (() => void)[] = [];

  wait(readOn: () => void): void {
    if (this.#waiting.push(readOn) === 1) this.#later();
  }

  #later(): void {
    setImmediate(() => {
      for (const readOn of this.#waiting.splice(0, PIECES_A_TURN)) readOn();
      if (this.#waiting.length > 0) this.#later();
    });
  }
}

/**
 * Requests whose bodies are read piece by piece, by turns. Left to itself, Node.js reads up to 2 MB from each connection
 * before it looks after anything else: two hundred bodies that arrive at once would hold the event loop for as many ms.
 */
export function pacedRequests(): typeof IncomingMessage {
  const turns = new ReadingTurns();
  return class extends IncomingMessage {
    #arrivedBytes = 0;
    #isStopped = false;

    /** False has Node.js read no more from the connection until `_read` is called. */
    override push(piece: Buffer | null, encoding?: BufferEncoding): boolean {
      const mayGoOn = super.push(piece, encoding);
      if (piece === null) return mayGoOn;
      this.#arrivedBytes += piece.length;
      this.#isStopped = !(this.#arrivedBytes >= Number(this.headers["content-length"]));
      return mayGoOn && !this.#isStopped;
    }

    override _read(size: number): void {
      if (this.#isStopped) turns.wait(() => super._read(size));
      else super._read(size);
      this.#isStopped = false;
    }

    /** Node.js calls it once an answer was sent whose request has a body that nobody read. Its own does not pause. */
    _dump(): void {
      if (!this.readableEnded) this.resume();
    }
  };
}
