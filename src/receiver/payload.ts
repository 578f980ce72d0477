import type { HookTarget } from "../config/hook-secrets.ts";
import { type Delivery, keysOf } from "../inbox/delivery.ts";
import { type Fields, isObject, type Json, objectOf } from "../json.ts";
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

/**
 * Sees that a delivery tells only of the target whose secret signed it.
 * @throws DeliveryFault 400 when it tells of something else
 */
export function requireOf(
  target: HookTarget,
  { event, repositoryId, payload }: Pick<Delivery, "event" | "repositoryId" | "payload">,
): void {
  const isOf = repositoryId === null ? mayConcernNone(target, event, payload) : concerns(target, repositoryId, payload);
  if (isOf) return;
  throw new DeliveryFault(
    400,
    `The payload is not of the ${target.type} ${target.id}, whose secret signed it: each hook tells of its own`,
  );
}

/**
 * Only an App hears of its installations, and a repository's hook of nothing beyond its repository but itself. Others are told
 * of what an organization's hook brings, so it has to be of that organization.
 */
function mayConcernNone({ type, id }: HookTarget, event: string, payload: Buffer): boolean {
  switch (type) {
    case "integration":
      return true;
    case "organization": {
      const { organization } = parsedObject(payload.toString("utf8"));
      return !event.startsWith("installation") && (!isObject(organization) || organization.id === id);
    }
    case "repository":
      if (event.startsWith("installation")) return false;
      return event === "ping" || !isObject(parsedObject(payload.toString("utf8")).organization);
    default:
      return type satisfies never;
  }
}

function concerns({ type, id }: HookTarget, repositoryId: number, payload: Buffer): boolean {
  switch (type) {
    case "repository":
      return repositoryId === id;
    case "organization":
      return isOfOwner(parsedObject(payload.toString("utf8")), id);
    case "integration":
      // Deliveries to an App name the installation. In people's texts quotes are escaped, so they cannot look like it.
      return payload.includes('"installation":{') || isObject(parsedObject(payload.toString("utf8")).installation);
    default:
      return type satisfies never;
  }
}

function isOfOwner({ organization, repository }: Fields, organizationId: number): boolean {
  const owner = objectOf(objectOf(repository).owner);
  return objectOf(organization).id === organizationId && owner.id === organizationId;
}
