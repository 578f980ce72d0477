import type { Judgement } from "../quota/headers.ts";
import { limitOf } from "../quota/headers.ts";
import { GraphqlTooHeavyError, UpstreamRefusedError, UpstreamUnavailableError } from "./errors.ts";
import type { Received } from "./transport.ts";
import type { GraphqlAnswer, GraphqlError } from "./upstream.ts";
import { isSecondaryMessage, isSpentMessage, isTimeoutMessage } from "./wording.ts";

/** What every GraphQL query asks for along with its subject. */
export const RATE_LIMIT = "rateLimit { cost limit nodeCount remaining resetAt used }";

/** As upstream sends it. */
interface GraphqlBody {
  data: ({ rateLimit?: Partial<Record<string, unknown>> | null } & Record<string, unknown>) | null;
  errors: GraphqlError[];
}

/** Reads the body; null when it is none of GraphQL's, such as a page of HTML or a REST error. Pure. */
export function parseGraphql(text: string): GraphqlBody | null {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return null; // Said by the answer; what it means depends on the status.
  }
  if (typeof body !== "object" || body === null || !("data" in body || "errors" in body)) return null;
  const { data = null, errors = [] } = body as { data?: GraphqlBody["data"]; errors?: unknown };
  return { data, errors: Array.isArray(errors) ? errors.map(readError) : [] };
}

function readError(error: { type?: unknown; path?: unknown; message?: unknown } | null): GraphqlError {
  return {
    type: typeof error?.type === "string" ? error.type : null,
    path: Array.isArray(error?.path) ? error.path : [],
    message: typeof error?.message === "string" ? error.message : "",
  };
}

/** What an answer means for the quota: GraphQL reports limits with status 200, and its own figures in the data. Pure. */
export function judgeGraphql(received: Received): Judgement {
  const { status, headers, text } = received;
  const body = parseGraphql(text);
  const messages = body ? body.errors.map((error) => error.message).join("\n") : text.slice(0, 2_000);
  if (body?.errors.some(({ type, message }) => isRateLimitType(type) || isSpentMessage(message))) {
    return { limit: { kind: isSecondaryMessage(messages) ? "secondary" : "primary" } };
  }
  if (body && isSecondaryMessage(messages)) return { limit: { kind: "secondary" } };

  const { cost, limit, remaining, resetAt } = body?.data?.rateLimit ?? {};
  const reset = Date.parse(String(resetAt)) / 1_000;
  return {
    limit: limitOf(status, headers, messages),
    ...(typeof cost === "number" ? { charged: cost } : {}),
    ...(Number.isInteger(reset)
      ? {
          alsoSeen: {
            date: headers.date,
            "x-ratelimit-limit": String(limit),
            "x-ratelimit-remaining": String(remaining),
            "x-ratelimit-reset": String(reset),
          },
        }
      : {}),
  };
}

function isRateLimitType(type: string | null): boolean {
  return type === "RATE_LIMIT" || type === "RATE_LIMITED";
}

/**
 * The caller's answer, or the error that it is.
 * A time-out costs points each time, so it is never repeated as it stands: half as much may be asked instead. A mutation
 * cannot be halved, and may have taken effect.
 */
export function graphqlAnswer<T>(
  { status, text }: Received,
  body: GraphqlBody | null,
  { seenAt, mutates }: { seenAt: Date; mutates: boolean },
): GraphqlAnswer<T> {
  const timedOut =
    status === 502 || status === 504 || (body?.errors.some(({ message }) => isTimeoutMessage(message)) ?? false);
  const heavy = body?.errors.find(
    ({ type }) => type === "RESOURCE_LIMITS_EXCEEDED" || type === "MAX_NODE_LIMIT_EXCEEDED",
  );
  if ((timedOut && !mutates) || heavy) {
    // Partial data that comes with it is dropped: a null in it may be a fact or a field that was given up.
    throw new GraphqlTooHeavyError(heavy?.message ?? `Upstream ran out of time (${status})`);
  }
  if (timedOut || status >= 500 || body?.errors.some(({ type }) => type === "SERVICE_UNAVAILABLE")) {
    throw new UpstreamUnavailableError(`GraphQL: upstream failed with ${status}`, "failed", { status });
  }
  if (status < 200 || status > 299) {
    throw new UpstreamRefusedError(status, restMessage(text), text.slice(0, 2_000));
  }
  if (!body)
    throw new UpstreamUnavailableError("GraphQL: upstream's answer is no whole JSON", "unreadable", { status });
  if (body.data === null) {
    const reason = body.errors.map(({ message }) => message).join("; ");
    throw new UpstreamRefusedError(status, reason || "neither data nor errors", body);
  }
  const cost = body.data.rateLimit?.cost;
  return { data: body.data as T, errors: body.errors, seenAt, cost: typeof cost === "number" ? cost : null };
}

function restMessage(text: string): string {
  return (
    /"message"\s*:\s*"((?:[^"\\]|\\.)*)"/.exec(text)?.[1] ??
    text
      .replace(/<[^>]*>/g, " ")
      .trim()
      .slice(0, 200)
  );
}

/** Whether the document changes something, and so must not be sent twice. Pure. */
export function isMutation(document: string): boolean {
  // Strings and comments may hold the word; what stands at the document's own level may not.
  const bare = document.replace(/"""[\s\S]*?"""|"(?:[^"\\\n]|\\.)*"|#[^\n]*/g, " ");
  let depth = 0;
  for (const [token] of bare.matchAll(/[{}]|\bmutation\b/g)) {
    if (token === "mutation" && depth === 0) return true;
    depth += token === "{" ? 1 : token === "}" ? -1 : 0;
  }
  return false;
}
