import type { Config } from "../../config.ts";
import type { Reply } from "../../http/reply.ts";

/**
 * The answer to a page that asks what it may send: the service's list as it was seen in autumn 2026, and every other
 * request header that is read here or forwarded.
 */
export const PREFLIGHT = {
  "Access-Control-Allow-Headers": [
    ...["Authorization", "Content-Type", "If-Match", "If-Modified-Since", "If-None-Match", "If-Unmodified-Since"],
    ...["Accept-Encoding", "X-GitHub-OTP", "X-Requested-With", "User-Agent", "GraphQL-Features"],
    ...["X-Github-Next-Global-ID", "X-GitHub-Api-Version", "X-Fetch-Nonce", "Copilot-Integration-Id"],
    ...["DD-CLIENT-TOKEN", "X-Client-Application"],
    ...[
      "Accept",
      "Cache-Control",
      "If-Range",
      "Last-Event-ID",
      "Pragma",
      "Prefer",
      "Range",
      "Time-Zone",
      "Traceparent",
    ],
  ].join(", "),
  "Access-Control-Allow-Methods": "GET, POST, PATCH, PUT, DELETE",
  "Access-Control-Max-Age": "86400",
};

/** Makes a reply fit for a page of this origin. The reply it is given lets every web page read it. */
export type CorsRule = (reply: Reply, origin: string | undefined) => Reply;

/**
 * The rule for the allowed origins. Null: every reply stays as it is. Kept pages and their headers are shared, so a
 * reply is never changed in place.
 */
export function corsRule(allowed: Config["corsOrigins"]): CorsRule | null {
  if (allowed === "*") return null;
  return (reply, origin) => {
    const isAllowed = origin !== undefined && allowed.includes(origin);
    const headers: Record<string, string | string[]> = {};
    for (const [name, value] of Object.entries(reply.headers)) {
      if (name === "Vary" && allowed.length > 0) headers[name] = `${value}, Origin`;
      else if (!name.startsWith("Access-Control-")) headers[name] = value;
      else if (isAllowed) headers[name] = name === "Access-Control-Allow-Origin" ? origin : value;
    }
    return { ...reply, headers };
  };
}
