import { type Fields, objectOf, rowsOf, textOf } from "../../../json.ts";
import { spanOf } from "../../terminal/output.ts";

/** Why a tool has no answer: what an agent can do about it depends on this word. */
export type FaultKind =
  | "wrong_token"
  | "forbidden"
  | "not_found"
  | "gone"
  | "invalid"
  | "rate_limited"
  | "busy"
  | "too_large"
  | "upstream_away"
  | "mirror_away"
  | "failed";

/** A tool has no answer. The message says why, and what to do. */
export class ToolFault extends Error {
  override name = "ToolFault";
  readonly kind: FaultKind;
  /** The mirror's HTTP status. Null: it did not answer. */
  readonly status: number | null;
  /** Null: nobody has said when it is worth asking again. */
  readonly retryAfterSeconds: number | null;

  constructor(
    kind: FaultKind,
    message: string,
    { status = null, retryAfterSeconds = null, ...options }: ErrorOptions & Partial<FaultAnswer> = {},
  ) {
    super(message, options);
    this.kind = kind;
    this.status = status;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

interface FaultAnswer {
  status: number | null;
  retryAfterSeconds: number | null;
}

/** What is asked of the mirror, as far as its refusal depends on it. */
interface RefusedQuestion {
  /** What the agent knows it by: `issue 7 of owner/name`. */
  what: string;
  isWrite: boolean;
}

/** The fault that a refusal of the mirror's stands for. `document`: its body, empty if that was no JSON. Pure. */
export function refusal(
  { status, headers }: Pick<Response, "status" | "headers">,
  document: Fields,
  { what, isWrite }: RefusedQuestion,
): ToolFault {
  const said = sayingOf(document);
  const hint = headers.get("x-tain-hint");
  const retryAfterSeconds = waitOf({ status, headers });
  const fault = (kind: FaultKind, message: string) => new ToolFault(kind, message, { status, retryAfterSeconds });
  const later = retryAfterSeconds === null ? "later" : `in ${spanOf(retryAfterSeconds * 1_000)}`;
  switch (status) {
    case 401:
      return fault(
        "wrong_token",
        `The mirror does not take this token (${said}): it is unknown, was revoked or has expired. Show another; asking again does not help.`,
      );
    case 403:
    case 429:
      return retryAfterSeconds === null
        ? fault("forbidden", `This token may not do that: ${what}. ${said}`)
        : fault("rate_limited", `Too much was asked (${said}). Ask again ${later}.`);
    case 404:
      return fault(
        "not_found",
        `Not found: ${what}. It does not exist, is not mirrored here, or this token may not see it.${hint === null ? "" : ` ${hint}`}`,
      );
    case 410:
      return fault("gone", `${what} is gone: ${said}`);
    case 502:
    case 504:
      return fault(
        "upstream_away",
        `Upstream has no answer (${said}). ${isWrite ? "Read what was to be changed before you write again." : `Ask again ${later}.`}`,
      );
    case 503:
      return fault("busy", `The mirror cannot answer now (${said}). Ask again ${later}.`);
    default:
      return status < 500
        ? fault("invalid", `The mirror refuses this request: ${said}`)
        : fault("failed", `The mirror failed (${status}, ${said}).`);
  }
}

/** What the service's error body says: the message, and which fields are wrong. */
function sayingOf(document: Fields): string {
  const { errors } = document;
  const details = rowsOf(errors).map((each) => {
    const { field, code, message, value } = each;
    return textOf(message) ?? [field, value, code].flatMap((one) => textOf(one) ?? []).join(" ");
  });
  const all = [textOf(document.message) ?? "no reason was given", ...details, textOf(errors) ?? ""];
  return all.filter(Boolean).join("; ");
}

/** In how many seconds it is worth asking again, by the server's own clock; null: it does not say. */
function waitOf({ status, headers }: Pick<Response, "status" | "headers">): number | null {
  const seconds = Number(headers.get("retry-after") ?? Number.NaN);
  if (seconds >= 0) return seconds;
  const isSpent = (status === 403 || status === 429) && headers.get("x-ratelimit-remaining") === "0";
  const leftMs = Number(headers.get("x-ratelimit-reset")) * 1_000 - Date.parse(headers.get("date") ?? "");
  if (isSpent && leftMs > 0) return Math.ceil(leftMs / 1_000);
  return status === 429 ? 60 : null;
}

/** The object in a body; an empty one for other texts, such as a proxy's page. Pure. */
export function documentIn(body: string): Fields {
  try {
    return objectOf(JSON.parse(body));
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}
