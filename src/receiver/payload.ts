import { isUtf8 } from "node:buffer";
import { keysOf } from "../inbox/inbox.ts";
import { type Fields, isObject, type Json } from "../json.ts";
import { JsonBoundError, MOST_PAYLOAD_VALUES, parseSent } from "../sent-json.ts";
import { DeliveryFault } from "./fault.ts";

/** How a body carries its payload. */
export type PayloadForm = "json" | "form";

/** A payload, as far as the receiver looks into it. */
export interface ReadPayload extends ReturnType<typeof keysOf> {
  /** The JSON document, without its form encoding. */
  payload: Buffer;
  /** Of the payload's fields those that say whose it is: see `HEAD`. */
  head: Fields;
}

/** The fields of the head, and of the objects in it. */
const OF_ACCOUNT = { id: null, login: null, type: null };
const OF_REPOSITORY = { id: null, name: null, full_name: null, owner: OF_ACCOUNT };
const HEAD: Outline = {
  action: null,
  repository: OF_REPOSITORY,
  organization: OF_ACCOUNT,
  enterprise: { id: null },
  installation: { id: null, account: OF_ACCOUNT },
  sender: OF_ACCOUNT,
  hook: { id: null, type: null },
};

interface Outline {
  readonly [key: string]: Outline | null;
}

/** The fields that the outline names. Below it, an object or a list is an empty one. */
function outlined(fields: Fields, outline: Outline): Fields {
  const kept: Fields = {};
  for (const key in outline) {
    const value = Object.hasOwn(fields, key) ? fields[key] : undefined;
    if (value === undefined) continue;
    if (isObject(value)) kept[key] = outlined(value, outline[key] ?? {});
    else kept[key] = Array.isArray(value) ? [] : value;
  }
  return kept;
}

/**
 * Reads the payload in a verified body.
 * @param text the body's
 * @throws DeliveryFault 400 for a body without a JSON object, or with one beyond the bounds of `parseSent`
 */
export function readPayload(form: PayloadForm, body: Buffer, text = body.toString("utf8")): ReadPayload {
  const payload = form === "json" ? body : payloadIn(body);
  const fields = parsedObject(form === "json" ? text : payload.toString("utf8"));
  return { payload, head: outlined(fields, HEAD), ...keysOf(fields) };
}

function parsedObject(json: string): Fields {
  let payload: Json;
  try {
    payload = parseSent(json, MOST_PAYLOAD_VALUES);
  } catch (cause) {
    if (cause instanceof JsonBoundError)
      throw new DeliveryFault(400, `The payload cannot be taken. ${cause.message}: send it as upstream does`, {
        cause,
      });
    // The parser's own message quotes the document, which may be private; the cause is not sent.
    throw new DeliveryFault(400, "The payload is not valid JSON: send one JSON object", { cause });
  }
  if (isObject(payload)) return payload;
  throw new DeliveryFault(400, "The payload is not a JSON object: send the event's object");
}

const AMPERSAND = 0x26;
const FIELD = "payload=";

/** The value of the form's one field, decoded byte by byte: as text, 25 MB would be held several times. */
function payloadIn(body: Buffer): Buffer {
  const end = body.at(-1) === AMPERSAND ? body.length - 1 : body.length;
  if (body.toString("latin1", 0, FIELD.length) !== FIELD || body.subarray(0, end).includes(AMPERSAND))
    throw new DeliveryFault(
      400,
      "The form does not have exactly one field `payload`: send `payload=` and the JSON document",
    );
  const payload = decodedForm(body.subarray(FIELD.length, end));
  if (isUtf8(payload)) return payload;
  throw new DeliveryFault(400, "The form's payload is not UTF-8: JSON is sent in UTF-8");
}

const PLUS = 0x2b;
const PERCENT = 0x25;
const BLANK = 0x20;
/** The value of each hexadecimal digit; of any other byte, more than a digit has. */
const NO_DIGIT = 16;
const DIGITS = Uint8Array.from({ length: 256 }, (_, byte) => {
  const value = Number.parseInt(String.fromCharCode(byte), 16);
  return Number.isNaN(value) ? NO_DIGIT : value;
});

/** Percent-encoding as the URL standard reads it: what is not well-formed stands for itself. */
function decodedForm(bytes: Buffer): Buffer {
  const decoded = Buffer.allocUnsafe(bytes.length);
  let length = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    const high = DIGITS[bytes[at + 1] ?? 0] ?? NO_DIGIT;
    const low = DIGITS[bytes[at + 2] ?? 0] ?? NO_DIGIT;
    if (byte === PERCENT && high < NO_DIGIT && low < NO_DIGIT) {
      decoded[length] = high * 16 + low;
      at += 2;
    } else decoded[length] = byte === PLUS ? BLANK : byte;
    length += 1;
  }
  return decoded.subarray(0, length);
}
