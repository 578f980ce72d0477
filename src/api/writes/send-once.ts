import { sql } from "../../../db/sql.ts";
import {
  CredentialRejectedError,
  QuotaSpentError,
  QuotaUnknownError,
  UpstreamUnavailableError,
} from "../../upstream/protocol/errors.ts";
import type { RawAnswer, WriteRequest } from "../../upstream/protocol/upstream.ts";
import type { ApiContext, Call } from "../call/call.ts";
import type { User } from "../callers/permissions.ts";
import { ApiFault, REST_DOCS } from "../dialect/fault.ts";
import type { WriteRecord } from "../record/write-record.ts";

/** The caller who writes, and the repository that they write to. */
export interface Writer extends Pick<Call, "requestId"> {
  ctx: ApiContext;
  caller: User;
  /** What the caller asked for: a path with names for its parts, or a mutation. */
  route: string;
  repository: { id: number; fullName: string; htmlUrl: string | null };
}

/**
 * A repository that upstream does not show may be another's by now, or nobody's, and the caller saw the copy of the
 * former one.
 * @throws ApiFault 503 while the repository is paused or gone
 */
export async function requireFollowed({ ctx, repository }: Pick<Writer, "ctx" | "repository">): Promise<void> {
  const lost = await ctx.db.count(sql`
    select from repository_syncs where repository_id = ${repository.id} and state in ('paused', 'gone')`);
  if (lost === 0) return;
  throw new ApiFault(
    503,
    "Upstream does not show this repository at the moment. Nothing was sent, and nothing was queued.",
    {
      documentationUrl: REST_DOCS,
    },
  );
}

/** Nobody knows whether upstream did what was asked. */
export class OutcomeUnknownFault extends ApiFault {
  override name = "OutcomeUnknownFault";
}

/**
 * Sends a write to upstream once and never again. A redirect within the repository says that nothing was done, and
 * where to send the write instead. So one redirect is followed.
 * @throws ApiFault 502 or 503: nothing was done; OutcomeUnknownFault (502, 504): nobody knows
 */
export async function sendWrite(
  { ctx, repository, caller }: Writer,
  { method, path, body }: WriteRequest,
  record: WriteRecord,
): Promise<RawAnswer> {
  // The write is sent with the caller's own token of upstream's. Other callers write as the owner of the mirror's
  // token.
  const own = caller.by.of === "upstream" ? caller.by.write : null;
  const send = async (to: string) => {
    const answer = await (own ?? ctx.upstream.write)({ method, path: to, body });
    record.heard(answer);
    return answer;
  };
  return known(ctx, record, async () => {
    const answer = await send(path);
    const to = [301, 307, 308].includes(answer.status)
      ? locationBelow(answer.headers.location, ctx.config.upstreamUrl)
      : null;
    // A transferred issue's answer points to another repository. The caller has to decide whether to write there.
    const final = to?.startsWith(`/repositories/${repository.id}/`) ? await send(to) : answer;
    return own ? final : rejected(final);
  });
}

/**
 * Runs a request that changes something, and says of its failure what is known, to the caller and in the record.
 * @throws ApiFault as `sendWrite` does
 */
export async function known<T>(
  { clock }: Pick<ApiContext, "clock">,
  record: WriteRecord,
  send: () => Promise<T>,
): Promise<T> {
  try {
    return await send();
  } catch (error) {
    const fault = writeFault(error, clock.now());
    if (fault instanceof ApiFault && !(fault instanceof OutcomeUnknownFault)) record.unsent();
    await record.end();
    throw fault;
  }
}

function locationBelow(location: string | string[] | undefined, base: string): string | null {
  return typeof location === "string" && location.startsWith(`${base}/`) ? location.slice(base.length) : null;
}

/** Replaces a 401, which is about the mirror's credential. Callers would take it for a judgement of their own. */
function rejected(answer: RawAnswer): RawAnswer {
  if (answer.status === 401) throw new CredentialRejectedError([]);
  return answer;
}

function writeFault(error: unknown, now: Date): unknown {
  const options = { documentationUrl: REST_DOCS, cause: error };
  if (error instanceof QuotaSpentError) {
    const seconds = Math.max(1, Math.ceil((error.resetAt.getTime() - now.getTime()) / 1_000));
    const why =
      error instanceof QuotaUnknownError
        ? "What is left of the mirror's quota at upstream is not known at the moment"
        : "The mirror's quota at upstream is spent";
    return new ApiFault(503, `${why}. Nothing was sent, and nothing was queued.`, {
      ...options,
      headers: { "Retry-After": String(seconds) },
    });
  }
  if (error instanceof CredentialRejectedError) {
    const message = "Upstream rejects the mirror's credential. Nothing was done, and nothing was queued.";
    return new ApiFault(502, message, options);
  }
  if (!(error instanceof UpstreamUnavailableError)) return error;
  if (error.outage === "unreachable")
    return new ApiFault(502, "Upstream cannot be reached. Nothing was done, and nothing was queued.", options);
  const [status, what] =
    error.outage === "timed-out"
      ? ([504, "did not answer in time"] as const)
      : ([502, "gave no answer that can be read"] as const);
  return new OutcomeUnknownFault(
    status,
    `Upstream ${what}. Whether it did what was asked is not known; nothing was queued, and it is not sent again.`,
    options,
  );
}
