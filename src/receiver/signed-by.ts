import { verify } from "@octokit/webhooks-methods";

export interface SignatureCheck {
  /** `sha256=` and 64 hexadecimal digits. */
  signature: string;
  /** Tried in this order. */
  groups: readonly (readonly string[])[];
}

/**
 * The group whose secret signed exactly this text; -1: none.
 * @param text is not empty, and was well-formed UTF-8: encoded again, it gives exactly the bytes that came
 */
export async function signedBy(text: string, { signature, groups }: SignatureCheck): Promise<number> {
  for (const [at, secrets] of groups.entries()) {
    for (const secret of secrets) if (await verify(secret, text, signature)) return at;
  }
  return -1;
}
