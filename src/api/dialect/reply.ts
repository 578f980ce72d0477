import type { Config } from "../../config.ts";
import type { Reply } from "../../http/reply.ts";
import type { Pace } from "../../work/pace.ts";
import type { Answer } from "../call.ts";
import type { Bucket, QuotaFigures } from "../callers/quota.ts";
import type { Operation } from "../operation.ts";
import { asBytes, indented } from "./elements.ts";
import { type ApiVersion, type MediaType, mediaTypeHeader } from "./request.ts";

/** Headers from GitHub's docs and recordings. HSTS is left to the proxy that ends TLS for this host. */
const COMMON_HEADERS = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Expose-Headers":
    "ETag, Link, Location, Retry-After, X-GitHub-OTP, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Used, X-RateLimit-Resource, X-RateLimit-Reset, X-OAuth-Scopes, X-Accepted-OAuth-Scopes, X-Poll-Interval, X-GitHub-Media-Type, X-GitHub-SSO, X-GitHub-Request-Id, Deprecation, Sunset, Age, Warning, X-Cache, X-Tain-Confirmed-At, X-Tain-Missing, X-Tain-Passed-Through",
  "X-Frame-Options": "deny",
  "X-Content-Type-Options": "nosniff",
  "X-XSS-Protection": "0",
  "Referrer-Policy": "origin-when-cross-origin, strict-origin-when-cross-origin",
  "Content-Security-Policy": "default-src 'none'",
};

export const VARY = "Accept-Encoding, Accept, X-Requested-With";

export const JSON_TYPE = "application/json; charset=utf-8";

/** The headers of every reply. */
export function commonHeaders(requestId: string): Record<string, string> {
  return { ...COMMON_HEADERS, "X-GitHub-Request-Id": requestId, Vary: VARY };
}

/** A reply with the headers that every reply of the dialect has. */
export function dialectReply(
  requestId: string,
  { status, headers, body }: { status: number; headers: Record<string, string>; body: string | Buffer | null },
): Reply {
  return {
    status,
    headers: { ...commonHeaders(requestId), ...headers },
    body,
    isEncodable: headers["Content-Encoding"] === undefined,
  };
}

const AGENT_MISSING = `Request forbidden by administrative rules. Please make sure your request has a User-Agent header (https://docs.github.com/rest/overview/resources-in-the-rest-api#user-agent-required). Check https://developer.github.com for other possible causes.\n`;

export function agentMissing(requestId: string): Reply {
  const headers = { "Content-Type": "text/html; charset=utf-8" };
  return dialectReply(requestId, { status: 403, headers, body: AGENT_MISSING });
}

/** Agents that people read the answers of. The service indents JSON for them, after the ETag was made. */
const READ_BY_PEOPLE = /curl|Wget|Safari|Firefox/;

/** JSON as this agent gets it: indented for people. */
export async function laidOut(body: string | Buffer, agent: string | undefined, pace: Pace): Promise<string | Buffer> {
  return isLaidOut(agent) ? await indented(asBytes(body), pace) : body;
}

export function isLaidOut(agent: string | undefined): boolean {
  return READ_BY_PEOPLE.test(agent ?? "");
}

/** The headers of a caller's quota, by their names. */
export function quotaHeaders(figures: QuotaFigures | null, resource: Bucket): Record<string, string> {
  if (!figures) return {};
  return {
    "X-RateLimit-Limit": String(figures.limit),
    "X-RateLimit-Remaining": String(figures.remaining),
    "X-RateLimit-Reset": String(figures.reset),
    "X-RateLimit-Used": String(figures.used),
    "X-RateLimit-Resource": resource,
  };
}

export function versionHeaders(version: ApiVersion, media: MediaType): Record<string, string> {
  return { "X-GitHub-Media-Type": mediaTypeHeader(media), "X-GitHub-Api-Version-Selected": version };
}

/** Headers that say which server this is. Clients take it for an enterprise server. */
export function serverHeaders(
  { enterpriseVersion }: Pick<Config, "enterpriseVersion">,
  isEnterprise: boolean,
): Record<string, string> {
  return isEnterprise ? { "X-GitHub-Enterprise-Version": enterpriseVersion } : {};
}

/**
 * The scopes that a classic token or an OAuth App's has, and those that the operation takes.
 * @param scopes as upstream names them; null: the token is of another kind, which has none
 * @param operation null: it is not served here, and what it takes is not known
 */
export function scopeHeaders(scopes: string | null, operation: Operation | null): Record<string, string> {
  if (scopes === null) return {};
  return { "X-OAuth-Scopes": scopes, "X-Accepted-OAuth-Scopes": operation === null ? "" : acceptedScopes(operation) };
}

/** The scopes that an operation accepts, as recorded of the service. They inform, and refuse nobody. */
function acceptedScopes({ docs, run }: Operation): string {
  if (docs.endsWith("/orgs/orgs#get-an-organization")) return "admin:org, read:org, repo, user, write:org";
  return run.of === "service" || /\/rest\/(pulls\/|issues\/comments#)/.test(docs) ? "" : "repo";
}

/** The headers by which an answer says how fresh it is. Pure. RFC 7234 has the numbers of the warnings. */
export function freshnessHeaders(
  { confirmedAt, missing, notFresh }: Pick<Answer, "confirmedAt" | "missing" | "notFresh">,
  { now, staleAfterMs }: { now: Date; staleAfterMs: number },
): Record<string, string> {
  if (confirmedAt === undefined) return {};
  const ageMs = confirmedAt === null ? null : Math.max(0, now.getTime() - confirmedAt.getTime());
  const warnings: string[] = [];
  if (ageMs === null) warnings.push('110 tain "Upstream has not confirmed this yet"');
  else if (ageMs > staleAfterMs) warnings.push('110 tain "Upstream has not confirmed this for a long time"');
  if (notFresh !== undefined) warnings.push(`111 tain "Not refreshed: ${notFresh.replace(/[^ !#-[\]-~]/g, "")}"`);
  return {
    ...(confirmedAt === null || ageMs === null
      ? {}
      : { "X-Tain-Confirmed-At": confirmedAt.toISOString(), Age: String(Math.floor(ageMs / 1_000)) }),
    ...(missing ? { "X-Tain-Missing": missing } : {}),
    ...(warnings.length > 0 ? { Warning: warnings.join(", ") } : {}),
  };
}
