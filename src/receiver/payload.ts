import { keysOf } from "../inbox/delivery.ts";
import { type Fields, isObject, type Json } from "../json.ts";
import type { Envelope } from "./envelope.ts";
import { DeliveryFault } from "./fault.ts";

/**
 * The JSON document that a verified body carries, and the keys that the inbox is searched by.
 * @throws DeliveryFault 400 for a body that is none
 */
export function readPayload(form: Envelope["form"], body: Buffer): { payload: Buffer } & ReturnType<typeof keysOf> {
  const payload = form === "json" ? body : Buffer.from(formPayload(body.toString("utf8")));
  return { payload, ...(keysAtSight(payload) ?? keysOf(parsedObject(payload.toString("utf8")))) };
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

export function parsedObject(json: string): Fields {
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
