import type { IncomingMessage } from "node:http";
import { DeliveryFault } from "./fault.ts";

/** GitHub docs: payloads are capped at 25 MB; a larger event is not delivered at all. */
export const MAX_BODY_BYTES = 25 * 1024 * 1024;

/**
 * The exact bytes of the request's body.
 * @throws DeliveryFault 413 when there are more than `maxBytes`, 400 when the sender went away before the end
 */
export function readBody(request: IncomingMessage, maxBytes = MAX_BODY_BYTES): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const tooLarge = () =>
      new DeliveryFault(413, `The body is larger than ${maxBytes} bytes, the most an event may have`);
    // Whatever is left unread is read and dropped by Node once we have answered, so the sender gets to see the answer.
    if (Number(request.headers["content-length"]) > maxBytes) return reject(tooLarge());

    const chunks: Buffer[] = [];
    let size = 0;
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBytes) return settle(() => reject(tooLarge()));
      chunks.push(chunk);
    };
    const onEnd = () =>
      settle(() => resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, size)));
    const onCut = () =>
      settle(() => reject(new DeliveryFault(400, "The body ended before all of it had arrived: send it again")));
    const settle = (outcome: () => void) => {
      request.off("data", onData).off("end", onEnd).off("error", onCut).off("close", onCut);
      // An error that follows (the sender resets while we answer) has nothing to tell any more.
      request.on("error", () => {});
      outcome();
    };
    request.on("data", onData).on("end", onEnd).on("error", onCut).on("close", onCut);
  });
}
