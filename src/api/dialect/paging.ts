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
 * The links of a numbered page. First page: next, last. Last page: prev, first. In between: all four. Null: there is
 * one page.
 */
export function numberedLink(address: string, query: URLSearchParams, { page, last }: NumberedPage): string | null {
  const links: string[] = [];
  const add = (rel: string, number: number) => links.push(link(address, query, { page: String(number) }, rel));
  if (page > 1) add("prev", Math.min(page - 1, Math.max(last, 1)));
  if (page < last) {
    add("next", page + 1);
    add("last", last);
  }
  if (page > 1) add("first", 1);
  return links.length > 0 ? links.join(", ") : null;
}

/** The links of a page that is found by cursor. The service names neither a first nor a last page. */
export function cursorLink(
  address: string,
  query: URLSearchParams,
  { page, next, previous }: { page: number; next: string | null; previous: string | null },
): string | null {
  const links: string[] = [];
  if (next !== null) links.push(link(address, query, { after: next, page: String(page + 1) }, "next"));
  if (previous !== null)
    links.push(link(address, query, { before: previous, page: String(Math.max(1, page - 1)) }, "prev"));
  return links.length > 0 ? links.join(", ") : null;
}

const POSITIONS: ReadonlySet<string> = new Set(["page", "after", "before"]);

/** One link: the query's own parameters in their order, then the new position. */
function link(address: string, query: URLSearchParams, position: Record<string, string>, rel: string): string {
  const asked = new URLSearchParams([...query].filter(([name]) => !POSITIONS.has(name)));
  for (const [name, value] of Object.entries(position)) asked.append(name, value);
  return `<${address}?${asked}>; rel="${rel}"`;
}
