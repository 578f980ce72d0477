import { createHash } from "node:crypto";

/** One token for upstream. Only its fingerprint is ever stored, shown or logged. */
export interface Credential {
  fingerprint: string;
  /** The value of the Authorization header. */
  authorization: string;
}

/**
 * The tokens of `UPSTREAM_TOKEN`, each once, by fingerprint. Pure.
 * Which of them a request goes to is decided with the lease, in one step (`Quota.lease`): the one with the most left
 * of those that are neither blocked nor rejected.
 */
export function parseCredentials(tokens: readonly string[]): ReadonlyMap<string, Credential> {
  return new Map(
    tokens.map((token) => [
      fingerprint(token),
      { fingerprint: fingerprint(token), authorization: `Bearer ${token}` } satisfies Credential,
    ]),
  );
}

/** Names a token without telling it: the first 16 hex digits of its SHA-256. */
export function fingerprint(token: string): string {
  return createHash("sha256").update(token).digest("hex").slice(0, 16);
}
