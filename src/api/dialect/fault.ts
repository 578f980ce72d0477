import type { WantedList } from "../../mirror/store/wanted-lists.ts";
import { LineFullError } from "../../work/callers-line.ts";

/** The service's pages about REST, as its errors name them. */
export const REST_DOCS = "https://docs.github.com/rest";

/** A request that is answered with the service's error body instead of what was asked. */
export class ApiFault extends Error {
  override name = "ApiFault";
  readonly status: number;
  /** The service's `errors`: which field is wrong in what way, or a sentence. */
  readonly errors: readonly FieldFault[] | string | undefined;
  /** The address of a page about the fault, if it is not the operation's own page. */
  readonly documentationUrl: string | undefined;
  readonly headers: Record<string, string>;

  constructor(status: number, message: string, options: FaultOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.status = status;
    this.errors = options.errors;
    this.documentationUrl = options.documentationUrl;
    this.headers = options.headers ?? {};
  }
}

export interface FaultOptions {
  errors?: readonly FieldFault[] | string;
  documentationUrl?: string;
  headers?: Record<string, string>;
  cause?: unknown;
}

export interface FieldFault {
  value?: string;
  resource: string;
  /** The faulty field. Absent: no single field is at fault. */
  field?: string;
  code: "invalid" | "missing" | "missing_field" | "already_exists" | "unprocessable" | "custom";
  message?: string;
}

/** The fault of what does not exist, is not mirrored, or may not be seen. Nobody can tell the three apart. */
export function notFound(): ApiFault {
  return new ApiFault(404, "Not Found");
}

export function invalid(fault: FieldFault): ApiFault {
  return new ApiFault(422, "Validation Failed", { errors: [fault] });
}

/** A value that lists of issues refuse. The service names this page, and not the operation's. */
export function invalidFilter(field: "state" | "milestone", value: string): ApiFault {
  return new ApiFault(422, "Validation Failed", {
    errors: [{ value, resource: "Issue", field, code: "invalid" }],
    documentationUrl: "https://docs.github.com/v3/issues/#list-issues",
  });
}

/** The mirror does not hold what the question is about, and upstream may. */
export class UnmirroredFault extends ApiFault {
  override name = "UnmirroredFault";
}

/**
 * The mirror holds this kind, but not this resource, or not for certain. Upstream is asked as if the kind were not
 * mirrored.
 */
export class NotHeldFault extends ApiFault {
  override name = "NotHeldFault";
}

export function notHeld(): NotHeldFault {
  return new NotHeldFault(404, "Not Found");
}

/** The mirror follows this resource, but has still to read it. */
export class UnreadFault extends NotHeldFault {
  override name = "UnreadFault";
  /** The list that is to be read because it was asked for. Null: what lacks is read anyway. */
  readonly wanted: WantedList | null;

  constructor(wanted: WantedList | null) {
    super(404, "Not Found");
    this.wanted = wanted;
  }
}

export function unread(wanted: WantedList | null = null): UnreadFault {
  return new UnreadFault(wanted);
}

/**
 * The mirror shows the caller no such repository or account. Only upstream can tell whether there is one, so callers
 * who have a token of upstream's are forwarded. All others get this fault.
 */
export class UnshownFault extends NotHeldFault {
  override name = "UnshownFault";
}

export function unshown(): UnshownFault {
  return new UnshownFault(404, "Not Found", {
    headers: hint("This mirror shows you no such repository or account. The service may."),
  });
}

/** The header that explains an answer in our words, where the body keeps the service's. */
export function hint(sentence: string): Record<string, string> {
  return { "X-Tain-Hint": sentence };
}

export function unmirrored(fault: FieldFault): UnmirroredFault {
  return new UnmirroredFault(422, "Validation Failed", { errors: [fault] });
}

/** The body as the service writes it: `status` is a string, `errors` is there only when there are some. */
export function faultBody(fault: ApiFault, documentationUrl: string): string {
  return JSON.stringify({
    message: fault.message,
    ...(fault.errors === undefined ? {} : { errors: fault.errors }),
    documentation_url: fault.documentationUrl ?? documentationUrl,
    status: String(fault.status),
  });
}

const LIMITS_DOCS = "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api";

/** The caller does too much at once, in the service's words. */
function secondaryLimit(retrySeconds: number, options: Pick<FaultOptions, "cause"> = {}): ApiFault {
  return new ApiFault(
    403,
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
    {
      ...options,
      documentationUrl: `${LIMITS_DOCS}#about-secondary-rate-limits`,
      headers: { "Retry-After": String(retrySeconds) },
    },
  );
}

/** All callers together do too much at once. */
export function tooBusy(retrySeconds: number, options: Pick<FaultOptions, "cause"> = {}): ApiFault {
  const headers = { "Retry-After": String(retrySeconds) };
  return new ApiFault(503, "Service Unavailable: the mirror has more to do than it can", { ...options, headers });
}

/** Turns the refusal of a place in a line into ours. @throws ApiFault; the error, if it is another */
export function placeRefused(error: unknown): never {
  if (!(error instanceof LineFullError)) throw error;
  throw error.isOwn ? secondaryLimit(PLACE_SECONDS, { cause: error }) : tooBusy(PLACE_SECONDS, { cause: error });
}

/** About how long it takes until a place is free. */
const PLACE_SECONDS = 5;

/** The caller's quota is spent, in the service's words. @param reset when there is more, in seconds since 1970 */
export function quotaSpent(
  caller: { kind: "user"; userId: number } | { kind: "anonymous"; address: string },
  { requestId, now, reset }: { requestId: string; now: Date; reset: number | undefined },
): ApiFault {
  const time = `${now.toISOString().slice(0, 19).replace("T", " ")} UTC`;
  const message =
    caller.kind === "user"
      ? `API rate limit exceeded for user ID ${caller.userId}. If you reach out to GitHub Support for help, please include the request ID ${requestId} and timestamp ${time}. For more on scraping GitHub and how it may affect your rights, please review our Terms of Service (https://docs.github.com/en/site-policy/github-terms/github-terms-of-service)`
      : `API rate limit exceeded for ${caller.address}. (But here's the good news: Authenticated requests get a higher rate limit. Check out the documentation for more details.)`;
  return new ApiFault(403, message, { documentationUrl: LIMITS_DOCS, headers: retryAt(reset, now) });
}

/** The header that says when to ask again. @param reset in seconds since 1970; undefined: nobody knows */
export function retryAt(reset: number | undefined, now: Date): Record<string, string> {
  if (reset === undefined) return {};
  return { "Retry-After": String(Math.max(1, Math.ceil(reset - now.getTime() / 1_000))) };
}
