/** How a feed is written: server-sent events, or one JSON document a line. */
export type FeedForm = "sse" | "ndjson";

export const CONTENT_TYPES: Readonly<Record<FeedForm, string>> = {
  sse: "text/event-stream; charset=utf-8",
  ndjson: "application/x-ndjson; charset=utf-8",
};

/** The form that an `Accept` header asks for. Null: neither of the two. Pure. */
export function feedFormOf(accept: string | undefined): FeedForm | null {
  if (accept === undefined || /\btext\/event-stream\b/.test(accept)) return "sse";
  if (/\bapplication\/(x-ndjson|ndjson|jsonl)\b/.test(accept)) return "ndjson";
  return /\*\/\*|\btext\/\*/.test(accept) ? "sse" : null;
}

/** The text of an event. Pure. */
export function eventText(form: FeedForm, id: number, envelope: string): string {
  return form === "sse" ? `id: ${id}\ndata: ${envelope}\n\n` : `${envelope}\n`;
}

/**
 * The text of a sign of life. It names the place up to which all was told, so that its reader can go on from there.
 * Pure.
 */
export function signText(form: FeedForm, id: number, source: string): string {
  // Readers remember an id without data, and take it for no event.
  return form === "sse" ? `:\nid: ${id}\n\n` : `${cloudEvent(id, source, "tain.bookmark")}\n`;
}

/** The text that ends a stream: why it ends, and the place to continue from. Pure. */
export function endText(form: FeedForm, id: number, source: string, message: string): string {
  if (form === "ndjson") return `${cloudEvent(id, source, "tain.end", { data: { message } })}\n`;
  return `event: end\nid: ${id}\ndata: ${JSON.stringify({ message, since: String(id) })}\n\n`;
}

function cloudEvent(id: number, source: string, type: string, more: object = {}): string {
  return JSON.stringify({ specversion: "1.0", id: String(id), source, type, ...more });
}
