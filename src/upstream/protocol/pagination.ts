import type { GetOptions, Links, ReadAnswer, Upstream } from "./upstream.ts";

/**
 * Reads a Link header. Pure.
 * Other relations are left out: `rel="deprecation"` comes with answers that have no pages at all.
 * @param toPath turns an address into a path, or throws if the address is not below the base
 */
export function parseLinks(header: string | undefined, toPath: (url: string) => string): Links {
  const links: Links = {};
  for (const [, url, parameters] of (header ?? "").matchAll(
    /<([^>]*)>((?:\s*;\s*[\w*-]+\s*=\s*(?:"[^"]*"|[^\s;,"]+))*)/g,
  )) {
    const relations = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]+))/i.exec(parameters ?? "");
    for (const relation of (relations?.[1] ?? relations?.[2] ?? "").toLowerCase().split(/\s+/)) {
      if (url && isPageRelation(relation)) links[relation] ??= toPath(url);
    }
  }
  return links;
}

function isPageRelation(relation: string): relation is keyof Links {
  return relation === "next" || relation === "prev" || relation === "first" || relation === "last";
}

/** How many pages are left from `path` on; null if no last page is named, as in lists paged by cursor. Pure. */
export function pagesLeft(path: string, { last }: Links): number | null {
  const lastPage = last === undefined ? null : pageOfPath(last);
  return lastPage === null ? null : lastPage - (pageOfPath(path) ?? 1) + 1;
}

/** The parameters that say where in a list a page begins, beside its number. */
const CURSORS: readonly string[] = ["after", "before", "cursor", "since"];

/** Whether `next` comes after the page at `path`: it has a later number, or another cursor. Pure. */
export function isLater(next: string, path: string): boolean {
  const [named, asked] = [queryOf(next), queryOf(path)];
  const hasMoved = CURSORS.some((name) => named.get(name) !== asked.get(name));
  return hasMoved || (pageOfPath(next) ?? 1) > (pageOfPath(path) ?? 1);
}

/** The `page` of a path, as a number, so that page 10 comes after page 9. */
export function pageOfPath(path: string): number | null {
  const page = queryOf(path).get("page");
  return page !== null && /^\d+$/.test(page) ? Number(page) : null;
}

function queryOf(path: string): URLSearchParams {
  return new URLSearchParams(path.split("?")[1] ?? "");
}

/**
 * Whether the page holds as many rows as were asked for. A 304 for such a page does not say that it is still the last
 * page: the ETag covers the body and not the Link header. Pure.
 */
export function isFullPage(path: string, body: unknown): boolean {
  // A list inside an object has a `total_count` beside it, so the ETag changes with every added or removed row.
  if (!Array.isArray(body)) return false;
  // GitHub answers all matching references at once, however many are asked for.
  if (path.includes("/git/matching-refs/")) return false;
  const asked = Number(queryOf(path).get("per_page"));
  // GitHub docs: 30 by default; more than 100 is served as 100.
  const size = Number.isInteger(asked) && asked > 0 ? Math.min(asked, 100) : 30;
  return body.length >= size;
}

/** One answer of a walk, with its path: the walk can be resumed there. */
export type Page = { path: string } & ReadAnswer;

/**
 * Walks a list from `path` along `rel="next"`, with one page in memory at a time. A moved or missing page ends the
 * walk: the caller sees it as the last answer. After an unchanged page the walk continues with the page known to
 * follow.
 * @throws what `Upstream.get` throws; the walk can be resumed at the page that failed
 */
export async function* pages(upstream: Pick<Upstream, "get">, path: string, options: GetOptions): AsyncGenerator<Page> {
  for (let at: string | null = path; at !== null; ) {
    const answer: ReadAnswer = await upstream.get(at, options);
    yield { path: at, ...answer };
    at = answer.kind === "ok" ? (answer.links.next ?? null) : answer.kind === "unchanged" ? answer.next : null;
  }
}
