import { decoded } from "../../http/router.ts";
import { UpstreamUnavailableError } from "../../upstream/client/errors.ts";
import type { Received } from "../../upstream/client/transport.ts";
import { type Answer, type Call, isRead } from "../call.ts";
import type { User } from "../callers/caller.ts";
import { ApiFault } from "../dialect/fault.ts";
import { beginTrace } from "../trace/trace.ts";
import { readFault } from "./upstream-for-callers.ts";

/** The request's headers that upstream gets to see. None says where the request came from. */
const ASKED = [
  "accept",
  "content-type",
  "if-none-match",
  "if-modified-since",
  "time-zone",
  "x-github-api-version",
  "x-github-next-global-id",
];

/** Upstream's headers that the caller gets to see. Its quota there is shown, since it paid for this. */
const ANSWERED = [
  "Cache-Control",
  "Deprecation",
  "ETag",
  "Last-Modified",
  "Location",
  "Retry-After",
  "Sunset",
  "X-Accepted-GitHub-Permissions",
  "X-Accepted-OAuth-Scopes",
  "X-GitHub-Media-Type",
  "X-GitHub-SSO",
  "X-OAuth-Scopes",
  "X-Poll-Interval",
  "X-RateLimit-Limit",
  "X-RateLimit-Remaining",
  "X-RateLimit-Reset",
  "X-RateLimit-Resource",
  "X-RateLimit-Used",
];

const TEXT = /^(text\/|application\/([\w.+-]*\+)?(json|xml)|application\/vnd\.github)/;

/**
 * Asks upstream, with the caller's own token, for a resource that this mirror does not serve. The caller's validators
 * go along, so an unchanged answer costs them nothing. Nothing is kept here. Null: the caller showed no token of
 * upstream's.
 * @throws ApiFault 502 or 504 when upstream gives no answer that can be passed on
 */
export async function passThrough(call: Call): Promise<Answer | null> {
  const { caller, method } = call;
  if (caller.kind !== "user" || caller.by.of !== "upstream" || !isOfDialect(call.path)) return null;
  const path = `${call.path}${call.query.size > 0 ? `?${call.query}` : ""}`;
  const traced = { method, route: null, path: call.path, repositoryId: null };
  const trace = isRead(method) ? null : await beginTrace({ ...call, caller }, traced);
  try {
    const received = await forwarded(call, caller.by, path);
    trace?.heard(received);
    return answered(call, received);
  } catch (error) {
    if (!(error instanceof UpstreamUnavailableError)) throw error;
    if (error.outage === "unreachable") trace?.unsent();
    throw unanswered(error, method);
  } finally {
    await trace?.end();
  }
}

type OfUpstream = Extract<User["by"], { of: "upstream" }>;

/**
 * What upstream shows a caller by their own token of a resource that is mirrored, or why it does not. Nothing is kept.
 * @throws ApiFault 502 or 504 when upstream gives no answer that can be passed on
 */
export async function shownByUpstream(
  call: Call,
  by: OfUpstream,
  path: string,
): Promise<{ shown: Answer } | { notFresh: string; status: number }> {
  const { ctx } = call;
  const confirmedAt = ctx.clock.now();
  try {
    const received = await forwarded(call, by, path);
    const { status } = received;
    const isShown = (status >= 200 && status <= 299) || status === 304;
    if (isShown) {
      const answer = answered(call, received);
      // Of the mirror's own routes callers are shown what is left here: some stop at the first 0 that they see.
      const headers = Object.entries(answer.headers ?? {}).filter(([name]) => !name.startsWith("X-RateLimit-"));
      return { shown: { ...answer, headers: Object.fromEntries(headers), confirmedAt } };
    }
    const isMoved = status >= 300 && status <= 399;
    return { notFresh: isMoved ? "upstream says that it has moved" : `upstream answers ${status}`, status };
  } catch (error) {
    throw readFault(error, { now: ctx.clock.now(), isLate: false, whose: "your" });
  }
}

async function forwarded(call: Call, by: OfUpstream, path: string): Promise<Received> {
  const { method } = call;
  const headers: Record<string, string> = {};
  for (const name of ASKED) {
    const value = [call.headers[name] ?? ""].flat().join(", ");
    if (value !== "") headers[name] = value;
  }
  const body = call.body === "" ? null : call.body;
  return await by.forward({ method: method === "HEAD" ? "GET" : method, path, headers, body });
}

function unanswered(error: UpstreamUnavailableError, method: string): ApiFault {
  const what =
    error.outage === "unreachable"
      ? "cannot be reached"
      : error.outage === "timed-out"
        ? "did not answer in time"
        : "gave no answer that can be read";
  const isOpen = !isRead(method) && error.outage !== "unreachable";
  const rest = isOpen ? " Whether it did what was asked is not known; it is not sent again." : "";
  const message = `This mirror does not serve this route, and upstream, which may, ${what}.${rest}`;
  return new ApiFault(error.outage === "timed-out" ? 504 : 502, message, { cause: error });
}

function answered(call: Call, { status, headers, text }: Received): Answer {
  const rebased = (value: string) => value.replaceAll(`${call.ctx.config.upstreamUrl}/`, `${call.api}/`);
  const shown: Record<string, string> = { "X-Tain-Passed-Through": "upstream" };
  for (const name of ANSWERED) {
    const [value] = [headers[name.toLowerCase()]].flat();
    if (value !== undefined) shown[name] = rebased(value);
  }
  const [contentType] = [headers["content-type"]].flat();
  const hasBody = text !== "" && status !== 204 && status !== 304;
  if (hasBody && !TEXT.test(contentType ?? "")) {
    const what = contentType ?? "no media type";
    throw new ApiFault(502, `Upstream answers with ${what}; this mirror passes text on alone.`);
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

/** Below `/-/` another Tain has its operator's pages, open to requests from its own machine. */
function isOfDialect(path: string): boolean {
  return !/^[/\\]*-(\/|$)/.test(decoded(path) ?? "/-/");
}
