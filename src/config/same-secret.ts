import { createHash, timingSafeEqual } from "node:crypto";

/** Whether the given text is the secret. The time does not depend on the text, so timing reveals nothing. */
export function isSameSecret(given: string, secret: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(secret));
}
