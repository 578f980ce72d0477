import type { Config } from "../../config.ts";
import { isFlat, type Reply } from "../../http/reply.ts";

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
    const headers: string[] = [];
    for (const [name, value] of pairs(reply.headers)) {
      if (name === "Vary" && allowed.length > 0) headers.push(name, `${value}, Origin`);
      else if (!name.startsWith("Access-Control-")) headers.push(name, value);
      else if (isAllowed) headers.push(name, name === "Access-Control-Allow-Origin" ? origin : value);
    }
    return { ...reply, headers };
  };
}

function pairs(headers: Reply["headers"]): [name: string, value: string][] {
  if (!isFlat(headers)) return Object.entries(headers);
  return Array.from({ length: headers.length / 2 }, (_, at) => [headers[at * 2] ?? "", headers[at * 2 + 1] ?? ""]);
}
