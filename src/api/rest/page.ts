import type { Database } from "../../../db/database.ts";
import type { CountedBounds } from "../../mirror/read/numbered-pages.ts";
import type { RepositoryDocument } from "../../mirror/read/repositories.ts";
import type { StoredDocument } from "../../mirror/render/rendering.ts";
import { type Answer, type Call, ok, type RepositoryCall } from "../call/call.ts";
import { showAll, showList } from "../call/view.ts";
import { learnPublicRights } from "../callers/permissions.ts";
import { joined } from "../dialect/elements.ts";
import { ApiFault } from "../dialect/fault.ts";
import { numberedLink } from "../dialect/paging.ts";
import { pageNumber, pageSize } from "../dialect/protocol.ts";

/** The part of a list that a page number asks for. */
export function askedPage(query: URLSearchParams): { page: number; limit: number; offset: number } {
  const [page, limit] = [pageNumber(query), pageSize(query)];
  return { page, limit, offset: (page - 1) * limit };
}

/** From this row on, Postgres takes as long to pass over the rows before a page as for a search. */
const DEEP_ROW = 10_000;
/** The last row that pages of a bounded list reach. How far the service's own reach is not known. */
const DEEPEST_ROW = 100_000;

/** Where a page is read. A filter that no index serves and a deep page take the place of a search. */
export function pageDb({ ctx, searchDb, query }: Call, { isFiltered = false } = {}): Database {
  return isFiltered || askedPage(query).offset >= DEEP_ROW ? searchDb : ctx.db;
}

/**
 * A page of a list that grows without an end, such as runs. The length of a list that is not filtered is kept while the
 * repository is unchanged; `name` tells it from the repository's other lists.
 * @throws ApiFault 422 for a page that lies too deep, in the words of the service's lists of events
 */
export function boundedPage(call: RepositoryCall, name: string | null): CountedBounds {
  const { page, limit, offset } = askedPage(call.query);
  if (page > 1 && offset >= DEEPEST_ROW)
    throw new ApiFault(422, "In order to keep the API fast for everyone, pagination is limited for this resource.");
  return { limit, offset, ...(name !== null && { counted: (count) => keptTotal(call, name, count) }) };
}

async function keptTotal(
  { ctx, repository: { id }, reading }: RepositoryCall,
  name: string,
  count: () => Promise<number>,
): Promise<number> {
  const { totals } = ctx.mirror;
  const key = `${id} ${name}`;
  const known = await totals.get(key, reading);
  if (known) return known.total;
  const before = reading.soFar();
  const total = await count();
  totals.keep(key, () => ({ total }), { shown: [id], before });
  return total;
}

/** A page of a list whose pages are found by number. */
export async function numberedPage(call: Call, documents: StoredDocument[], total: number): Promise<Answer> {
  const { page, limit } = askedPage(call.query);
  const link = numberedLink(call.api + call.path, call.query, { page, last: Math.ceil(total / limit) });
  return ok(await showList(call, documents), { link });
}

/** The same inside an object that says how many there are. `name`: the key of the list. */
export async function countedPage(
  call: Call,
  name: string,
  documents: StoredDocument[],
  total: number,
): Promise<Answer> {
  const { page, limit } = askedPage(call.query);
  const link = numberedLink(call.api + call.path, call.query, { page, last: Math.ceil(total / limit) });
  const frame = { before: `{"total_count":${total},"${name}":[`, between: ",", behind: "]}" };
  return ok(await joined(await showAll(call, documents), frame, call.ctx.mirror.pace), { link });
}

/** A page of repositories, each with what it permits the caller. */
export async function repositoryPage(call: Call, rows: readonly RepositoryDocument[], total: number): Promise<Answer> {
  await learnPublicRights(call, rows);
  const documents = rows.map(({ id, document }) => ({ repositoryId: id, document }));
  return numberedPage(call, documents, total);
}

/** The number in a path. Null: the segment is no number, and so names nothing. */
export function numberParam(text: string | undefined): number | null {
  return text !== undefined && /^[1-9]\d{0,15}$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : null;
}

/**
 * A number of an issue, pull request or milestone. These have 32 bits in the mirror, so a larger number names nothing.
 */
export function smallNumberParam(text: string | undefined): number | null {
  const value = numberParam(text);
  return value !== null && value <= 0x7fff_ffff ? value : null;
}
