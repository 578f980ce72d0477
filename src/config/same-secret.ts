import { createHash, timingSafeEqual } from "node:crypto";

/** Whether somebody gave the secret. It takes the same time whatever they gave. */
export function isSameSecret(given: string, secret: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(secret));
}
