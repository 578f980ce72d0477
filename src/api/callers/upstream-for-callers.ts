import type { Context } from "../../context.ts";
import type { Fields } from "../../json.ts";
import { MOST_OPENED } from "../../upstream/client/gate.ts";
import { Places } from "../../upstream/client/places.ts";
import { NOT_YET } from "../../upstream/protocol/doubts.ts";
import {
  CredentialRejectedError,
  QuotaSpentError,
  QuotaUnknownError,
  UpstreamRefusedError,
  UpstreamUnavailableError,
} from "../../upstream/protocol/errors.ts";
import type { Conditional, Opened } from "../../upstream/protocol/opened.ts";
import type {
  GraphqlAnswer,
  GraphqlOptions,
  Upstream,
  ReadAnswer as UpstreamAnswer,
} from "../../upstream/protocol/upstream.ts";
import { ApiFault, REST_DOCS } from "../dialect/fault.ts";
import type { Caller } from "./permissions.ts";
import type { CallerQuota, Payer } from "./quota.ts";

/** A caller waits for the answer, so upstream gets no longer than the service itself would take. */
const CALLERS_PATIENCE_MS = 10_000;

/** The share for callers' reads is spent. The message says whose share it is, and when it is full again. */
export class ShareSpentFault extends ApiFault {
  override name = "ShareSpentFault";
}

/**
 * Asks upstream for callers. The API has no other way to the mirror's credentials, so nothing in it can spend their
 * quota unseen.
 *
 * A caller with a token of upstream's reads with it, at the cost of their own quota there. All others read with the
 * mirror's credentials, with the priority of audits. Each such read is first taken out of two shares: the caller's own,
 * and the one of all callers. A free 304 counts too, since it takes a place among the requests.
 */
export class UpstreamForCallers {
  readonly #ctx: Pick<Context, "config" | "upstream" | "clock">;
  readonly #quota: CallerQuota;
  readonly #opened = new Places({ inAll: MOST_OPENED, perName: 2 });
  /** Writes with the mirror's credentials. */
  readonly write: Upstream["write"];

  constructor(ctx: Pick<Context, "config" | "upstream" | "clock">, quota: CallerQuota) {
    this.#ctx = ctx;
    this.#quota = quota;
    this.write = (request, options) => ctx.upstream.write(request, options);
  }

  /** A mutation with the mirror's credentials. */
  mutate(document: string, variables: Fields, options: Pick<GraphqlOptions, "onAnswer">): Promise<GraphqlAnswer> {
    return this.#ctx.upstream.graphql(document, variables, { ...options, priority: "caller" });
  }

