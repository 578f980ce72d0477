import { createHmac } from "node:crypto";
import { sign } from "@octokit/webhooks-methods";
import type { Config } from "../config.ts";
import { VERSION } from "../version.ts";
import type { Target } from "./target.ts";

/** The contents of a request to a target. */
export interface Message {
  event: string;
  /** Upstream's GUID, the same in each attempt. */
  guid: string;
  /** The event's place in the ordered log; null: it is not in the log. */
  eventId: number | null;
  /** Whether the mirror made the event, of a change that no webhook reported. */
  isMade: boolean;
  /** When this attempt begins. */
  sentAt: Date;
  /**
   * The JSON document, byte for byte as upstream sent it. Only the mirror's addresses and an installation may be put
   * in, if the target wants them.
   */
  payload: Buffer;
}

export interface TargetRequest {
  headers: Record<string, string>;
  body: Buffer;
}

const BODY_TYPES = { json: "application/json", form: "application/x-www-form-urlencoded" };

/** The request to a target, with the headers that the service sends (its documentation: "Delivery headers"). */
export async function requestTo(
  { config }: { config: Pick<Config, "upstreamUrl"> },
  target: Pick<Target, "id" | "scope" | "contentType" | "rewriteTo" | "installationId">,
  secret: string | null,
  { event, guid, eventId, isMade, sentAt, payload: original }: Message,
): Promise<TargetRequest> {
  const { id, scope, contentType, rewriteTo, installationId } = target;
  const moved = rewriteTo === null ? original : rewritten(original, { from: config.upstreamUrl, to: rewriteTo });
  const payload = installationId === null ? moved : withInstallation(moved, installationId);
  const body =
    contentType === "json"
      ? payload
      : Buffer.from(new URLSearchParams({ payload: payload.toString("utf8") }).toString());
  return {
    headers: {
      Accept: "*/*",
      "content-type": BODY_TYPES[contentType],
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
      ...(isMade ? { "X-Tain-Made": "true" } : {}),
      ...(secret === null
        ? {}
        : {
            // Consumers older than 2020 check only this header.
            "X-Hub-Signature": `sha1=${createHmac("sha1", secret).update(body).digest("hex")}`,
            // The inbox holds only UTF-8, so the text stands for exactly these bytes.
            "X-Hub-Signature-256": await sign(secret, body.toString("utf8")),
            ...timedSignature(secret, { guid, sentAt, body }),
          }),
    },
    body,
  };
}

/**
 * A signature of the time as well, so that a receiver can refuse a request that somebody recorded and sends again. The
 * service has no such header, and receivers pass over it.
 */
function timedSignature(
  secret: string,
  { guid, sentAt, body }: Pick<Message, "guid" | "sentAt"> & Pick<TargetRequest, "body">,
): Record<string, string> {
  const time = String(Math.floor(sentAt.getTime() / 1_000));
  const signature = createHmac("sha256", secret).update(`${time}.${guid}.`).update(body).digest("hex");
  return { "X-Tain-Timestamp": time, "X-Tain-Signature-256": `sha256=${signature}` };
}

/**
 * A key whose value is an address, and the quote that begins the value. Quotes in people's texts are escaped, so those
 * texts never match.
 */
const ADDRESS = /("(?:[a-z_]*_url|url|href)"\s*:\s*")([^"\\]*)/g;

/** A payload in which addresses of upstream's API lead to the mirror. All other bytes stay. Pure. */
export function rewritten(payload: Buffer, { from, to }: { from: string; to: string }): Buffer {
  const text = payload.toString("utf8");
  const moved = text.replace(ADDRESS, (all, key: string, address: string) => {
    if (!address.startsWith(from)) return all;
    const rest = address.slice(from.length);
    return rest === "" || "/{?#".includes(rest.charAt(0)) ? key + to + rest : all;
  });
  return moved === text ? payload : Buffer.from(moved);
}

/** How upstream names an installation: a short object at the end. */
const INSTALLATION_AT_END = /,"installation":\{[^{}]*\}$/;
const LONGEST_NAMED = 200;

/**
 * A payload that names this installation and no other, as upstream's payloads to an App do. All other bytes stay. Pure.
 */
export function withInstallation(payload: Buffer, id: number): Buffer {
  const end = payload.lastIndexOf("}");
  const tail = payload.subarray(Math.max(0, end - LONGEST_NAMED), end).toString("latin1");
  // Upstream may have named the installation of the mirror's own App, which is taken out.
  const rest = payload.subarray(0, end - (INSTALLATION_AT_END.exec(tail)?.[0].length ?? 0));
  const named = JSON.stringify({ id, node_id: nodeIdOf(id) });
  return Buffer.concat([rest, Buffer.from(`,"installation":${named}}`)]);
}

/** The global id as in the service's own payloads: installations have ids of the old form. */
function nodeIdOf(id: number): string {
  return Buffer.from(`023:IntegrationInstallation${id}`).toString("base64");
}
