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
    const cut = () => reject(new HttpError(400, "The body ended before all of it had arrived"));
    if (request.readableEnded) return resolve(EMPTY);
    // The sender is gone already, and no event will say so.
    if (request.destroyed) return cut();
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
    const onCut = () => settle(cut);
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
