import { createHmac } from "node:crypto";
import { sign } from "@octokit/webhooks-methods";
import type { TargetFormat } from "../../db/schema/states.ts";
import type { Config } from "../config.ts";
import { type Fields, objectOf, textOf } from "../json.ts";
import { VERSION } from "../version.ts";
import { cloudEventOf } from "./formats/cloud-event.ts";
import { discordMessage } from "./formats/discord.ts";
import { noticeOf } from "./formats/notice.ts";
import { slackMessage } from "./formats/slack.ts";
import { teamsMessage } from "./formats/teams.ts";
import type { Target } from "./target.ts";

/** The contents of a request to a target. */
export interface Message {
  event: string;
  action: string | null;
  /** Upstream's GUID, the same in each attempt. */
  guid: string;
  /** The event's place in the ordered log; null: it is not in the log. */
  eventId: number | null;
  /** Whether the mirror made the event, of a change that no webhook reported. */
  isMade: boolean;
  /** When the event, or what was asked for, was received. */
  receivedAt: Date;
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

/**
 * The request to a target, with the headers that the service sends (its documentation: "Delivery headers"). Chats get
 * none of these, since nothing there reads them.
 */
export async function requestTo(
  ctx: { config: Pick<Config, "upstreamUrl"> },
  target: Pick<Target, "id" | "scope" | "contentType" | "format" | "rewriteTo" | "installationId">,
  secret: string | null,
  message: Message,
): Promise<TargetRequest> {
  const { id, scope, contentType, format } = target;
  const { event, guid, eventId, isMade, sentAt } = message;
  const payload = payloadFor(ctx, target, message);
  const { body, type } =
    format !== null
      ? toldAs(format, payload, message, target.rewriteTo ?? ctx.config.upstreamUrl)
      : contentType === "json"
        ? { body: payload, type: "application/json" }
        : {
            body: Buffer.from(new URLSearchParams({ payload: payload.toString("utf8") }).toString()),
            type: "application/x-www-form-urlencoded",
          };
  const common = { Accept: "*/*", "content-type": type, "User-Agent": `GitHub-Hookshot/tain-${VERSION}` };
  if (isChat(format)) return { headers: common, body };
  return {
    headers: {
      ...common,
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

/** Whether a format is a message for people. */
export function isChat(format: TargetFormat | null): boolean {
  return format !== null && format !== "cloudevents";
}

/** The payload for a target that does not want it as upstream sent it. Pure. */
function payloadFor(
  { config }: { config: Pick<Config, "upstreamUrl"> },
  { rewriteTo, installationId }: Pick<Target, "rewriteTo" | "installationId">,
  { payload }: Pick<Message, "payload">,
): Buffer {
  const moved = rewriteTo === null ? payload : rewritten(payload, { from: config.upstreamUrl, to: rewriteTo });
  return installationId === null ? moved : withInstallation(moved, installationId);
}

/** Longer payloads would hold the event loop while they are parsed. No issue or comment is so long. */
const MOST_PARSED_BYTES = 1_000_000;

/** A payload's document. Null: it is too long to be read. Pure. */
export function parsedPayload(payload: Buffer): Fields | null {
  return payload.length > MOST_PARSED_BYTES ? null : objectOf(JSON.parse(payload.toString("utf8")));
}

/** An event in a format of others. Pure. @param api the address by which the target knows the API */
function toldAs(format: TargetFormat, payload: Buffer, message: Message, api: string): { body: Buffer; type: string } {
  const parsed = parsedPayload(payload);
  const asJson = (document: object) => ({ body: Buffer.from(JSON.stringify(document)), type: "application/json" });
  switch (format) {
    case "slack":
      return asJson(slackMessage(noticeOf(message, parsed)));
    case "teams":
      return asJson(teamsMessage(noticeOf(message, parsed)));
    case "discord":
      return asJson(discordMessage(noticeOf(message, parsed)));
    case "cloudevents": {
      const place = textOf(objectOf(parsed?.repository).url) ?? textOf(objectOf(parsed?.organization).url);
      // Not the place in the log: a request that is made once more has none.
      const event = { ...message, id: message.guid };
      const told = cloudEventOf(event, { source: place ?? api, payload: parsed, data: payload.toString("utf8") });
      return { body: Buffer.from(told), type: "application/cloudevents+json; charset=utf-8" };
    }
    default:
      throw new Error(`There is no format ${format satisfies never}`);
  }
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
