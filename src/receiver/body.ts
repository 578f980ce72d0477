import { HttpError } from "../http/errors.ts";
import type { Exchange } from "../http/exchange.ts";
import { DeliveryFault } from "./fault.ts";

/** GitHub docs: payloads are capped at 25 MB; a larger event is not delivered at all. */
export const MAX_BODY_BYTES = 25 * 1024 * 1024;

/** The exact bytes of a delivery's body. @throws DeliveryFault 413, or 400 when the sender went away before the end */
export async function deliveryBody(exchange: Exchange): Promise<Buffer> {
  try {
    return await exchange.body(MAX_BODY_BYTES);
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    throw error.status === 413
      ? new DeliveryFault(413, `The body is larger than ${MAX_BODY_BYTES} bytes, the most an event may have`)
      : new DeliveryFault(400, "The body ended before all of it had arrived: send it again");
  }
}
