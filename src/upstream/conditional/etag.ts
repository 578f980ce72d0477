import { createHash } from "node:crypto";
import type { UpstreamHeaders } from "../protocol/headers.ts";

/**
 * How upstream makes its ETags. Others published the rule, and upstream does not promise it
 * (https://github.com/bored-engineer/github-conditional-http-transport). The tag is SHA-256 over these request headers'
 * values, each followed by a colon, and then the body before compression. Only headers that the answer's Vary names
 * count. So we can compute a stored page's tag for a token that has never asked for the page.
 */
const COVERED: readonly string[] = ["accept", "authorization", "cookie"];

/** Which request headers an answer's ETag covers, in order, with a blank between them. Pure. */
export function variesBy(answered: UpstreamHeaders, sent: Record<string, string>): string {
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

/** The route that a misprediction is about: `/repositories/7/issues?page=2` → `/repositories/:/issues`. Pure. */
export function routePattern(path: string): string {
  const [route = ""] = path.split(/[?#]/);
  return route.replace(/^\/repos\/[^/]+\/[^/]+/, "/repos/:/:").replace(/\/\d+(?=\/|$)/g, "/:");
}
