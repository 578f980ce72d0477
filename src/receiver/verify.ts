import { isUtf8 } from "node:buffer";
import { createHmac, timingSafeEqual } from "node:crypto";
import { emptyBody } from "./envelope.ts";
import { DeliveryFault } from "./fault.ts";

/**
 * Returns if one of the secrets signed exactly these bytes.
 * @throws DeliveryFault 400 for a body that is empty or not UTF-8, 401 for a wrong signature
 */
export function requireSigned(body: Buffer, signature: string, secrets: readonly string[]): void {
  if (body.length === 0) throw emptyBody();
  if (!isUtf8(body)) throw new DeliveryFault(400, "The body is not UTF-8: JSON and forms are sent in UTF-8");
  const given = Buffer.from(signature.slice("sha256=".length), "hex");
  // Each is tried whether one has matched or not, so that the time taken tells nothing of them.
  const matches = secrets.map((secret) => timingSafeEqual(createHmac("sha256", secret).update(body).digest(), given));
  if (!matches.includes(true)) {
    throw new DeliveryFault(
      401,
      "X-Hub-Signature-256 does not match the body: the hook's secret is none of WEBHOOK_SECRET",
    );
  }
}
