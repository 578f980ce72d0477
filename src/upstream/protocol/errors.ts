import type { Json } from "../../json.ts";
/** Upstream will not serve us before `resetAt`. Wait until then; do not guess. Nothing was done on our behalf. */
export class QuotaSpentError extends Error {
  override name = "QuotaSpentError";
  readonly bucket: string;
  /** The moment, by our clock, from which a request may be tried. */
  readonly resetAt: Date;
  constructor(bucket: string, resetAt: Date, options?: ErrorOptions) {
    super(`The ${bucket} quota is spent until ${resetAt.toISOString()}`, options);
    this.bucket = bucket;
    this.resetAt = resetAt;
  }
}

/** Redis, which keeps the budget of all processes, does not answer. So it is unknown what may be spent. */
export class QuotaUnknownError extends QuotaSpentError {
  override name = "QuotaUnknownError";
  constructor(bucket: string, retryAt: Date, options?: ErrorOptions) {
    super(bucket, retryAt, options);
    this.message = `What is left of the ${bucket} quota is not known while Redis does not answer`;
  }
}

/**
 * Why upstream gave no usable answer:
 * - unreachable: no connection came about, so upstream has seen nothing of the request.
 * - interrupted: the connection broke before the whole answer had arrived.
 * - timed-out: no answer, or not the whole of it, in time.
 * - failed: upstream answered with a 5xx status.
 * - unreadable: a complete answer that cannot be read (cut JSON, a page of HTML, too large).
 */
export type OutageKind = "unreachable" | "interrupted" | "timed-out" | "failed" | "unreadable";

/**
 * Upstream could not answer. Trying again later may help; whether a write took effect is unknown unless `unreachable`.
 */
export class UpstreamUnavailableError extends Error {
  override name = "UpstreamUnavailableError";
  readonly outage: OutageKind;
  /** Upstream's status, when there was one. */
  readonly status: number | null;
  constructor(message: string, outage: OutageKind, options: ErrorOptions & { status?: number } = {}) {
    super(message, options);
    this.outage = outage;
    this.status = options.status ?? null;
  }
}

/** Upstream is a mirror that cannot answer yet: it still has to read the resource. */
export class NotYetError extends UpstreamUnavailableError {
  override name = "NotYetError";
}

/** Upstream accepts none of our credentials (401). Until an operator mends them, trying again is of little use. */
export class CredentialRejectedError extends Error {
  override name = "CredentialRejectedError";
  /** The names of the credentials, tokens by fingerprint; empty where only the answer is known. */
  readonly credentials: readonly string[];
  constructor(credentials: readonly string[], options?: ErrorOptions) {
    const isOfTokens = credentials.every((name) => /^[0-9a-f]{16}$/.test(name));
    const names = credentials.length > 0 ? ` (${isOfTokens ? "fingerprints: " : ""}${credentials.join(", ")})` : "";
    super(`Upstream accepts ${isOfTokens ? "no token of UPSTREAM_TOKEN" : "none of our credentials"}${names}`, options);
    this.credentials = credentials;
  }
}

/** One credential cannot be used; the message says why and what to do. Nothing was sent with it. */
export class CredentialUnusableError extends CredentialRejectedError {
  override name = "CredentialUnusableError";
  constructor(credential: string, reason: string, options?: ErrorOptions) {
    super([credential], options);
    this.message = reason;
  }
}

/** Whether upstream leaves the question open: it is away, our quota is spent, or it accepts none of our credentials. */
export function isUnanswered(
  error: unknown,
): error is UpstreamUnavailableError | QuotaSpentError | CredentialRejectedError {
  return (
    error instanceof UpstreamUnavailableError ||
    error instanceof QuotaSpentError ||
    error instanceof CredentialRejectedError
  );
}

/**
 * Upstream understood the request and refuses it (403, 422 …), though there is quota. The same request would be refused
 * again.
 */
export class UpstreamRefusedError extends Error {
  override name = "UpstreamRefusedError";
  readonly status: number;
  /** Upstream's answer: parsed JSON, or its text when it is none. */
  readonly body: Json;
  constructor(status: number, reason: string, body: Json, options?: ErrorOptions) {
    super(`Upstream refuses with ${status}: ${reason}`, options);
    this.status = status;
    this.body = body;
  }
}

/** The question is more than upstream can answer at once. Ask for half as much. */
export class TooHeavyError extends Error {
  override name = "TooHeavyError";
}

/** The GraphQL query is more than upstream can do at once. The cursor stays valid for fewer nodes. */
export class GraphqlTooHeavyError extends TooHeavyError {
  override name = "GraphqlTooHeavyError";
}
