import { isUtf8 } from "node:buffer";
import { verifyWithFallback } from "@octokit/webhooks-methods";
import { DeliveryFault } from "./fault.ts";

/**
 * Answers the body as text when one of the secrets signed exactly these bytes.
 * @throws DeliveryFault 400 for an empty body or one that is not UTF-8, 401 for a signature that is missing, malformed or wrong
 */
export async function verifiedText(
  body: Buffer,
  signature: string | undefined,
  secrets: readonly string[],
): Promise<string> {
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
  // The verifier takes text. Only for UTF-8 does text stand for exactly these bytes.
  if (!isUtf8(body)) throw new DeliveryFault(400, "The body is not UTF-8: JSON and forms are sent in UTF-8");
  const text = body.toString("utf8");
  const [first = "", ...others] = secrets;
  if (!(await verifyWithFallback(first, text, signature, others))) {
    throw new DeliveryFault(
      401,
      "X-Hub-Signature-256 does not match the body: the hook's secret is none of WEBHOOK_SECRET",
    );
  }
  return text;
}
