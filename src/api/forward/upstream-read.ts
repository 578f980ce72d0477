import { mergeObserved } from "../../mirror/store/merge.ts";
import { joinObserved, observe, type Sighting } from "../../mirror/store/observation.ts";
import type { Kind } from "../../mirror/store/resource.ts";
import {
  CredentialRejectedError,
  QuotaSpentError,
  QuotaUnknownError,
  UpstreamRefusedError,
  UpstreamUnavailableError,
} from "../../upstream/client/errors.ts";
import type { Answer as UpstreamAnswer } from "../../upstream/client/upstream.ts";
import { saveValidator } from "../../upstream/conditional/validators.ts";
import type { ApiContext, Call } from "../call.ts";
import { ApiFault } from "../dialect/fault.ts";

/** A caller waits for the answer: no longer than the service itself would take. */
const PATIENCE_MS = 10_000;

/**
 * Asks upstream while a caller waits, conditionally where the mirror has the page. Anonymous callers have the priority
 * of audits, which leaves part of the quota to others.
 * @throws ApiFault 502, 503 or 504 that says why there is no answer
 */
export async function askUpstream(
  { ctx: { upstream, clock }, caller }: Pick<Call, "ctx" | "caller">,
  path: string,
  { conditional = false } = {},
): Promise<UpstreamAnswer> {
  const signal = AbortSignal.timeout(PATIENCE_MS);
  const priority = caller.kind === "user" ? "caller" : "audit";
  try {
    return await upstream.get(path, { priority, conditional, signal });
  } catch (error) {
    throw readFault(error, { now: clock.now(), isLate: signal.aborted });
  }
}

function readFault(error: unknown, { now, isLate }: { now: Date; isLate: boolean }): unknown {
  const fault = (status: number, why: string, headers: Record<string, string> = {}) =>
    new ApiFault(status, `Upstream had to be asked for this, and ${why}.`, {
      documentationUrl: "https://docs.github.com/rest",
      headers,
      cause: error,
    });
  if (isLate) return fault(504, "did not answer in time");
  if (error instanceof QuotaSpentError) {
    const seconds = Math.max(1, Math.ceil((error.resetAt.getTime() - now.getTime()) / 1_000));
    const why =
      error instanceof QuotaUnknownError
        ? "nobody knows at the moment what is left of the mirror's quota there"
        : "the mirror's quota there is spent";
    return fault(503, why, { "Retry-After": String(seconds) });
  }
  if (error instanceof CredentialRejectedError) return fault(502, "it rejects the mirror's credential");
  if (error instanceof UpstreamRefusedError) return fault(502, `it refuses with ${error.status}`);
  if (!(error instanceof UpstreamUnavailableError)) return error;
  if (error.outage === "timed-out") return fault(504, "it did not answer in time");
  return fault(502, error.outage === "unreachable" ? "it cannot be reached" : "it gave no answer that can be read");
}

/** Merges what upstream showed: one resource or a list of them. The validator is kept with it. */
export async function storeShown(
  { db, config }: Pick<ApiContext, "db" | "config">,
  kind: Kind,
  { body, seenAt, validator }: Pick<Extract<UpstreamAnswer, { kind: "ok" }>, "body" | "seenAt" | "validator">,
  repository?: Sighting["repository"],
): Promise<void> {
  const isSingle = !Array.isArray(body) && ["repository", "issue", "pull_request"].includes(kind);
  const at = { api: config.upstreamUrl, seenAt, read: true, isSingle, ...(repository ? { repository } : {}) };
  const observed = joinObserved((Array.isArray(body) ? body : [body]).map((one) => observe(kind, one, at)));
  await db.transaction(async (tx) => {
    const merged = await mergeObserved(tx, observed);
    // A validator says that the mirror has the page. If a newer delivery contradicts the page, the mirror does not have
    // it.
    if (validator && merged.every(({ outcome }) => outcome !== "tied")) await saveValidator(tx, validator);
  });
}
