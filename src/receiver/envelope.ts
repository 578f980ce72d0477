import { isUtf8 } from "node:buffer";
import type { IncomingHttpHeaders } from "node:http";
import { verify } from "@octokit/webhooks-methods";
import { type HookHolder, hookSecret } from "../config/hook-secrets.ts";
import { isContentType } from "../http/body.ts";
import { type Delivery, keysOf } from "../inbox/inbox.ts";
import { type Fields, isObject, type Json, objectOf } from "../json.ts";
import type { Logger } from "../operations/log.ts";
import { Threads, ThreadsBusyError, TooMuchWorkError } from "../work/threads.ts";
import { DeliveryFault } from "./fault.ts";

/** GitHub docs: payloads are capped at 25 MB; a larger event is not delivered at all. */
export const MAX_PAYLOAD_BYTES = 25 * 1024 * 1024;

/** A delivery, as far as its headers describe it. */
export interface Envelope {
  /** `sha256=` and 64 hexadecimal digits. */
  signature: string;
  /** Upstream's hook; 0 when the request names none. */
  hookId: number;
  /** The owner of the hook: a repository, organisation or App. Null: the request names none of a known type. */
  holder: HookHolder | null;
  guid: string;
  event: string;
  /** Whether the sender is a mirror that made the delivery itself, of a change that no webhook reported. */
  isMade: boolean;
  /** How the body carries the payload. */
  form: "json" | "form";
}

/**
 * Judges a request by its headers, before any byte of its body is read. A request without a signature learns about no
 * other fault.
 * @throws DeliveryFault 401 for a missing or malformed signature, 413 for a body that is too large, 415 for another
 *   content type, 400 for an empty body or a malformed header
 */
export function readEnvelope(headers: IncomingHttpHeaders): Envelope {
  const signature = signatureIn(headers);
  requireLength(headers);
  return {
    signature,
    form: formIn(headers),
    event: header(
      headers,
      "X-GitHub-Event",
      /^[a-z][a-z0-9_]{0,63}$/,
      "the event's name in lower case, such as `issues`",
    ),
    guid: header(
      headers,
      "X-GitHub-Delivery",
      /^[0-9A-Za-z-]{8,64}$/,
      "the delivery's GUID of 8 to 64 letters, digits and dashes",
    ),
    hookId: hookIdIn(headers),
    holder: holderIn(headers),
    isMade: headers["x-tain-made"] === "true",
  };
}

function signatureIn(headers: IncomingHttpHeaders): string {
  const signature = headers["x-hub-signature-256"];
  if (typeof signature !== "string" || signature === "")
    throw new DeliveryFault(
      401,
      "X-Hub-Signature-256 is missing: give the hook a secret, so that its deliveries are signed",
    );
  if (/^sha256=[0-9a-f]{64}$/.test(signature)) return signature;
  throw new DeliveryFault(
    401,
    "X-Hub-Signature-256 is malformed: it is `sha256=` and 64 lower-case hexadecimal digits",
  );
}

function requireLength(headers: IncomingHttpHeaders): void {
  const length = headers["content-length"];
  if (length === undefined ? headers["transfer-encoding"] === undefined : Number(length) === 0) throw emptyBody();
  if (Number(length) > MAX_PAYLOAD_BYTES) throw tooLarge();
}

function emptyBody(): DeliveryFault {
  return new DeliveryFault(400, "The body is empty: send the event's payload");
}

export function tooLarge(): DeliveryFault {
  return new DeliveryFault(413, `The body is larger than ${MAX_PAYLOAD_BYTES} bytes, the most an event may have`);
}

const BODY_FORMS: ReadonlyMap<string, Envelope["form"]> = new Map([
  ["application/json", "json"],
  ["application/x-www-form-urlencoded", "form"],
]);

function formIn(headers: IncomingHttpHeaders): Envelope["form"] {
  const encoding = headers["content-encoding"];
  if (encoding && encoding.toLowerCase() !== "identity") {
    throw new DeliveryFault(415, `Content-Encoding ${encoding} is not supported: send the body as it is`);
  }
  const contentType = headers["content-type"];
  const plain = BODY_FORMS.get(contentType ?? "");
  if (plain) return plain;
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
  const form = BODY_FORMS.get(type);
  if (form) return form;
  throw new DeliveryFault(
    415,
    `Content-Type ${type ? `${type} is not supported` : "is missing"}: send application/json or application/x-www-form-urlencoded`,
  );
}

function header(headers: IncomingHttpHeaders, name: string, shape: RegExp, right: string): string {
  const value = headers[name.toLowerCase()];
  if (value === undefined || value === "") throw new DeliveryFault(400, `${name} is missing: send ${right}`);
  if (typeof value !== "string" || !shape.test(value))
    throw new DeliveryFault(400, `${name} is malformed: send ${right}`);
  return value;
}

