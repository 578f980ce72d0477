import { isPostgresOutage } from "../../../db/outage.ts";
import { QueueUnavailableError } from "../../queues/queues.ts";
import {
  CredentialRejectedError,
  GraphqlTooHeavyError,
  QuotaSpentError,
  UpstreamRefusedError,
  UpstreamUnavailableError,
} from "../../upstream/client/errors.ts";
import { InterruptedError, RemovedError } from "../following/while-mirrored.ts";
import { PullsNotShownError } from "../reads/graphql-pulls.ts";
import type { Cause } from "./problems.ts";

/** Upstream does not show what was asked for. The message says so in words for the one who wished for it. */
export class AbsentError extends Error {
  override name = "AbsentError";
}

/** The credential may not ask, for now. All that the same credential is needed for has to wait. */
export type Waiting = QuotaSpentError | CredentialRejectedError;

type Verdict =
  | { kind: "failed"; cause: Cause }
  | { kind: "waits"; error: Waiting }
  /** A store or the network is away, or the job was ended: the one thing has nothing to do with it. */
  | { kind: "elsewhere" };

/** What an error says of the one thing that was being done. Pure. */
export function verdictOn(error: unknown): Verdict {
  if (error instanceof QuotaSpentError || error instanceof CredentialRejectedError) return { kind: "waits", error };
  if (error instanceof AbsentError) return { kind: "failed", cause: "absent" };
  if (error instanceof UpstreamRefusedError) return { kind: "failed", cause: "refused" };
  // A credential that does not cover the repository yet looks the same, and soon does.
  if (error instanceof GraphqlTooHeavyError || error instanceof PullsNotShownError)
    return { kind: "failed", cause: "unavailable" };
  // Nothing of upstream can be reached. The cause of its other failures may look like an outage of Postgres.
  if (error instanceof UpstreamUnavailableError)
    return error.outage === "unreachable" ? { kind: "elsewhere" } : { kind: "failed", cause: "unavailable" };
  const isEnded = error instanceof InterruptedError || error instanceof RemovedError;
  if (isEnded || error instanceof QueueUnavailableError || isPostgresOutage(error) || isAbort(error))
    return { kind: "elsewhere" };
  return { kind: "failed", cause: "own" };
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}
