import { Refusal } from "../world/refusal.ts";
import { type Answer, type Call, ok } from "./call.ts";

const DEFAULT_SIZE = 30;
const MAX_SIZE = 100;

/** Larger values are silently reduced; what is no number counts as absent. */
export function pageSize(query: URLSearchParams): number {
  const asked = Number(query.get("per_page") ?? DEFAULT_SIZE);
  return Number.isInteger(asked) && asked > 0 ? Math.min(asked, MAX_SIZE) : DEFAULT_SIZE;
}

export function pageNumber(query: URLSearchParams): number {
  const asked = Number(query.get("page") ?? 1);
  return Number.isInteger(asked) && asked > 0 ? asked : 1;
}

/** Rows in their order, and how many there are, if that is cheaper to know than to count. */
export interface Listing<Row> {
  readonly rows: Iterable<Row>;
  readonly size?: number;
}

/** A list by page number, with up to four rels. `show` may leave a row out (null). */
export function paged<Row>(call: Call, listing: Listing<Row>, show: (row: Row) => unknown): Answer {
  const size = pageSize(call.query);
  const page = pageNumber(call.query);
  const from = (page - 1) * size;
  // No more is known of it than this message; where it begins differs by list.
  if (page > 1 && from >= call.numberedRows())
    throw new Refusal(422, "In order to keep the API fast for everyone, pagination is limited for this resource.");
  const picked: Row[] = [];
  let total = 0;
  for (const row of listing.rows) {
    if (total >= from && total < from + size) picked.push(row);
    total += 1;
    if (listing.size !== undefined && total >= from + size) break;
  }
  total = listing.size ?? total;
  const shown = picked.map(show).filter((row) => row !== null);
  return ok(shown, { links: numberedLinks(call, page, Math.max(1, Math.ceil(total / size))) });
}

/** A list inside an object that says how many there are. */
export function counted<Row>(call: Call, name: string, rows: readonly Row[], show: (row: Row) => unknown): Answer {
  const answer = paged(call, { rows, size: rows.length }, show);
  return { ...answer, body: { total_count: rows.length, [name]: answer.body } };
}

/** Order and choice as the service has them: first page `next, last`; last page `prev, first`; beyond it all but `next`. */
function numberedLinks(call: Call, page: number, last: number): string[] {
  // One page has no links, however far beyond it was asked (brekkylab/backlot, measured 2026-09-04).
  if (last <= 1) return [];
  const links: string[] = [];
  if (page > 1) links.push(numberedLink(call, Math.min(page - 1, last), "prev"));
  if (page < last) links.push(numberedLink(call, page + 1, "next"));
  if (page !== last) links.push(numberedLink(call, last, "last"));
  if (page > 1) links.push(numberedLink(call, 1, "first"));
  return links;
}

/** A page that was asked for keeps its place among the parameters, as in recordings of 2015 and 2023. */
function numberedLink(call: Call, page: number, rel: string): string {
  const query = new URLSearchParams(call.query);
  query.set("page", String(page));
  return `<${call.view.apiUrl}${call.path}?${query}>; rel="${rel}"`;
}

/** A link of a list by cursor: the applied size is always written, a page where one was asked for or no cursor was. */
export function cursorLink(
  call: Call,
  cursor: Readonly<Record<string, string>>,
  { rel, page }: { rel: string; page: number },
): string {
  const { query } = call;
  const counts = pageNumber(query) > 1 || !(query.has("after") || query.has("before"));
  const sized = new URLSearchParams(query);
  sized.set("per_page", String(pageSize(query)));
  return link({ ...call, query: sized }, { ...cursor, ...(counts ? { page: String(page) } : {}) }, rel);
}

/** Query parameters as they came, without the old position; the new position stands at the end. */
export function link(call: Call, position: Readonly<Record<string, string>>, rel: string): string {
  const query = new URLSearchParams();
  for (const [name, value] of call.query) {
    if (name !== "page" && name !== "after" && name !== "before" && name !== "cursor") query.append(name, value);
  }
  for (const [name, value] of Object.entries(position)) query.append(name, value);
  return `<${call.view.apiUrl}${call.path}?${query}>; rel="${rel}"`;
}

export interface Cursor {
  readonly key: number;
  readonly id: number;
}

const CURSOR_PREFIX = "cursor:v2:";

/** `cursor:v2:` and MessagePack `[uint64 key, uint32 id]`, in URL-safe base64 (ids past 2^32 take 64 bits). */
export function writeCursor({ key, id }: Cursor): string {
  const wide = id > 0xffff_ffff;
  const bytes = Buffer.alloc(wide ? 19 : 15);
  bytes[0] = 0x92;
  bytes[1] = 0xcf;
  bytes.writeBigUInt64BE(BigInt(key), 2);
  bytes[10] = wide ? 0xcf : 0xce;
  if (wide) bytes.writeBigUInt64BE(BigInt(id), 11);
  else bytes.writeUInt32BE(id, 11);
  const text = Buffer.concat([Buffer.from(CURSOR_PREFIX), bytes]).toString("base64");
  return text.replaceAll("+", "-").replaceAll("/", "_");
}

/** Refuses what it did not write. */
export function readCursor(text: string): Cursor {
  const bytes = Buffer.from(text, "base64");
  const body = bytes.subarray(CURSOR_PREFIX.length);
  if (
    bytes.toString("latin1", 0, CURSOR_PREFIX.length) !== CURSOR_PREFIX ||
    (body.length !== 15 && body.length !== 19)
  ) {
    throw new Refusal(422, `Invalid cursor: ${text}`);
  }
  const id = body.length === 19 ? Number(body.readBigUInt64BE(11)) : body.readUInt32BE(11);
  return { key: Number(body.readBigUInt64BE(2)), id };
}
