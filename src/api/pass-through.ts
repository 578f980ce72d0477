import { UpstreamUnavailableError } from "../upstream/errors.ts";
import type { Received } from "../upstream/transport.ts";
import type { Answer, Call } from "./call.ts";
import { ApiFault } from "./fault.ts";

/** What of a request's headers upstream gets to see: nothing that says where it came from. */
const ASKED = [
  "accept",
  "content-type",
  "if-none-match",
  "if-modified-since",
  "time-zone",
  "x-github-api-version",
  "x-github-next-global-id",
];

/** What of upstream's headers the caller gets to see. Its figures of quota are the caller's there, not those here. */
const ANSWERED = [
  "cache-control",
  "deprecation",
  "etag",
  "last-modified",
  "location",
  "retry-after",
  "sunset",
  "x-accepted-github-permissions",
  "x-accepted-oauth-scopes",
  "x-github-media-type",
  "x-github-sso",
  "x-oauth-scopes",
  "x-poll-interval",
];

const TEXT = /^(text\/|application\/([\w.+-]*\+)?(json|xml)|application\/vnd\.github)/;

/**
 * Asks upstream, with the caller's own token, for what this mirror does not serve. The caller's validators go with it, so
 * what is unchanged costs them nothing there; nothing is kept here. Null: the caller showed no token of upstream's.
 * @throws ApiFault 502 or 504 when upstream gives no answer that can be passed on
 */
export async function passThrough(call: Call): Promise<Answer | null> {
  const { caller, method } = call;
  if (caller.kind !== "user" || caller.by.of !== "upstream" || !isPlain(call.path)) return null;
  const path = `${call.path}${call.query.size > 0 ? `?${call.query}` : ""}`;
  const headers: Record<string, string> = {};
  for (const name of ASKED) {
    const value = [call.headers[name] ?? ""].flat().join(", ");
    if (value !== "") headers[name] = value;
  }
  let received: Received;
  try {
    const body = call.body === "" ? null : call.body;
    received = await caller.by.send({ method: method === "HEAD" ? "GET" : (method as "GET"), path, headers, body });
  } catch (error) {
    if (!(error instanceof UpstreamUnavailableError)) throw error;
    const [status, what] = error.outage === "timed-out" ? [504, "did not answer in time"] : [502, "cannot be reached"];
    throw new ApiFault(status as number, `This mirror does not serve this route, and upstream, which may, ${what}.`, {
      cause: error,
    });
  }
  return answered(call, received);
}

function answered(call: Call, { status, headers, text }: Received): Answer {
  const rebased = (value: string) => value.replaceAll(`${call.ctx.config.upstreamUrl}/`, `${call.api}/`);
  const shown: Record<string, string> = { "X-Tain-Passed-Through": "upstream" };
  for (const name of ANSWERED) {
    const [value] = [headers[name]].flat();
    if (value !== undefined) shown[name] = rebased(value);
  }
  const [contentType] = [headers["content-type"]].flat();
  const hasBody = text !== "" && status !== 204 && status !== 304;
  if (hasBody && !TEXT.test(contentType ?? "")) {
    throw new ApiFault(
      502,
      `Upstream answers with ${contentType ?? "no media type"}; this mirror passes text on alone.`,
    );
  }
  const link = [headers.link].flat()[0];
  return {
    status,
    body: hasBody ? rebased(text) : null,
    contentType: contentType ?? "text/plain",
    headers: shown,
    isUncached: true,
    ...(link === undefined ? {} : { link: rebased(link) }),
  };
}

/** Without dots that would lead out of the API, however they are written. */
function isPlain(path: string): boolean {
  try {
    return !decodeURIComponent(path)
      .split(/[/\\]/)
      .some((segment) => /^\.{1,2}$/.test(segment));
  } catch (error) {
    if (error instanceof URIError) return false;
    throw error;
  }
}
