import { ConfigError } from "../../config.ts";
import { rootReasonOf, wholeReasonOf } from "../../failure.ts";
import { OriginMismatchError } from "../../sync/following/origin.ts";
import {
  CredentialRejectedError,
  CredentialUnusableError,
  QuotaSpentError,
  UpstreamRefusedError,
  UpstreamUnavailableError,
} from "../../upstream/protocol/errors.ts";
import { CommandError, UsageError } from "./command.ts";

/** A sentence that a person can act on. TAIN_DEBUG=1 shows the stack as well. */
export function sentenceOf(error: unknown, env: NodeJS.ProcessEnv): string {
  if (
    error instanceof UsageError ||
    error instanceof CommandError ||
    error instanceof ConfigError ||
    error instanceof OriginMismatchError
  )
    return error.message;
  if (error instanceof UpstreamUnavailableError)
    return `Upstream does not answer (${wholeReasonOf(error)}): see that UPSTREAM_URL is right and reachable, then try again`;
  if (error instanceof CredentialUnusableError) return error.message;
  if (error instanceof CredentialRejectedError) return `${error.message}: set UPSTREAM_TOKEN to one that is valid`;
  if (error instanceof QuotaSpentError || error instanceof UpstreamRefusedError) return error.message;
  const reason = rootReasonOf(error);
  return env.TAIN_DEBUG ? reason : `${reason} (TAIN_DEBUG=1 shows where)`;
}
