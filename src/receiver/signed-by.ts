import { verifyWithFallback } from "@octokit/webhooks-methods";

export interface Signed {
  /** Well-formed UTF-8, and not empty. */
  body: Uint8Array;
  /** `sha256=` and 64 hexadecimal digits. */
  signature: string;
  /** Tried in this order. */
  groups: readonly (readonly string[])[];
}

/** The group whose secret signed exactly these bytes; -1: none. */
export async function signedBy({ body, signature, groups }: Signed): Promise<number> {
  // UTF-8 gives the same bytes when it is decoded and encoded again: the text stands for exactly these.
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("utf8");
  for (const [at, [first, ...others]] of groups.entries()) {
    if (first !== undefined && (await verifyWithFallback(first, text, signature, others))) return at;
  }
  return -1;
}
