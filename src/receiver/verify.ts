import { isUtf8 } from "node:buffer";
import { verifyWithFallback } from "@octokit/webhooks-methods";
import { type HookTarget, hookSecret } from "../config/hook-secrets.ts";
import { emptyBody } from "./envelope.ts";
import { DeliveryFault } from "./fault.ts";

/**
 * Answers the target whose own secret signed exactly these bytes; null: one of WEBHOOK_SECRET itself did, as of hooks that were
 * made before targets had secrets of their own.
 * @param target whose hook it is, by headers that nobody signs: they only choose which secret is tried
 * @throws DeliveryFault 400 for a body that is empty or not UTF-8, 401 for a wrong signature
 */
export async function requireSigned(
  body: Buffer,
  { signature, target }: { signature: string; target: HookTarget | null },
  secrets: readonly string[],
): Promise<HookTarget | null> {
  if (body.length === 0) throw emptyBody();
  // What is UTF-8 gives the same bytes again when it is written as such: the text stands for exactly these.
  if (!isUtf8(body)) throw new DeliveryFault(400, "The body is not UTF-8: JSON and forms are sent in UTF-8");
  const text = body.toString("utf8");
  const isBy = async ([first = "", ...others]: readonly string[]) =>
    await verifyWithFallback(first, text, signature, others);
  if (target && (await isBy(secrets.map((secret) => hookSecret(secret, target))))) return target;
  if (await isBy(secrets)) return null;
  throw new DeliveryFault(
    401,
    "X-Hub-Signature-256 does not match the body: the hook's secret is none that WEBHOOK_SECRET gives it",
  );
}
