import type { IncomingHttpHeaders } from "node:http";
import { isContentType } from "../http/body.ts";
import { type Delivery, keysOf } from "../inbox/delivery.ts";
import { type Fields, isObject, type Json } from "../json.ts";
import { DeliveryFault } from "./fault.ts";

/**
 * Reads a verified request as a delivery.
 * @throws DeliveryFault 415 for another content type, 400 for a malformed body or header
 */
export function readEnvelope(headers: IncomingHttpHeaders, body: Buffer, receivedAt: Date): Delivery {
  const payload = payloadOf(headers, body);
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
    ...(keysAtSight(payload) ?? keysOf(parsedObject(payload.toString("utf8")))),
    payload,
    receivedAt,
  };
}

const REPOSITORY = '"repository":{"id":';
/** Parsing a smaller payload takes no time that counts. */
const LARGE_BYTES = 4_096;

/**
 * The keys of a large payload as upstream writes it: an object that begins with its action and names one repository, in
 * JSON without spaces. Null for any other payload, which is parsed. Parsing all would take most of the time that
 * upstream waits for us. A signed payload that looks so but is no JSON fails when it is applied.
 */
function keysAtSight(payload: Buffer): ReturnType<typeof keysOf> | null {
  if (payload.length < LARGE_BYTES) return null;
  const action = /^\{"action":"([\w.-]{1,100})",/.exec(payload.toString("latin1", 0, 120))?.[1];
  if (action === undefined || payload.at(-1) !== CLOSING_BRACE) return null;
  // In what people wrote, quotes are escaped, so that this is never found there.
  const at = payload.indexOf(REPOSITORY);
  if (at === -1 || payload.includes(REPOSITORY, at + 1)) return null;
  const start = at + REPOSITORY.length;
  const id = /^([0-9]{1,16}),/.exec(payload.toString("latin1", start, start + 17))?.[1];
  return id !== undefined && Number.isSafeInteger(Number(id)) ? { action, repositoryId: Number(id) } : null;
}

const CLOSING_BRACE = 125;

function payloadOf(headers: IncomingHttpHeaders, body: Buffer): Buffer {
  const encoding = headers["content-encoding"];
  if (encoding && encoding.toLowerCase() !== "identity") {
    throw new DeliveryFault(415, `Content-Encoding ${encoding} is not supported: send the body as it is`);
  }
  const contentType = headers["content-type"];
  if (contentType !== undefined && !isContentType(contentType)) {
    throw new DeliveryFault(
      415,
      "Content-Type is malformed: send application/json or application/x-www-form-urlencoded",
    );
  }
  const [type = "", ...parameters] = (contentType ?? "").split(";").map((part) => part.trim().toLowerCase());
  const charset = parameters
    .find((parameter) => parameter.startsWith("charset="))
    ?.slice("charset=".length)
    .replaceAll('"', "");
  if (charset && charset !== "utf-8" && charset !== "utf8") {
    throw new DeliveryFault(415, `The charset ${charset} is not supported: send UTF-8`);
  }
  if (type === "application/json") return body;
  if (type === "application/x-www-form-urlencoded") return Buffer.from(formPayload(body.toString("utf8")));
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

function parsedObject(json: string): Fields {
  let payload: Json;
  try {
    payload = JSON.parse(json);
  } catch (error) {
    // The parser's own message quotes the document, which may be private; the cause is not sent.
    throw new DeliveryFault(400, "The payload is not valid JSON: send one JSON object", { cause: error });
  }
  if (isObject(payload)) return payload;
  throw new DeliveryFault(400, "The payload is not a JSON object: send the event's object");
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
