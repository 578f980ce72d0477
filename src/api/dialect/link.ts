/** Writes `Link` as the service does. Pure. */

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

const POSITIONS = new Set(["page", "after", "before"]);

/** One link: the query's own parameters in their order, then the new position. */
function link(address: string, query: URLSearchParams, position: Record<string, string>, rel: string): string {
  const asked = new URLSearchParams([...query].filter(([name]) => !POSITIONS.has(name)));
  for (const [name, value] of Object.entries(position)) asked.append(name, value);
  return `<${address}?${asked}>; rel="${rel}"`;
}
