import type { IncomingMessage } from "node:http";
import { HttpError } from "./errors.ts";

const EMPTY = Buffer.alloc(0);

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
      if (request.readableEnded) return resolve(EMPTY);
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
