import { isUtf8 } from "node:buffer";
import { createHmac, timingSafeEqual } from "node:crypto";
import { DeliveryFault } from "./fault.ts";

/**
 * Returns if one of the secrets signed exactly these bytes.
 * @throws DeliveryFault 400 for a body that is empty or not UTF-8, 401 for a missing, malformed or wrong signature
 */
export function requireSigned(body: Buffer, signature: string | undefined, secrets: readonly string[]): void {
  if (body.length === 0) throw new DeliveryFault(400, "The body is empty: send the event's payload");
  if (!signature) {
    throw new DeliveryFault(
      401,
      "X-Hub-Signature-256 is missing: give the hook a secret, so that its deliveries are signed",
    );
  }
  if (!/^sha256=[0-9a-f]{64}$/.test(signature)) {
    throw new DeliveryFault(
      401,
      "X-Hub-Signature-256 is malformed: it is `sha256=` and 64 lower-case hexadecimal digits",
    );
  }
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
