import { isUtf8 } from "node:buffer";
import { verifyWithFallback } from "@octokit/webhooks-methods";
import { emptyBody } from "./envelope.ts";
import { DeliveryFault } from "./fault.ts";

/**
 * Returns if one of the secrets signed exactly these bytes.
 * @throws DeliveryFault 400 for a body that is empty or not UTF-8, 401 for a wrong signature
 */
export async function requireSigned(body: Buffer, signature: string, secrets: readonly string[]): Promise<void> {
  if (body.length === 0) throw emptyBody();
  // What is UTF-8 gives the same bytes again when it is written as such: the text stands for exactly these.
  if (!isUtf8(body)) throw new DeliveryFault(400, "The body is not UTF-8: JSON and forms are sent in UTF-8");
  const [first = "", ...others] = secrets;
  if (await verifyWithFallback(first, body.toString("utf8"), signature, others)) return;
  throw new DeliveryFault(
    401,
    "X-Hub-Signature-256 does not match the body: the hook's secret is none of WEBHOOK_SECRET",
  );
}