function hookIdIn(headers: IncomingHttpHeaders): number {
  if (headers["x-github-hook-id"] === undefined) return 0;
  const id = Number(header(headers, "X-GitHub-Hook-ID", /^[0-9]{1,16}$/, "the hook's id, a whole number"));
  if (!Number.isSafeInteger(id))
    throw new DeliveryFault(400, "X-GitHub-Hook-ID is too large: send the hook's id, below 2^53");
  return id;
}

const HOLDERS: readonly HookHolder["type"][] = ["repository", "organization", "integration"];

/** The holder only decides which secret is tried, so a malformed one counts as absent. */
function holderIn(headers: IncomingHttpHeaders): HookHolder | null {
  const type = HOLDERS.find((one) => one === headers["x-github-hook-installation-target-type"]);
  const text = String(headers["x-github-hook-installation-target-id"]);
  return type && /^[0-9]{1,15}$/.test(text) ? { type, id: Number(text) } : null;
}

/**
 * The JSON document in a verified body, and the keys by which the inbox is searched.
 * @throws DeliveryFault 400 for a body without a JSON object
 */
export function readPayload(form: Envelope["form"], body: Buffer): { payload: Buffer } & ReturnType<typeof keysOf> {
  const payload = form === "json" ? body : Buffer.from(formPayload(body.toString("utf8")));
  return { payload, ...(keysAtSight(payload) ?? keysOf(parsedObject(payload.toString("utf8")))) };
}

const CLOSING_BRACE = 125;
/** Smaller payloads are parsed, which takes hardly any time. */
const PARSED_BYTES = 4_096;

/**
 * The keys of a large payload as upstream writes it: an object that begins with its action and names one repository, in
 * JSON without spaces. Null for any other payload, which is parsed. Parsing all would take most of the time that
 * upstream waits for us. A signed payload that looks so but is no JSON fails when it is applied.
 */
