import { isPostgresDataException, isPostgresOutage } from "../../../db/outage.ts";
import { InboxUnavailableError, UnstorableDeliveryError } from "../../inbox/inbox.ts";
import { InvalidRepresentationError } from "../../mirror/store/observation.ts";
import { QueueUnavailableError } from "../../queues/unavailable.ts";
import {
  CredentialRejectedError,
  GraphqlTooHeavyError,
  NotYetError,
  QuotaSpentError,
  UpstreamRefusedError,
  UpstreamUnavailableError,
} from "../../upstream/protocol/errors.ts";
import { InvalidPayloadError } from "../events/read.ts";
import { AbsentError, InterruptedError, PullsNotShownError, RemovedError } from "./errors.ts";
import type { Cause } from "./problems.ts";

/** The credential may not ask for now. Everything that needs the same credential has to wait. */
export type CredentialWait = QuotaSpentError | CredentialRejectedError;

type FailureClass =
  /** Only the thing at hand is to blame. `isFinal`: another try cannot help. */
  | { kind: "failed"; cause: Cause; isFinal?: true }
  /** What came from outside can never be used, so another try cannot help. */
  | { kind: "unusable" }
  | { kind: "waits"; error: CredentialWait }
  /** An outage, which is not the thing's fault. All work waits until it is over. */
  | { kind: "away"; what: "upstream" | "queues" | "postgres" | "inbox" }
  /** The work was ended from outside, or its repository was removed. */
  | { kind: "ended" };

/**
 * Says what an error means for the work that threw it. Pure. `workers/retry-policy.ts` decides by it whether a job is
 * tried again, and `isolated.ts` whether one thing of several is left alone.
 */
export function classifyFailure(error: unknown): FailureClass {
  if (error instanceof QuotaSpentError || error instanceof CredentialRejectedError) return { kind: "waits", error };
  if (error instanceof NotYetError) return { kind: "failed", cause: "unread" };
  if (error instanceof AbsentError) return { kind: "failed", cause: "absent" };
  if (error instanceof UpstreamRefusedError) return { kind: "failed", cause: "refused" };
  // Trying again may help: a credential that does not cover the repository yet gets the same answer.
  if (
    error instanceof GraphqlTooHeavyError ||
    error instanceof PullsNotShownError ||
    error instanceof InvalidRepresentationError
  )
    return { kind: "failed", cause: "unavailable" };
  // These tests come before the one for Postgres: the cause of such an error may look like an outage of Postgres.
  if (error instanceof UpstreamUnavailableError)
    return error.outage === "unreachable"
      ? { kind: "away", what: "upstream" }
      : { kind: "failed", cause: "unavailable" };
  if (error instanceof InterruptedError || error instanceof RemovedError) return { kind: "ended" };
  if (error instanceof QueueUnavailableError) return { kind: "away", what: "queues" };
  if (error instanceof InboxUnavailableError) return { kind: "away", what: "inbox" };
  if (error instanceof InvalidPayloadError || error instanceof UnstorableDeliveryError) return { kind: "unusable" };
  if (isPostgresOutage(error)) return { kind: "away", what: "postgres" };
  if (isPostgresDataException(error)) return { kind: "failed", cause: "own", isFinal: true };
  if (isAbort(error)) return { kind: "ended" };
  return { kind: "failed", cause: "own" };
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}
