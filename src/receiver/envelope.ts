import type { IncomingHttpHeaders } from "node:http";
import type { HookTarget } from "../config/hook-secrets.ts";
import { isContentType } from "../http/exchange.ts";
import { DeliveryFault } from "./fault.ts";

/** GitHub docs: payloads are capped at 25 MB; a larger event is not delivered at all. */
export const MAX_BODY_BYTES = 25 * 1024 * 1024;

/** What the headers of a request say of a delivery. */
export interface Envelope {
  /** `sha256=` and 64 hexadecimal digits. */
  signature: string;
  /** Upstream's hook; 0 when the request names none. */
  hookId: number;
  /** Whose hook it is; null when the request names none that we know. */
  target: HookTarget | null;
  guid: string;
  event: string;
  /** Whether the sender is a mirror, and made it of a change that no webhook told of. */
  isMade: boolean;
  /** How the body carries the payload. */
  form: "json" | "form";
}

/**
 * Reads what can be known before a byte of the body is read. Nothing is said of the rest to a request without a signature.
 * @throws DeliveryFault 401 for a missing or malformed signature, 413 for a body that is too large, 415 for another content
 *   type, 400 for an empty body or a malformed header
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
    target: targetIn(headers),
    isMade: headers["x-tain-made"] === "true",
  };
}

function signatureIn(headers: IncomingHttpHeaders): string {
  const signature = [headers["x-hub-signature-256"] ?? ""].flat().join(", ");
  if (signature === "")
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
  if (Number(length) > MAX_BODY_BYTES) throw tooLarge();
}

export function emptyBody(): DeliveryFault {
  return new DeliveryFault(400, "The body is empty: send the event's payload");
}

export function tooLarge(): DeliveryFault {
  return new DeliveryFault(413, `The body is larger than ${MAX_BODY_BYTES} bytes, the most an event may have`);
}

function formIn(headers: IncomingHttpHeaders): Envelope["form"] {
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
  if (type === "application/json") return "json";
  if (type === "application/x-www-form-urlencoded") return "form";
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

const TARGETS: readonly HookTarget["type"][] = ["repository", "organization", "integration"];

/** Nothing but the choice of a secret follows from it, so what is malformed counts as absent. */
function targetIn(headers: IncomingHttpHeaders): HookTarget | null {
  const type = TARGETS.find((one) => one === headers["x-github-hook-installation-target-type"]);
  const text = String(headers["x-github-hook-installation-target-id"]);
  return type && /^[0-9]{1,15}$/.test(text) ? { type, id: Number(text) } : null;
}