function keysAtSight(payload: Buffer): ReturnType<typeof keysOf> | null {
  if (payload.length < PARSED_BYTES) return null;
  const action = /^\{"action":"([\w.-]{1,100})",/.exec(payload.toString("latin1", 0, 120))?.[1];
  if (action === undefined || payload.at(-1) !== CLOSING_BRACE) return null;
  const start = startOfSoleRepositoryId(payload);
  if (start === null) return null;
  const id = /^([0-9]{1,16}),/.exec(payload.toString("latin1", start, start + 17))?.[1];
  return id !== undefined && Number.isSafeInteger(Number(id)) ? { action, repositoryId: Number(id) } : null;
}

const REPOSITORY_KEY = '"repository":';
/** Braces are rare in JSON, so a search that begins with one takes less than half the time that the key's takes. */
const OBJECT_START = '{"id":';
/** Each costs a call; a push of the most commits has fewer. */
const MOST_OBJECTS = 5_000;

/** Where the id of the one object under the key `repository` begins. Null: there is none, or there are several. */
function startOfSoleRepositoryId(payload: Buffer): number | null {
  let found: number | null = null;
  let at = payload.indexOf(OBJECT_START);
  for (let objects = 0; at !== -1; objects++, at = payload.indexOf(OBJECT_START, at + OBJECT_START.length)) {
    if (objects === MOST_OBJECTS) return null;
    // Quotes in people's texts are escaped, so the key is never found inside them.
    if (payload.toString("latin1", at - REPOSITORY_KEY.length, at) !== REPOSITORY_KEY) continue;
    if (found !== null) return null;
    found = at + OBJECT_START.length;
  }
  return found;
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

/**
 * Makes sure that a delivery is only about the holder whose secret signed it.
 * @throws DeliveryFault 400 if it is about anything else
 */
export function requireOf(
  holder: HookHolder,
  { event, repositoryId, payload }: Pick<Delivery, "event" | "repositoryId" | "payload">,
): void {
  const isOf = repositoryId === null ? mayConcernNone(holder, event, payload) : concerns(holder, repositoryId, payload);
  if (isOf) return;
  throw new DeliveryFault(
    400,
    `The payload is not of the ${holder.type} ${holder.id}, whose secret signed it: each hook tells of its own`,
  );
}

/**
 * Whether a delivery of this hook may concern no repository. Only an App gets events about installations. A
 * repository's hook gets only events about its repository and itself. An organization's events are sent on to targets,
 * so they must be about that organization.
 */
function mayConcernNone({ type, id }: HookHolder, event: string, payload: Buffer): boolean {
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

function concerns({ type, id }: HookHolder, repositoryId: number, payload: Buffer): boolean {
  switch (type) {
    case "repository":
      return repositoryId === id;
    case "organization":
      return isOfOwner(parsedObject(payload.toString("utf8")), id);
    case "integration":
      // Deliveries to an App name the installation. Quotes in people's texts are escaped, so no text can look like this
      // key.
      return payload.includes('"installation":{') || isObject(parsedObject(payload.toString("utf8")).installation);
    default:
      return type satisfies never;
  }
}

function isOfOwner({ organization, repository }: Fields, organizationId: number): boolean {
  const owner = objectOf(objectOf(repository).owner);
  return objectOf(organization).id === organizationId && owner.id === organizationId;
}

/**
 * A smaller body is checked within a few milliseconds. The largest would hold the event loop for some hundred
 * milliseconds.
 */
const HASHED_APART_BYTES = 512 * 1024;

interface SignatureCheck {
  /** `sha256=` and 64 hexadecimal digits. */
  signature: string;
  /** Tried in this order. */
  groups: readonly (readonly string[])[];
}

/**
 * The group whose secret signed exactly this text; -1: none.
 * @param text is not empty, and was well-formed UTF-8: encoded again, it gives exactly the bytes that came
 */
export async function signedBy(text: string, { signature, groups }: SignatureCheck): Promise<number> {
  for (const [at, secrets] of groups.entries()) {
    for (const secret of secrets) if (await verify(secret, text, signature)) return at;
  }
  return -1;
}

/** A check on a thread of its own. */
export interface LargeBodyCheck extends SignatureCheck {
  body: Uint8Array;
}

/** Checks who signed a delivery. */
export class Signatures {
  readonly #secrets: readonly string[];
  readonly #threads: Threads<LargeBodyCheck, number>;

  /** @param secrets those of WEBHOOK_SECRET */
  constructor(secrets: readonly string[]) {
    this.#secrets = secrets;
    const module = new URL("./signature-thread.ts", import.meta.url);
    this.#threads = new Threads(module, { size: 1, mostWaiting: 50, budgetMs: 20_000 });
  }

  /**
   * Answers the holder whose own secret signed exactly these bytes; null: one of WEBHOOK_SECRET itself did, as of hooks
   * that were made before holders had secrets of their own.
   * @param envelope.holder whose hook it is, by headers that nobody signs: they only choose which secret is tried
   * @throws DeliveryFault 400 for a body that is empty or not UTF-8, 401 for a wrong signature, 503 when too many large
   *   bodies are being checked
   */
  async require(
    body: Buffer,
    { signature, holder }: Pick<Envelope, "signature" | "holder">,
  ): Promise<HookHolder | null> {
    if (body.length === 0) throw emptyBody();
    if (!isUtf8(body)) throw new DeliveryFault(400, "The body is not UTF-8: JSON and forms are sent in UTF-8");
    const own = holder ? this.#secrets.map((secret) => hookSecret(secret, holder)) : [];
    const check = { signature, groups: [own, this.#secrets] };
    const group =
      body.length < HASHED_APART_BYTES
        ? await signedBy(body.toString("utf8"), check)
        : await this.#threads.run({ body, ...check }).catch(later);
    if (group === 0) return holder;
    if (group === 1) return null;
    throw new DeliveryFault(
      401,
      "X-Hub-Signature-256 does not match the body: the hook's secret is none that WEBHOOK_SECRET gives it",
    );
  }

  close(): Promise<void> {
    return this.#threads.close();
  }
}

/** @throws always: what is a bug of ours as it is */
function later(error: unknown): never {
  if (!(error instanceof ThreadsBusyError || error instanceof TooMuchWorkError)) throw error;
  throw new DeliveryFault(503, "Too many large bodies are being checked at the moment: send it again later", {
    cause: error,
  });
}

/** Further hooks are not told apart. Once these are mended, the next start names the others. */
const MOST_HOOKS = 1_000;

/**
 * Says once of each hook that it signs with WEBHOOK_SECRET itself, as hooks did that were made before each had its own.
 */
export class CommonSecret {
  readonly #log: Logger;
  readonly #told = new Set<number>();

  constructor(log: Logger) {
    this.#log = log;
  }

  note({ hookId, holder }: Pick<Envelope, "hookId" | "holder">): void {
    if (this.#told.has(hookId) || this.#told.size === MOST_HOOKS) return;
    this.#told.add(hookId);
    this.#log.warn(
      { hookId, [holder?.type ?? "target"]: holder?.id },
      "A hook signs with WEBHOOK_SECRET itself, which can sign for all: `tain hooks register` gives it its own",
    );
  }
}
