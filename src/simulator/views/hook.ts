import type { Delivery } from "../world/delivery-log.ts";
import type { Endpoint, Hook } from "../world/records.ts";
import { type Json, repositoryUrl, time, type View } from "./view.ts";

declare global {
  interface JSON {
    /** A text that JSON.stringify writes as it is. */
    rawJSON(text: string): object;
  }
}

/** The secret is never shown: its presence is, as asterisks. */
export function hookConfig(hook: Endpoint): Json {
  return {
    content_type: hook.contentType,
    insecure_ssl: hook.insecureSsl,
    ...(hook.secret === null ? {} : { secret: "********" }),
    url: hook.url,
  };
}

export function hookView(view: View, hook: Hook): Json {
  const url = `${repositoryUrl(view, hook.repository)}/hooks/${hook.id}`;
  return {
    type: "Repository",
    id: hook.id,
    name: "web",
    active: hook.active,
    events: hook.events,
    config: hookConfig(hook),
    updated_at: time(hook.updatedAt),
    created_at: time(hook.createdAt),
    url,
    test_url: `${url}/test`,
    ping_url: `${url}/pings`,
    deliveries_url: `${url}/deliveries`,
    last_response: hook.lastResponse,
  };
}

export function deliveryItem(delivery: Delivery): Json {
  return {
    id: JSON.rawJSON(String(delivery.id)),
    guid: delivery.guid,
    delivered_at: new Date(delivery.deliveredAt).toISOString(),
    redelivery: delivery.redelivery,
    duration: delivery.durationMs / 1_000,
    status: delivery.status,
    status_code: delivery.statusCode,
    event: delivery.event,
    action: delivery.action,
    installation_id: delivery.installationId,
    repository_id: delivery.repositoryId,
    throttled_at: delivery.throttledAt === null ? null : new Date(delivery.throttledAt).toISOString(),
  };
}

export function deliveryView(delivery: Delivery): Json {
  return {
    ...deliveryItem(delivery),
    url: delivery.url,
    request: { headers: delivery.requestHeaders, payload: JSON.parse(delivery.payload()) },
    response: { headers: delivery.responseHeaders, payload: delivery.responsePayload },
  };
}
