/**
 * REST documents as they were recorded, served in place of what the world would show. Addresses are moved to this
 * server; fields that the recording does not have (it may be years old) are filled in from the world's own view.
 */

import { isJsonObject } from "../world/json.ts";
import type { Issue, RecordedDocuments } from "../world/records.ts";
import type { Json, View } from "./view.ts";

const RECORDED_API = "https://api.github.com";
const RECORDED_PAGES = "https://github.com";

/** What to serve: the modelled view, or the recording over it. */
export function asRecorded(view: View, issue: Issue, form: keyof RecordedDocuments, modelled: Json): Json {
  const recorded = view.world.recorded.get(issue.id)?.[form];
  return recorded === undefined ? modelled : shownOf(view, recorded, modelled);
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
  return isJsonObject(recorded) ? shownOf(view, recorded, modelled) : recorded;
}

function shownOf(view: View, recorded: object, modelled: unknown): Json {
  const fill = isJsonObject(modelled) ? modelled : {};
  const shown: Json = {};
  for (const [name, value] of Object.entries(recorded)) shown[name] = over(view, value, fill[name]);
  for (const [name, value] of Object.entries(fill)) if (!(name in shown)) shown[name] = value;
  return shown;
}

function sameId(a: unknown, b: unknown): boolean {
  return isJsonObject(a) && isJsonObject(b) && a.id === b.id;
}

function rebased(view: View, text: string): string {
  if (text.startsWith(`${RECORDED_API}/`)) return view.apiUrl + text.slice(RECORDED_API.length);
  // Bodies and descriptions begin with links too, but hold more than an address.
  if (text.startsWith(`${RECORDED_PAGES}/`) && !/\s/.test(text))
    return view.htmlUrl + text.slice(RECORDED_PAGES.length);
  return text;
}
