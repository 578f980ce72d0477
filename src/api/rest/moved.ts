import { type Answer, type Call, isRead } from "../call.ts";

/** Where to ask instead. Reads may be repeated anywhere; a write must be repeated as the write that it is. */
export function moved({ method, api, query }: Call, path: string): Answer {
  const location = `${api}${path}${query.size > 0 ? `?${query}` : ""}`;
  const body = JSON.stringify({
    message: isRead(method) ? "Moved Permanently" : "Temporary Redirect",
    url: location,
    documentation_url: "https://docs.github.com/rest/guides/best-practices-for-using-the-rest-api#follow-redirects",
  });
  return { status: isRead(method) ? 301 : 307, body, headers: { Location: location } };
}
