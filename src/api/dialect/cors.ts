import type { Config } from "../../config.ts";
import { linesOf, type Reply } from "../../http/reply.ts";

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
    const headers: Record<string, string[]> = {};
    const add = (name: string, value: string) => {
      headers[name] = [...(headers[name] ?? []), value];
    };
    for (const [name, value] of linesOf(reply.headers).pairs) {
      if (name === "Vary" && allowed.length > 0) add(name, `${value}, Origin`);
      else if (!name.startsWith("Access-Control-")) add(name, value);
      else if (isAllowed) add(name, name === "Access-Control-Allow-Origin" ? origin : value);
    }
    return { ...reply, headers };
  };
}
