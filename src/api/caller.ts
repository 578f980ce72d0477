import type { Sight } from "../mirror/sight.ts";
import { ApiFault } from "./fault.ts";
import type { ApiToken, ApiTokens } from "./tokens.ts";

/** Who is asking. */
export type Caller = ({ kind: "user" } & ApiToken) | { kind: "anonymous"; address: string };

/**
 * Knows a caller by `Authorization: Bearer T`, `token T` or Basic with the token as the password.
 * @throws ApiFault 401 for a credential that is none of ours
 */
export async function identifyCaller(
  tokens: ApiTokens,
  { authorization, address }: { authorization: string | undefined; address: string },
): Promise<Caller> {
  if (authorization === undefined) return { kind: "anonymous", address };
  const text = credential(authorization);
  const token = text === null ? null : await tokens.find(text);
  if (!token) throw new ApiFault(401, "Bad credentials", { documentationUrl: "https://docs.github.com/rest" });
  return { kind: "user", ...token };
}

/** What of the mirror a caller sees: our tokens see all of it, others only what is public. */
export function sightOf(caller: Caller): Sight {
  return { privateRepositories: caller.kind === "user" ? "all" : [] };
}

/** The token that the header holds; null for a form that holds none. Pure. */
function credential(authorization: string): string | null {
  const match = /^(\w+) +(\S+) *$/.exec(authorization);
  if (!match) return null;
  const [, scheme = "", text = ""] = match;
  switch (scheme.toLowerCase()) {
    case "bearer":
    case "token":
      return text;
    case "basic": {
      const [user = "", password = ""] = Buffer.from(text, "base64").toString().split(/:(.*)/s);
      // Scripts also put the token in the user's place, with `x-oauth-basic` or nothing as the password.
      return (password === "" || password === "x-oauth-basic" ? user : password) || null;
    }
    default:
      return null;
  }
}
