/**
 * The free question whether a full last page has a successor by now. The page's own 304 does not tell, because an ETag
 * does not cover the Link header.
 *
 * - page: the list is paged by number, so the next page has an address. While there is no such page, it is an empty
 *   list.
 * - newest: only upstream can make the list's cursors, but the list is in order of creation. While the last row is the
 *   newest of all, no page follows.
 *
 * Null: there is no such question, and the page has to be read again. Pure.
 */
export function successorQuestion(path: string): { kind: "page" | "newest"; path: string } | null {
  const [route = "", text = ""] = path.split("?");
  const query = new URLSearchParams(text);
  if (query.get("sort") === "created" && query.get("direction") === "asc") {
    for (const name of ["page", "after", "before"]) query.delete(name);
    query.set("direction", "desc");
    query.set("per_page", "1");
    return { kind: "newest", path: `${route}?${query}` };
  }
  const isByCursor =
    ["after", "before", "cursor"].some((name) => query.has(name)) || /\/(issues|deliveries)$/.test(route);
  const page = Number(query.get("page") ?? 1);
  if (isByCursor || !Number.isInteger(page) || page < 1) return null;
  query.set("page", String(page + 1));
  return { kind: "page", path: `${route}?${query}` };
}
