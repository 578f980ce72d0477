import type { IncomingHttpHeaders } from "node:http";
import type { HookHolder } from "../config/hook-secrets.ts";
import { isContentType } from "../http/body.ts";
import type { Delivery } from "../inbox/inbox.ts";
import { type Fields, isObject, objectOf } from "../json.ts";
import type { Logger } from "../operations/log.ts";
import { DeliveryFault } from "./fault.ts";
import type { PayloadForm, ReadPayload } from "./payload.ts";

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
  form: PayloadForm;
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

export function emptyBody(): DeliveryFault {
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

/** Upstream sends these to Apps alone. */
const OF_APPS = /^(installation|github_app_authorization|marketplace_purchase)/;
/** Upstream sends these to the hooks of organisations and Apps, and to no repository's. */
const OF_ORGANIZATIONS: ReadonlySet<string> = new Set(["organization", "membership", "org_block"]);

/**
 * Makes sure that a delivery is only about the holder whose secret signed it, as far as its payload shows that. What
 * else its holder owns is known to the mirror, and judged when the delivery is applied.
 * @throws DeliveryFault 400 if it is about anything else
 */
export function requireOf(
  holder: HookHolder,
  { event, repositoryId, head }: Pick<Delivery, "event"> & Pick<ReadPayload, "repositoryId" | "head">,
): void {
  const isOf = isSentTo(holder, event) && isAbout(holder, event, repositoryId, head);
  if (isOf) return;
  throw new DeliveryFault(
    400,
    `The payload is not of the ${holder.type} ${holder.id}, whose secret signed it: each hook tells of its own`,
  );
}

/** Whether upstream sends such an event to hooks of this type. */
function isSentTo({ type }: HookHolder, event: string): boolean {
  return type === "integration" || !(OF_APPS.test(event) || (type === "repository" && OF_ORGANIZATIONS.has(event)));
}

function isAbout({ type, id }: HookHolder, event: string, repositoryId: number | null, head: Fields): boolean {
  switch (type) {
    case "repository":
      // Only a ping may leave the repository out.
      return repositoryId === id || (repositoryId === null && event === "ping" && namesNone(head));
    case "organization":
      return isOfOrganization(head, { id, event, repositoryId });
    case "integration":
      // Deliveries to an App name the installation.
      return repositoryId === null || isObject(head.installation);
    default:
      return type satisfies never;
  }
}

function namesNone({ repository, organization }: Fields): boolean {
  return repository === undefined && organization === undefined;
}

/** A repository that is named has to be named by a whole id, and with its owner. */
function isOfOrganization(
  payload: Fields,
  { id, event, repositoryId }: { id: number; event: string; repositoryId: number | null },
): boolean {
  const { organization, repository } = payload;
  if (repository !== undefined || repositoryId !== null) {
    const owner = objectOf(objectOf(repository).owner);
    return repositoryId !== null && objectOf(organization).id === id && owner.id === id;
  }
  return organization === undefined ? event === "ping" : objectOf(organization).id === id;
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
