/** Which of upstream's answers may be kept. Pure. */
import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { isPredicted, predictEtag, variesBy } from "../../../upstream/conditional/etag.ts";
import type { Opened } from "../../../upstream/protocol/opened.ts";
import type { CacheableRead, ForwardedAnswer } from "./forwarded-answers.ts";

/** A complete answer of upstream's. */
export interface WholeAnswer extends Omit<Opened, "body"> {
  body: Buffer;
}

/** The largest body that is kept. A larger one is forwarded while it arrives. */
export const MOST_KEPT_BYTES = 1024 * 1024;

/** Headers that belong to the body, and not to the caller. */
const OF_THE_BODY: readonly string[] = [
  "cache-control",
  "content-disposition",
  "content-language",
  "content-type",
  "deprecation",
  "etag",
  "last-modified",
  "link",
  "sunset",
  "vary",
  "x-github-api-version-selected",
  "x-github-media-type",
  "x-poll-interval",
];

/** Keys that upstream writes into some documents for their reader alone. */
const HOLDS_A_KEY = /[?&]token=|"temp_clone_token":"/;
/** An address that gets a key once the repository is private, under the same tag. */
const WILL_HOLD_A_KEY = /"download_url":"/;

interface Keeping {
  /** The headers that upstream was asked with. */
  sent: Readonly<Record<string, string>>;
  /** Names the token that the answer was shown to. */
  viewer: string;
  at: Date;
  recomputes: boolean;
  /** Whether the question says how visible its repository is. */
  isHomeKnown: boolean;
}

/**
 * The answer to keep; null: it must not be kept. Without an ETag upstream could not be asked whether it still holds.
 */
export function keptOf(
  { key: question, perPage }: CacheableRead,
  { status, headers, body }: WholeAnswer,
  { sent, viewer, at, recomputes, isHomeKnown }: Keeping,
): ForwardedAnswer | null {
  const { etag } = headers;
  const isOdd = headers["content-encoding"] !== undefined || /no-store/.test(headers["cache-control"] ?? "");
  if (status !== 200 || etag === undefined || isOdd || body.length > MOST_KEPT_BYTES) return null;
  const isJson = /json/.test(headers["content-type"] ?? "");
  if (isJson && (holdsAKey(body.toString("latin1"), isHomeKnown) || mayGrowUnseen(headers, body, perPage))) return null;
  const varies = variesBy(headers, sent);
  const isShared = recomputes && isPredicted(etag, predictEtag(varies, sent, body));
  const kept = Object.fromEntries(
    OF_THE_BODY.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])),
  );
  return {
    id: randomUUID(),
    question,
    shownTo: isShared ? "" : viewer,
    headers: kept,
    body,
    variesBy: isShared ? varies : null,
    madeAt: at,
    usedAt: at,
    mirrors: null,
  };
}

function holdsAKey(text: string, isHomeKnown: boolean): boolean {
  return HOLDS_A_KEY.test(text) || (!isHomeKnown && WILL_HOLD_A_KEY.test(text));
}

/** Whether the answer is a full last page. Its ETag stays when another page begins. */
function mayGrowUnseen({ link }: IncomingHttpHeaders, body: Buffer, perPage: number | null): boolean {
  if (perPage === null || body[0] !== 0x5b || /rel="next"/.test([link].flat().join())) return false;
  const rows: unknown = JSON.parse(body.toString());
  return Array.isArray(rows) && rows.length >= perPage;
}

/** The ETag that upstream would give the kept answer for a request with these headers. */
export function upstreamTagOf(
  { headers, body, variesBy: varies }: ForwardedAnswer,
  sent: Readonly<Record<string, string>>,
): string {
  return varies === null ? (headers.etag ?? "") : `"${predictEtag(varies, sent, body)}"`;
}
