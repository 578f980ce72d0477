import { parseStored } from "../../json.ts";
import { pageOfPath } from "../../upstream/protocol/pagination.ts";
import { PAGES_A_WINDOW, type StoredPage } from "../reads/pages.ts";

/**
 * A long list in the order of changes is read in windows of ten pages. A window begins at a time, and its pages have
 * numbers. Windows save requests. Where each page begins at a time, the rows of that second are read twice.
 *
 * Pages of a window are read from the last to the first. A row that changes or is deleted meanwhile leaves its place.
 * All rows behind it move to the front, into pages that are still to be read. The first page says how long the list is.
 * So it is read before the others, and again after them, which is free while it is unchanged. One case is left to the
 * audit: a replica that lags may hide a row, if another row left the list within that lag.
 */
interface WindowPlace {
  /** The address of its first page. */
  first: string;
  /** The number of the page that is read next. */
  page: number;
  /** Where the list goes on behind the window; null: nowhere, or not known before the window's last page is read. */
  next: string | null;
}

/** Where a list is read next: an address, or a place in a window as text. */
export function addressOf(cursor: string): string {
  const place = windowPlace(cursor);
  if (place === null) return cursor;
  return place.page === 1 ? place.first : `${place.first}&page=${place.page}`;
}

/** What a page has brought, and the cursor after it. Pure. */
export function stepAfter(
  cursor: string,
  { next, resources, pagesLeft }: Pick<StoredPage, "next" | "resources" | "pagesLeft">,
): Pick<StoredPage, "next" | "resources" | "pagesLeft"> & { pages: number } {
  const place = windowPlace(cursor);
  if (place === null) {
    const isWindow = next !== null && pageOfPath(next) === PAGES_A_WINDOW && pageOfPath(cursor) === null;
    return {
      next: isWindow ? windowCursor({ first: cursor, page: PAGES_A_WINDOW, next: null }) : next,
      resources,
      pagesLeft,
      pages: 1,
    };
  }
  const { first, page } = place;
  if (page === 1) return { next: place.next, resources: 0, pagesLeft: null, pages: 0 };
  const behind = page === PAGES_A_WINDOW ? next : place.next;
  return { next: windowCursor({ first, page: page - 1, next: behind }), resources, pagesLeft: null, pages: 1 };
}

/**
 * A cursor as it is stored: the address of its window's beginning, and the place in the window. A worker that knows no
 * windows goes on from the address. Pure.
 */
export function storedCursor(cursor: string | null): { cursor: string | null; place: string | null } {
  const place = cursor === null ? null : windowPlace(cursor);
  return place === null ? { cursor, place: null } : { cursor: place.first, place: cursor };
}

/**
 * Reads a stored cursor. A worker that knows no windows moves the address and leaves the place, so the place counts
 * only while the address is that of its window. Pure.
 */
export function resumedCursor(stored: { cursor: string | null; place: string | null }): string | null {
  const place = stored.place === null ? null : windowPlace(stored.place);
  return place !== null && place.first === stored.cursor ? stored.place : stored.cursor;
}

function windowPlace(cursor: string): WindowPlace | null {
  return cursor.startsWith("{") ? parseStored<WindowPlace>(cursor) : null;
}

function windowCursor(place: WindowPlace): string {
  return JSON.stringify(place);
}
