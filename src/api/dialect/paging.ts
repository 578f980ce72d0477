import { HttpError } from "../../http/errors.ts";

/**
 * Cursors: base64 of `cursor:tain:` and a MessagePack array `[sort key, number or id]`, as the service makes them with
 * `cursor:v2:`. To callers they are opaque; the prefix tells us whose they are. REST uses the URL-safe alphabet.
 */
type CursorKey = number | string | null;
export type Cursor = readonly [key: CursorKey, rowId: number];

const PREFIX = Buffer.from("cursor:tain:");
/** The prefix of our former cursors. */
const FORMER_PREFIX = Buffer.from("cursor:v2:");

export function writeCursor([key, rowId]: Cursor, alphabet: "base64" | "url-safe" = "base64"): string {
  const text = Buffer.concat([PREFIX, Buffer.from([0x92]), pack(key), pack(rowId)]).toString("base64");
  return alphabet === "base64" ? text : text.replaceAll("+", "-").replaceAll("/", "_");
}

/** The contents of a cursor, in either alphabet. Null: the text is no cursor of ours. */
export function readCursor(text: string): Cursor | null {
  const bytes = Buffer.from(text, "base64");
  const prefix = [PREFIX, FORMER_PREFIX].find((one) => bytes.subarray(0, one.length).equals(one));
  if (!prefix || bytes[prefix.length] !== 0x92) return null;
  const key = unpack(bytes, prefix.length + 1);
  const rowId = key && unpack(bytes, key.end);
  if (!key || !rowId || rowId.end !== bytes.length || typeof rowId.value !== "number") return null;
  return [key.value, rowId.value];
}

/** Whether this mirror, or another of its kind, made the cursor. */
export function isOwnCursor(text: string): boolean {
  return Buffer.from(text, "base64").subarray(0, PREFIX.length).equals(PREFIX);
}

function pack(value: CursorKey): Buffer {
  if (value === null) return Buffer.from([0xc0]);
  if (typeof value === "string") {
    const text = Buffer.from(value);
    const head = Buffer.alloc(3);
    head[0] = 0xda;
    head.writeUInt16BE(text.length, 1);
    return Buffer.concat([head, text]);
  }
  const bytes = Buffer.alloc(value > 0xffff_ffff ? 9 : 5);
  bytes[0] = value > 0xffff_ffff ? 0xcf : 0xce;
  if (value > 0xffff_ffff) bytes.writeBigUInt64BE(BigInt(value), 1);
  else bytes.writeUInt32BE(value, 1);
  return bytes;
}

function unpack(bytes: Buffer, at: number): { value: CursorKey; end: number } | null {
  const size = { 192: 1, 206: 5, 207: 9, 218: 3 }[bytes[at] ?? 0];
  if (size === undefined || at + size > bytes.length) return null;
  switch (bytes[at]) {
    case 0xc0:
      return { value: null, end: at + 1 };
    case 0xce:
      return { value: bytes.readUInt32BE(at + 1), end: at + 5 };
    case 0xcf: {
      const value = Number(bytes.readBigUInt64BE(at + 1));
      return Number.isSafeInteger(value) ? { value, end: at + 9 } : null;
    }
    default: {
      const end = at + 3 + bytes.readUInt16BE(at + 1);
      return end <= bytes.length ? { value: bytes.toString("utf8", at + 3, end), end } : null;
    }
  }
}

/** The place of a page among the others of its list. `last` is the number of the last page. */
export interface NumberedPage {
  page: number;
  last: number;
}

/**
 * The links of a numbered page. First page: next, last. Last page: prev, first. In between: all four. Beyond the last
 * page: prev, last, first, and both of the former are the last page that has rows. Null: there is one page, however far
 * beyond it was asked.
 */
export function numberedLink(address: string, query: URLSearchParams, { page, last }: NumberedPage): string | null {
  if (last <= 1) return null;
  const links: string[] = [];
  const add = (rel: string, number: number) => links.push(link(address, query, { page: String(number) }, rel));
  if (page > 1) add("prev", Math.min(page - 1, last));
  if (page < last) add("next", page + 1);
  if (page !== last) add("last", last);
  if (page > 1) add("first", 1);
  return joined(links);
}

/**
 * The links of a page that is found by cursor. The service names neither a first nor a last page. It writes the size
 * that was applied, and counts pages only where the caller did, or sent no cursor.
 */
export function cursorLink(
  address: string,
  query: URLSearchParams,
  { page, size, next, previous }: { page: number; size: number; next: string | null; previous: string | null },
): string | null {
  const sized = new URLSearchParams([...query].filter(([name]) => !POSITIONS.has(name)));
  sized.set("per_page", String(size));
  const isCounted = page > 1 || !(query.get("after") || query.get("before"));
  const counted = (number: number) => (isCounted ? { page: String(number) } : {});
  const links: string[] = [];
  if (next !== null) links.push(link(address, sized, { after: next, ...counted(page + 1) }, "next"));
  if (previous !== null)
    links.push(link(address, sized, { before: previous, ...counted(Math.max(1, page - 1)) }, "prev"));
  return joined(links);
}

/** Clients of Node.js read heads of 16 KiB; the other headers take some 2 KiB. */
const MOST_LINK_BYTES = 12 * 1024;

/** Where not all fit, the next page is what a client needs. @throws HttpError 414 when not even that fits */
function joined(links: readonly string[]): string | null {
  const all = links.join(", ");
  if (all.length <= MOST_LINK_BYTES) return all || null;
  const next = links.find((one) => one.endsWith('rel="next"'));
  if (next === undefined || next.length <= MOST_LINK_BYTES) return next ?? null;
  throw new HttpError(414, "URI Too Long: the links to other pages would be longer than clients read");
}

const POSITIONS: ReadonlySet<string> = new Set(["page", "after", "before"]);

/** One link: the query with the new position. A `page` that was asked for keeps its place. */
function link(address: string, query: URLSearchParams, position: Record<string, string>, rel: string): string {
  const asked = new URLSearchParams(query);
  for (const [name, value] of Object.entries(position)) asked.set(name, value);
  return `<${address}?${asked}>; rel="${rel}"`;
}
