import { UpstreamRefusedError } from "../../upstream/client/errors.ts";

/** Upstream may refuse one repository's hooks: that is said of this repository, and the others go on. */
export async function orRefusal<T>(
  ask: () => Promise<T>,
): Promise<{ found: T } | { refusal: string; error: UpstreamRefusedError }> {
  try {
    return { found: await ask() };
  } catch (error) {
    if (!(error instanceof UpstreamRefusedError)) throw error;
    return { refusal: error.message, error };
  }
}
