import { hash as digestOf } from "node:crypto";

// Tokens as callers show them. Pure.

/** Names a token that was shown, without telling it: one of ours, or one of upstream's. */
export interface Credential {
  of: "own" | "upstream";
  hash: string;
}

/** The hash of a token, which is all that is kept of it. */
export function hashOf(token: string): string {
  return digestOf("sha256", token);
}

const ID_LENGTH = 12;

/** The id of one of our tokens, by its hash. */
export function idOfHash(hash: string): string {
  return hash.slice(0, ID_LENGTH);
}

/** The token that the header holds; null for a form that holds none. */
export function shownToken(authorization: string): string | null {
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

/** The form of the tokens that `tain token create` makes. */
const OURS = /^tain_[0-9A-Za-z]{40}$/;

export function isOfOurForm(text: string): boolean {
  return OURS.test(text);
}

/** Whether the text begins as our tokens do. Such a text never goes to upstream, even where its form is wrong. */
export function beginsAsOurs(text: string): boolean {
  return text.startsWith("tain_");
}

const GITHUB = "https://api.github.com";

/**
 * The forms of GitHub's tokens: those of the GitHub docs, "Token formats", and two older ones. The older ones are 40
 * hexadecimal digits, with or without `v1.` before them. Tokens of installations may hold a JWT. An App's own JWT has
 * no prefix.
 */
const GITHUBS =
  /^(gh[a-z]_[\w.-]{36,2048}|github_pat_\w{22,255}|(v1\.)?[0-9a-f]{40}|eyJ[\w-]{1,1024}\.[\w-]{1,2048}\.[\w-]{1,1024})$/;

/** What may stand behind `Bearer`, by RFC 6750. */
const ANYONES = /^[\w.~+/-]{1,2048}={0,2}$/;

/** Whether the text may be a token of upstream's. Enterprise servers and other upstreams have forms of their own. */
export function mayBeUpstreams(text: string, upstreamUrl: string): boolean {
  return (upstreamUrl === GITHUB ? GITHUBS : ANYONES).test(text);
}
