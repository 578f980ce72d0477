import { createHmac } from "node:crypto";
import { sign } from "@octokit/webhooks-methods";
import { VERSION } from "../version.ts";
import type { Target } from "./target.ts";

/** What is told, whatever of. */
export interface Message {
  event: string;
  /** Upstream's, the same in each attempt. */
  guid: string;
  /** Its place in the ordered log; null for what stands in none. */
  eventId: number | null;
  /** The JSON document, byte for byte as upstream sent it. */
  payload: Buffer;
}

export interface TargetRequest {
  headers: Record<string, string>;
  body: Buffer;
}

const TYPES = { json: "application/json", form: "application/x-www-form-urlencoded" };

/** The request that tells a target of something, as the service sends it (its documentation: "Delivery headers"). */
export async function requestTo(
  { id, scope, contentType }: Pick<Target, "id" | "scope" | "contentType">,
  secret: string | null,
  { event, guid, eventId, payload }: Message,
): Promise<TargetRequest> {
  const body =
    contentType === "json"
      ? payload
      : Buffer.from(new URLSearchParams({ payload: payload.toString("utf8") }).toString());
  return {
    headers: {
      Accept: "*/*",
      "content-type": TYPES[contentType],
      "User-Agent": `GitHub-Hookshot/tain-${VERSION}`,
      "X-GitHub-Delivery": guid,
      "X-GitHub-Event": event,
      "X-GitHub-Hook-ID": String(id),
      ...(scope.kind === "everything"
        ? {}
        : {
            "X-GitHub-Hook-Installation-Target-ID": String(scope.id),
            "X-GitHub-Hook-Installation-Target-Type": scope.kind,
          }),
      ...(eventId === null ? {} : { "X-Tain-Event-ID": String(eventId) }),
      ...(secret === null
        ? {}
        : {
            // Consumers older than 2020 know no other.
            "X-Hub-Signature": `sha1=${createHmac("sha1", secret).update(body).digest("hex")}`,
            // The inbox holds nothing but UTF-8, so the text stands for exactly these bytes.
            "X-Hub-Signature-256": await sign(secret, body.toString("utf8")),
          }),
    },
    body,
  };
}
