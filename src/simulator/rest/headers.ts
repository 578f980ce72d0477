import { createHash, randomBytes } from "node:crypto";
import type { QuotaState } from "../quota/quota.ts";
import { hasScopes, isIntegration, type Token } from "../world/tokens.ts";

export const ACCEPTED_PERMISSIONS = "X-Accepted-GitHub-Permissions";

const EXPOSED =
  "ETag, Link, Location, Retry-After, X-GitHub-OTP, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Used, X-RateLimit-Resource, " +
  "X-RateLimit-Reset, X-OAuth-Scopes, X-Accepted-OAuth-Scopes, X-Poll-Interval, X-GitHub-Media-Type, X-GitHub-SSO, X-GitHub-Request-Id, " +
  "Deprecation, Sunset";

export const PLAIN_VARY = "Accept-Encoding, Accept, X-Requested-With";
const SIGNED_VARY = "Accept, Authorization, Cookie, X-GitHub-OTP";

/** On every answer. */
export function commonHeaders(requestId: string): Record<string, string> {
  return {
    Server: "github.com",
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": EXPOSED,
    "Strict-Transport-Security": "max-age=31536000; includeSubdomains; preload",
    "X-Frame-Options": "deny",
    "X-Content-Type-Options": "nosniff",
    "X-XSS-Protection": "0",
    "Referrer-Policy": "origin-when-cross-origin, strict-origin-when-cross-origin",
    "Content-Security-Policy": "default-src 'none'",
    "X-GitHub-Request-Id": requestId,
  };
}

/** In the service's form: `C0FF:2E4B1:1A2B3C:1D2E3F:6566778A`. */
export function newRequestId(): string {
  const hex = randomBytes(14).toString("hex").toUpperCase();
  return [hex.slice(0, 4), hex.slice(4, 9), hex.slice(9, 14), hex.slice(14, 20), hex.slice(20, 28)].join(":");
}

export function quotaHeaders(state: QuotaState, resource: string): Record<string, string> {
  return {
    "X-RateLimit-Limit": String(state.limit),
    "X-RateLimit-Remaining": String(state.remaining),
    "X-RateLimit-Reset": String(state.reset),
    "X-RateLimit-Used": String(state.used),
    "X-RateLimit-Resource": resource,
  };
}

/**
 * Classic and OAuth tokens tell their scopes on every answer, fine-grained ones what the route takes. Apps hear that in
 * refusals alone; whether in a 200 too is unconfirmed.
 */
export function tokenHeaders(
  token: Token | null,
  accepted: { readonly permissions: string | null; readonly scopes: string } | null,
): Record<string, string> {
  if (!token || isIntegration(token)) return {};
  if (token.kind === "fine-grained")
    return accepted?.permissions == null ? {} : { [ACCEPTED_PERMISSIONS]: accepted.permissions };
  // An App's user token has both headers, and they are empty.
  const takes = hasScopes(token) ? (accepted?.scopes ?? "") : "";
  const expires = token.expiresAt === null ? {} : { "github-authentication-token-expiration": expiry(token.expiresAt) };
  return { "X-OAuth-Scopes": token.scopes.join(", "), "X-Accepted-OAuth-Scopes": takes, ...expires };
}

function expiry(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** Answers that may be cached: 200 and 201 with a body. Anonymous ones vary on less. */
export function cacheHeaders(signed: boolean, uncached: boolean): Record<string, string | string[]> {
  const cacheControl = uncached ? "no-cache" : `${signed ? "private" : "public"}, max-age=60, s-maxage=60`;
  return { "Cache-Control": cacheControl, Vary: [signed ? SIGNED_VARY : "Accept", PLAIN_VARY] };
}

export type RequestHeaders = Readonly<Record<string, string | string[] | undefined>>;

/**
 * SHA-256 over the values of `Accept`, `Authorization` and `Cookie`, and then the body before compression. Only headers
 * that are in `Vary` and were sent count, each followed by a colon. So the tag depends on the token, and not on the
 * encoding.
 */
export function etagOf(headers: RequestHeaders, signed: boolean, body: string | Buffer, other = false): string {
  const hash = createHash("sha256");
  // Nobody but the service knows this formula; all else about its tags stays.
  if (other) hash.update("another formula:");
  for (const name of signed ? ["accept", "authorization", "cookie"] : ["accept"]) {
    const value = headers[name];
    if (typeof value === "string") hash.update(`${value}:`);
  }
  return hash.update(body).digest("hex");
}

/**
 * Weak comparison: the strong form of a weak tag is accepted, and the other way about. With an ETag, dates do not
 * count.
 */
export function isFresh(headers: RequestHeaders, etag: string | null, lastModified: number | undefined): boolean {
  const tags = headers["if-none-match"];
  if (typeof tags === "string") {
    if (etag === null) return false;
    return tags.split(",").some((tag) => tag.trim() === "*" || tag.trim().replace(/^W\//, "") === `"${etag}"`);
  }
  const since = headers["if-modified-since"];
  if (typeof since !== "string" || lastModified === undefined) return false;
  const at = Date.parse(since);
  return !Number.isNaN(at) && lastModified <= Math.floor(at / 1_000);
}

export const DEPRECATION: Readonly<Record<string, string>> = {
  Deprecation: "Tue, 10 Mar 2026 00:00:00 GMT",
  Sunset: "Fri, 10 Mar 2028 00:00:00 GMT",
};
export const DEPRECATION_LINK =
  '<https://docs.github.com/en/rest/about-the-rest-api/api-versions>; rel="deprecation"; type="text/html"';
