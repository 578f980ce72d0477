/** How the service checks that a call comes from an App: a JWT, signed with RS256 by one of the App's keys. */
import { type KeyObject, verify } from "node:crypto";
import type { App, Apps } from "../world/apps.ts";
import { isJsonObject } from "../world/json.ts";
import { Refusal } from "../world/refusal.ts";

// GitHub docs: "Generating a JSON Web Token (JWT) for a GitHub App".
const MAX_AHEAD_SECONDS = 600;

export const UNDECODABLE = "A JSON web token could not be decoded";

/** Whether a credential is a JWT and no token: tokens have a prefix, a JWT begins with an encoded `{"`. */
export function looksLikeJwt(credential: string): boolean {
  return /^eyJ[\w-]*\./.test(credential);
}

/** The App that signed the JWT, valid at `now` (epoch milliseconds); or the refusal, with what is wrong. */
export function appOfJwt(apps: Apps, jwt: string, now: number): App | Refusal {
  const [head = "", body = "", signature = "", ...more] = jwt.split(".");
  const header = decoded(head);
  const claims = decoded(body);
  if (!header || !claims || more.length > 0 || header.alg !== "RS256") return new Refusal(401, UNDECODABLE);
  const { iss, iat, exp } = claims;
  if (typeof iss !== "string" && !isInteger(iss)) return mustBe("Issuer", "iss", "an Integer");
  const app = apps.byIssuer(iss);
  if (!app) {
    return /^\d+$/.test(String(iss))
      ? new Refusal(404, "Integration not found")
      : mustBe("Issuer", "iss", "an Integer");
  }
  const signed = Buffer.from(`${head}.${body}`);
  if (!app.keys.some((key) => verified(key, signed, signature))) return new Refusal(401, UNDECODABLE);
  const seconds = Math.floor(now / 1_000);
  if (typeof exp !== "number" || exp <= seconds) {
    const what = "a numeric value representing the future time at which the assertion expires";
    return mustBe("Expiration time", "exp", what);
  }
  if (exp > seconds + MAX_AHEAD_SECONDS)
    return new Refusal(401, "'Expiration time' claim ('exp') is too far in the future");
  if (!isInteger(iat) || iat > seconds)
    return mustBe("Issued at", "iat", "an Integer representing the time that the assertion was issued");
  return app;
}

function isInteger(value: unknown): value is number {
  return Number.isInteger(value);
}

function mustBe(claim: string, name: string, what: string): Refusal {
  return new Refusal(401, `'${claim}' claim ('${name}') must be ${what}`);
}

function verified(key: KeyObject, signed: Buffer, signature: string): boolean {
  return verify("RSA-SHA256", signed, key, Buffer.from(signature, "base64url"));
}

function decoded(part: string): Readonly<Record<string, unknown>> | null {
  try {
    const json: unknown = JSON.parse(Buffer.from(part, "base64url").toString("utf8"));
    return isJsonObject(json) ? json : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
