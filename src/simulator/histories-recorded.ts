/**
 * REST documents as they were recorded, served in place of what the world would show. Addresses are moved to this
 * server; fields that the recording does not have (it may be years old) are filled in from the world's own view.
 */
import type { Issue, RecordedDocuments } from "./records.ts";
import type { Json, View } from "./views/view.ts";

const RECORDED_API = "https://api.github.com";
const RECORDED_PAGES = "https://github.com";

/** What to serve: the modelled view, or the recording over it. */
export function asRecorded(view: View, issue: Issue, form: keyof RecordedDocuments, modelled: Json): Json {
  const recorded = view.world.recorded.get(issue.id)?.[form];
  return recorded === undefined ? modelled : (over(view, recorded, modelled) as Json);
}

function over(view: View, recorded: unknown, modelled: unknown): unknown {
  if (typeof recorded === "string") return rebased(view, recorded);
  if (Array.isArray(recorded)) {
    const rows = Array.isArray(modelled) ? modelled : [];
    return recorded.map((row) =>
      over(
        view,
        row,
        rows.find((other) => sameId(row, other)),
      ),
    );
  }
  if (typeof recorded !== "object" || recorded === null) return recorded;
  const fill = typeof modelled === "object" && modelled !== null && !Array.isArray(modelled) ? (modelled as Json) : {};
  const shown: Json = {};
  for (const [name, value] of Object.entries(recorded)) shown[name] = over(view, value, fill[name]);
  for (const [name, value] of Object.entries(fill)) if (!(name in shown)) shown[name] = value;
  return shown;
}

function sameId(a: unknown, b: unknown): boolean {
  return (
    typeof a === "object" && a !== null && typeof b === "object" && b !== null && (a as Json).id === (b as Json).id
  );
}

function rebased(view: View, text: string): string {
  if (text.startsWith(`${RECORDED_API}/`)) return view.apiUrl + text.slice(RECORDED_API.length);
  // Bodies and descriptions begin with links too, but hold more than an address.
  if (text.startsWith(`${RECORDED_PAGES}/`) && !/\s/.test(text))
    return view.htmlUrl + text.slice(RECORDED_PAGES.length);
  return text;
}
