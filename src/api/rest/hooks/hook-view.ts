import type { Sent, SentInFull } from "../../../events/sent.ts";
import type { Target } from "../../../events/target.ts";
import type { Fields } from "../../../json.ts";
import type { HookPlace } from "./hook-place.ts";

type LastSent = Pick<Sent, "status" | "statusCode"> | undefined;

/** A hook in the service's words and order. Pure. */
export function hookView(target: Target, place: HookPlace, last: LastSent): Fields {
  const { id, events } = target;
  const url = `${place.address}/${id}`;
  // The owner of a hook or the mirror may have turned it off. The owner turns it on again in either case.
  const active = target.active && target.disabledAt === null;
  const [updated_at, created_at] = [timeOf(target.updatedAt), timeOf(target.createdAt)];
  const deliveries = { ping_url: `${url}/pings`, deliveries_url: `${url}/deliveries` };
  const head = { type: place.login === null ? "Repository" : "Organization", id, name: "web", active };
  const shown = { ...head, events: [...events], config: configView(target), updated_at, created_at, url };
  return place.login !== null
    ? { ...shown, ...deliveries }
    : { ...shown, test_url: `${url}/test`, ...deliveries, last_response: lastResponse(target, last) };
}

/** The secret itself is shown to nobody. Pure. */
export function configView({ contentType, insecureSsl, rewriteTo, sealedSecret, url }: Target): Fields {
  return {
    content_type: contentType,
    insecure_ssl: insecureSsl ? "1" : "0",
    ...(rewriteTo === null ? {} : { rewrite_urls: "1" }),
    ...(sealedSecret === null ? {} : { secret: "********" }),
    url,
  };
}

/** The last response. It says what is wrong, for which the service has a page of its own. */
function lastResponse({ problem, pausedWhy }: Target, last: LastSent): Fields {
  if (pausedWhy !== null) return { code: last?.statusCode ?? null, status: "paused", message: pausedWhy };
  if (!last) return { code: null, status: "unused", message: null };
  const isGood = last.statusCode >= 200 && last.statusCode < 300;
  if (problem !== null) return { code: last.statusCode, status: "disabled", message: problem };
  return { code: last.statusCode, status: isGood ? "active" : null, message: last.status };
}

export function sentView(sent: Sent): Fields {
  const { id, guid, redelivery, status, event, action } = sent;
  return {
    id,
    guid,
    delivered_at: sent.deliveredAt.toISOString(),
    redelivery,
    duration: sent.durationMs / 1_000,
    status,
    status_code: sent.statusCode,
    event,
    action,
    installation_id: null,
    repository_id: sent.repositoryId,
    url: "",
    throttled_at: null,
  };
}

/** A delivery in full, as text: the document stays byte for byte what was sent. Pure. */
export function sentInFullView(sent: SentInFull): string {
  const { url, requestHeaders, responseHeaders, responseBody, payload } = sent;
  const outer = JSON.stringify({ ...sentView(sent), url }).slice(0, -1);
  const response = JSON.stringify({ headers: responseHeaders, payload: responseBody });
  const request = `{"headers":${JSON.stringify(requestHeaders)},"payload":${payload?.toString("utf8") ?? "null"}}`;
  return `${outer},"request":${request},"response":${response}}`;
}

/** A time to the second, as the service writes it. */
function timeOf(at: Date): string {
  return `${at.toISOString().slice(0, 19)}Z`;
}
