import { type Fields, isObject, type Json, numberOf, objectOf, textOf } from "../../json.ts";
import { parseSent } from "../../sent-json.ts";
import { answerTimes, messageOf } from "./answer.ts";
import { GraphqlTooHeavyError, UpstreamRefusedError, UpstreamUnavailableError } from "./errors.ts";
import type { Judgement } from "./headers.ts";
import { limitOf } from "./headers.ts";
import type { Received } from "./transport.ts";
import type { GraphqlAnswer, GraphqlError } from "./upstream.ts";
import { isSecondaryMessage, isSpentMessage, isTimeoutMessage } from "./wording.ts";

/** Every GraphQL query asks for this along with its subject. */
export const RATE_LIMIT = "rateLimit { cost limit nodeCount remaining resetAt used }";

/** GitHub docs: `nodes` takes a hundred ids. */
export const IDS_A_FIELD = 100;

/** The body of an answer, as upstream sends it. */
type GraphqlBody = { data: Fields | null; errors: GraphqlError[] };

/** Reads the body; null when it is no GraphQL, such as a page of HTML or a REST error. Pure. */
export function parseGraphql(text: string): GraphqlBody | null {
  let body: Json;
  try {
    body = parseSent(text, Number.POSITIVE_INFINITY);
  } catch {
    return null; // The status decides what this means.
  }
  const { data, errors } = objectOf(body);
  if (data === undefined && errors === undefined) return null;
  return { data: isObject(data) ? data : null, errors: Array.isArray(errors) ? errors.map(readError) : [] };
}

function readError(error: Json): GraphqlError {
  const { type, path, message } = objectOf(error);
  return { type: textOf(type), path: Array.isArray(path) ? path.filter(isStep) : [], message: textOf(message) ?? "" };
}

function isStep(step: Json): step is string | number {
  return typeof step === "string" || typeof step === "number";
}

/** An answer's meaning for the quota: GraphQL reports limits with status 200, and its own figures in the data. Pure. */
export function judgeGraphql(received: Received): Judgement {
  const { status, headers, text } = received;
  const body = parseGraphql(text);
  const messages = body ? body.errors.map((error) => error.message).join("\n") : text.slice(0, 2_000);
  if (body?.errors.some(({ type, message }) => isRateLimitType(type) || isSpentMessage(message))) {
    return { limit: { kind: isSecondaryMessage(messages) ? "secondary" : "primary" } };
  }
  if (body && isSecondaryMessage(messages)) return { limit: { kind: "secondary" } };

  const { cost, limit, remaining, resetAt } = objectOf(body?.data?.rateLimit);
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
 * The answer for the caller, or its error. A query that ran out of time costs points each time, so it is not repeated:
 * the caller may ask for half as much. A mutation cannot be halved, and may have taken effect.
 */
export function graphqlAnswer(
  received: Received,
  body: GraphqlBody | null,
  { seenAt, mutates }: { seenAt: Date; mutates: boolean },
): GraphqlAnswer {
  const { status, text } = received;
  const timedOut =
    status === 502 || status === 504 || (body?.errors.some(({ message }) => isTimeoutMessage(message)) ?? false);
  const heavy = body?.errors.find(
    ({ type }) => type === "RESOURCE_LIMITS_EXCEEDED" || type === "MAX_NODE_LIMIT_EXCEEDED",
  );
  if ((timedOut && !mutates) || heavy) {
    // Partial data is dropped, since a null in it may be a field that upstream gave up.
    throw new GraphqlTooHeavyError(heavy?.message ?? `Upstream ran out of time (${status})`);
  }
  if (timedOut || status >= 500 || body?.errors.some(({ type }) => type === "SERVICE_UNAVAILABLE")) {
    throw new UpstreamUnavailableError(`GraphQL: upstream failed with ${status}`, "failed", { status });
  }
  if (status < 200 || status > 299) {
    throw new UpstreamRefusedError(status, messageOf(received), text.slice(0, 2_000));
  }
  if (!body)
    throw new UpstreamUnavailableError("GraphQL: upstream's answer is no whole JSON", "unreadable", { status });
  if (body.data === null) {
    const reason = body.errors.map(({ message }) => message).join("; ");
    throw new UpstreamRefusedError(status, reason || "neither data nor errors", body);
  }
  return {
    data: body.data,
    errors: body.errors,
    seenAt,
    ...answerTimes(received.headers, seenAt),
    cost: numberOf(objectOf(body.data.rateLimit).cost),
  };
}

/** Whether the document changes something, and so must not be sent twice. Pure. */
export function isMutation(document: string): boolean {
  // Strings, comments and nested selections may hold the word without making it a mutation.
  const bare = document.replace(/"""[\s\S]*?"""|"(?:[^"\\\n]|\\.)*"|#[^\n]*/g, " ");
  let depth = 0;
  for (const [token] of bare.matchAll(/[{}]|\bmutation\b/g)) {
    if (token === "mutation" && depth === 0) return true;
    depth += token === "{" ? 1 : token === "}" ? -1 : 0;
  }
  return false;
}
