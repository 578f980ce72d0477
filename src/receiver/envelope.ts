import type { IncomingHttpHeaders } from "node:http";
import { DeliveryFault } from "./fault.ts";

/** What the receiver knows of a delivery. What its payload means is for others to say. */
export interface Delivery {
  /** Upstream's hook; 0 when the request names none. */
  hookId: number;
  guid: string;
  event: string;
  action: string | null;
  repositoryId: number | null;
  /** The JSON document as received, the form encoding taken off. */
  payload: Buffer;
  receivedAt: Date;
}

/**
 * Reads a verified request as a delivery.
 * @throws DeliveryFault 415 for another content type, 400 for a body or header that is not what a delivery has
 */
export function readEnvelope(headers: IncomingHttpHeaders, text: string, receivedAt: Date): Delivery {
  const json = payloadText(headers, text);
  const event = header(
    headers,
    "X-GitHub-Event",
    /^[a-z][a-z0-9_]{0,63}$/,
    "the event's name in lower case, such as `issues`",
  );
  const guid = header(
    headers,
    "X-GitHub-Delivery",
    /^[0-9A-Za-z-]{8,64}$/,
    "the delivery's GUID of 8 to 64 letters, digits and dashes",
  );
  return {
    hookId: hookId(headers),
    guid,
    event,
    ...keysOf(parsedObject(json)),
    payload: Buffer.from(json),
    receivedAt,
  };
}

/** The keys that the inbox is searched by. What is no such key is left out, not refused. */
export function keysOf(payload: object): { action: string | null; repositoryId: number | null } {
  const { action, repository } = payload as { action?: unknown; repository?: { id?: unknown } | null };
  const id = repository?.id;
  return {
    action: typeof action === "string" && /^[\w.-]{1,100}$/.test(action) ? action : null,
    repositoryId: Number.isSafeInteger(id) ? (id as number) : null,
  };
}

function payloadText(headers: IncomingHttpHeaders, text: string): string {
  const encoding = headers["content-encoding"];
  if (encoding && encoding.toLowerCase() !== "identity") {
    throw new DeliveryFault(415, `Content-Encoding ${encoding} is not supported: send the body as it is`);
  }
  const [type = "", ...parameters] = (headers["content-type"] ?? "")
    .split(";")
    .map((part) => part.trim().toLowerCase());
  const charset = parameters
    .find((parameter) => parameter.startsWith("charset="))
    ?.slice("charset=".length)
    .replaceAll('"', "");
  if (charset && charset !== "utf-8" && charset !== "utf8") {
    throw new DeliveryFault(415, `The charset ${charset} is not supported: send UTF-8`);
  }
  if (type === "application/json") return text;
  if (type === "application/x-www-form-urlencoded") return formPayload(text);
  throw new DeliveryFault(
    415,
    `Content-Type ${type ? `${type} is not supported` : "is missing"}: send application/json or application/x-www-form-urlencoded`,
  );
}

function formPayload(text: string): string {
  const fields = [...new URLSearchParams(text)];
  const [field] = fields;
  if (fields.length !== 1 || field?.[0] !== "payload") {
    throw new DeliveryFault(
      400,
      "The form does not have exactly one field `payload`: send `payload=` and the JSON document",
    );
  }
  return field[1];
}

function parsedObject(json: string): object {
  let payload: unknown;
  try {
    payload = JSON.parse(json);
  } catch (error) {
    // The parser's own message quotes the document, which may be private; the cause is not sent.
    throw new DeliveryFault(400, "The payload is not valid JSON: send one JSON object", { cause: error });
  }
  if (typeof payload !== "object" || payload === null || Array.isArray(payload)) {
    throw new DeliveryFault(400, "The payload is not a JSON object: send the event's object");
  }
  return payload;
}

function header(headers: IncomingHttpHeaders, name: string, shape: RegExp, right: string): string {
  const value = headers[name.toLowerCase()];
  if (value === undefined || value === "") throw new DeliveryFault(400, `${name} is missing: send ${right}`);
  if (typeof value !== "string" || !shape.test(value))
    throw new DeliveryFault(400, `${name} is malformed: send ${right}`);
  return value;
}

function hookId(headers: IncomingHttpHeaders): number {
  if (headers["x-github-hook-id"] === undefined) return 0;
  const id = Number(header(headers, "X-GitHub-Hook-ID", /^[0-9]{1,16}$/, "the hook's id, a whole number"));
  if (!Number.isSafeInteger(id))
    throw new DeliveryFault(400, "X-GitHub-Hook-ID is too large: send the hook's id, below 2^53");
  return id;
}
