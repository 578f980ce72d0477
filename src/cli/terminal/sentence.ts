import { isPostgresOutage } from "../../../db/outage.ts";
import { ConfigError } from "../../config.ts";
import { codeOf, rootReasonOf, wholeReasonOf } from "../../failure.ts";
import { QueueUnavailableError } from "../../queues/unavailable.ts";
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
  if (error instanceof QueueUnavailableError)
    return `${error.message}: see that REDIS_URL is right and the server runs`;
  const reason = rootReasonOf(error);
  if (isPostgresOutage(error) || isPostgresStrange(error))
    return `Postgres cannot be used (${reason}): see that DATABASE_URL is right and the server runs`;
  return env.TAIN_DEBUG ? reason : `${reason} (TAIN_DEBUG=1 shows where)`;
}

/** Whether Postgres is there and lets nobody in by this address: another password, role or database is needed. */
function isPostgresStrange(error: unknown): boolean {
  const code = codeOf(error) ?? (error instanceof Error ? codeOf(error.cause) : undefined);
  return code !== undefined && /^(28\w{3}|3D000)$/.test(code);
}
