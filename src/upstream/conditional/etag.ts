import { createHash } from "node:crypto";
import type { Headers } from "../quota/headers.ts";

/**
 * How upstream makes its ETags, found out and published by others, and promised by nobody
 * (https://github.com/bored-engineer/github-conditional-http-transport): SHA-256 over the values of these request headers,
 * as far as the answer's Vary names them, each followed by a colon, and then the body before it is compressed. So the tag
 * of a page that we hold can be told for a token that has never asked for it.
 */
const COVERED = ["accept", "authorization", "cookie"];

/** Which request headers an answer's ETag covers, in order, with a blank between them. Pure. */
export function variesBy(answered: Headers, sent: Record<string, string>): string {
  const vary = [answered.vary ?? []]
    .flat()
    .join(",")
    .toLowerCase()
    .split(/[\s,]+/);
  return COVERED.filter((name) => vary.includes(name) && sent[name] !== undefined).join(" ");
}

/** The ETag's hexadecimal digits for this body. Pure. */
export function predictEtag(varies: string, sent: Record<string, string>, body: string | Buffer): string {
  const hash = createHash("sha256");
  for (const name of varies.split(" ").filter(Boolean)) hash.update(`${sent[name] ?? ""}:`);
  return hash.update(body).digest("hex");
}

/** Whether upstream's tag, weak (compressed) or strong, is the predicted one. Pure. */
export function isPredicted(etag: string, predicted: string): boolean {
  return etag.replace(/^W\//, "") === `"${predicted}"`;
}

/** What a misprediction says something of: `/repositories/7/issues?page=2` → `/repositories/:/issues`. Pure. */
export function routePattern(path: string): string {
  const [route = ""] = path.split(/[?#]/);
  return route.replace(/^\/repos\/[^/]+\/[^/]+/, "/repos/:/:").replace(/\/\d+(?=\/|$)/g, "/:");
}