  /**
   * Reads one page. Only reads with the mirror's credentials may be conditional. A caller's own token may see a page of
   * its own, so nothing of it is kept.
   * @throws ShareSpentFault before upstream is asked; ApiFault 502, 503 or 504 that says why there is no answer
   */
  async get(caller: Caller, path: string, { conditional = false } = {}): Promise<UpstreamAnswer> {
    if (caller.kind === "user" && caller.by.of === "upstream") return this.#ownGet(caller.by, path);
    await this.#take(caller);
    const signal = AbortSignal.timeout(CALLERS_PATIENCE_MS);
    try {
      return await this.#ctx.upstream.get(path, { priority: "audit", caller: payerName(caller), conditional, signal });
    } catch (error) {
      throw readFault(error, { now: this.#ctx.clock.now(), isLate: signal.aborted, whose: "the mirror's" });
    }
  }

  /**
   * Reads one page with the mirror's credentials, as upstream answers it, while it arrives. Few pages are forwarded at
   * once, and fewer for each caller.
   * @throws as `get`
   */
  async open(
    caller: Caller,
    path: string,
    { headers, gone, conditional }: { headers: Record<string, string>; gone: AbortSignal; conditional?: Conditional },
  ): Promise<Opened> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), CALLERS_PATIENCE_MS);
    const signal = AbortSignal.any([late.signal, gone]);
    let place: Disposable | null = null;
    try {
      place = await this.#opened.enter(payerName(caller), signal);
      await this.#take(caller);
      const asking = {
        priority: "audit",
        caller: payerName(caller),
        headers,
        signal,
        ...(conditional && { conditional }),
      } as const;
      const opened = await this.#ctx.upstream.open(path, asking);
      if (!isTold(opened.status)) {
        opened.body.destroy();
        throw new UpstreamRefusedError(opened.status, "", null);
      }
      const { [Symbol.dispose]: leave } = place;
      opened.body.once("close", leave);
      return opened;
    } catch (error) {
      place?.[Symbol.dispose]();
      throw readFault(error, { now: this.#ctx.clock.now(), isLate: late.signal.aborted, whose: "the mirror's" });
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Reads a page that a write has changed, with the credential that wrote. It costs no share, since it belongs to the
   * write. Writes with the mirror's credentials are few, and the mirror has to show them.
   */
  getWritten(caller: Caller, path: string): Promise<UpstreamAnswer> {
    if (caller.kind === "user" && caller.by.of === "upstream") return caller.by.get(path);
    return this.#ctx.upstream.get(path, { priority: "caller", caller: payerName(caller) });
  }

  /**
   * Asks a query of one point with the mirror's credentials.
   * @throws as `get`, also for an answer that `read` cannot read
   */
  async query<Value>(
    caller: Caller,
    { document, variables, read }: { document: string; variables: Fields; read: (answer: GraphqlAnswer) => Value },
  ): Promise<{ value: Value; seenAt: Date }> {
    await this.#take(caller);
    const signal = AbortSignal.timeout(CALLERS_PATIENCE_MS);
    try {
      const answer = await this.#ctx.upstream.graphql(document, variables, { priority: "audit", signal });
      return { value: read(answer), seenAt: answer.seenAt };
    } catch (error) {
      throw readFault(error, { now: this.#ctx.clock.now(), isLate: signal.aborted, whose: "the mirror's" });
    }
  }

  /**
   * Takes a read out of the caller's share and everyone's, for a later read by the mirror because of the caller's
   * request. False: one of the two is spent, so the mirror must not be made to read.
   */
  async takeDoubt(caller: Caller): Promise<boolean> {
    return (await this.#spentBy(caller)) === null;
  }

  /**
   * The same for a later read because of the caller's write. Callers with a token of ours pay nothing, since their writes
   * have a bound of their own; callers with their own could repeat refused writes at will.
   */
  async takeDoubtOfWrite(caller: Caller): Promise<boolean> {
    return (caller.kind === "user" && caller.by.of === "own") || (await this.takeDoubt(caller));
  }

  async #ownGet(by: { get: (path: string) => Promise<UpstreamAnswer> }, path: string): Promise<UpstreamAnswer> {
    try {
      return await by.get(path);
    } catch (error) {
      throw readFault(error, { now: this.#ctx.clock.now(), isLate: false, whose: "your" });
    }
  }

  async #take(caller: Caller): Promise<void> {
    const spent = await this.#spentBy(caller);
    if (!spent) return;
    const { whose, limit, until } = spent;
    const time = `${until.toISOString().slice(0, 19).replace("T", " ")} UTC`;
    const seconds = Math.max(1, Math.ceil((until.getTime() - this.#ctx.clock.now().getTime()) / 1_000));
    throw new ShareSpentFault(
      403,
      `You have exceeded a secondary rate limit. Upstream had to be asked for this, and ${whose} reads of upstream (${limit} an hour) are spent until ${time}.`,
      {
        documentationUrl:
          "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits",
        headers: { "Retry-After": String(seconds), [NOT_YET]: "true" },
      },
    );
  }

  /** Takes one read out of the caller's share and out of everyone's. Otherwise answers which of the two is spent. */
  async #spentBy(caller: Caller): Promise<{ whose: string; limit: number; until: Date } | null> {
    const { upstreamReads, upstreamReadsPerCaller } = this.#ctx.config;
    const own: Payer = { kind: "user", quotaName: payerName(caller), hourlyLimit: upstreamReadsPerCaller };
    const everyone: Payer = { kind: "user", quotaName: "everyone", hourlyLimit: upstreamReads };
    const taken = await this.#quota.spend(own, "upstream", 1);
    const until = (reset = 0) => new Date(reset * 1_000);
    if (taken.isSpent) {
      const whose = caller.kind === "user" ? "your" : "anonymous callers'";
      return { whose, limit: upstreamReadsPerCaller, until: until(taken.figures?.reset) };
    }
    const shared = await this.#quota.spend(everyone, "upstream", 1);
    if (!shared.isSpent) return null;
    this.#quota.refund(own, "upstream", 1);
    return { whose: "all callers'", limit: upstreamReads, until: until(shared.figures?.reset) };
  }
}

/** Anonymous callers share one caller's share, since they may come from any number of addresses. */
function payerName(caller: Caller): string {
  return caller.kind === "user" ? caller.quotaName : "strangers";
}

/** Whether an answer is about the requested page. Refusals and failures are about the mirror's own credential. */
function isTold(status: number): boolean {
  return status < 400 || [404, 409, 410, 422, 451].includes(status);
}

/** @param whose the owner of the credential that was shown */
export function readFault(
  error: unknown,
  { now, isLate, whose }: { now: Date; isLate: boolean; whose: "the mirror's" | "your" },
): unknown {
  const fault = (status: number, why: string, headers: Record<string, string> = {}) =>
    new ApiFault(status, `Upstream had to be asked for this, and ${why}.`, {
      documentationUrl: REST_DOCS,
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
    return fault(503, why, { "Retry-After": String(seconds), [NOT_YET]: "true" });
  }
  if (error instanceof CredentialRejectedError) return fault(502, `it rejects ${whose} credential`);
  if (error instanceof UpstreamRefusedError) return fault(502, `it refuses with ${error.status}`);
  if (!(error instanceof UpstreamUnavailableError)) return error;
  if (error.outage === "timed-out") return fault(504, "it did not answer in time");
  return fault(502, error.outage === "unreachable" ? "it cannot be reached" : "it gave no answer that can be read");
}
