import type { LoggedEvent } from "../../events/log-reads.ts";
import { type Fields, isObject, numberOf, objectOf, textOf } from "../../json.ts";
import { resources } from "../../kinds/registry.ts";

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

/** An event as CloudEvents 1.0 has it, as one line of JSON. `data` is the payload as JSON. Pure. */
export function envelopeOf(
  { id, guid, event, action, receivedAt, isMade }: LoggedEvent,
  { source, payload, data }: { source: string; payload: Fields | null; data: string },
): string {
  const subject = payload && subjectPath(payload);
  const head = JSON.stringify({
    specversion: "1.0",
    id: String(id),
    source,
    type: action === null ? `com.github.${event}` : `com.github.${event}.${action}`,
    ...(subject === null ? {} : { subject }),
    time: receivedAt.toISOString(),
    githubdelivery: guid,
    ...(isMade ? { tainmade: true } : {}),
    datacontenttype: "application/json",
  });
  // JSON may have line breaks between its values, but not within its texts.
  return `${head.slice(0, -1)},"data":${data.replaceAll(/[\r\n]+/g, " ")}}`;
}

/** The path of an event's subject below its repository's address; null: the repository itself. Pure. */
function subjectPath(payload: Fields): string | null {
  const numbered = (key: string) => numberOf(objectOf(payload[key]).number);
  const pull = numbered("pull_request");
  if (pull !== null) return `pulls/${pull}`;
  const issue = numbered("issue");
  if (issue !== null) return `${isObject(objectOf(payload.issue).pull_request) ? "pulls" : "issues"}/${issue}`;
  const milestone = numbered("milestone");
  if (milestone !== null) return `milestones/${milestone}`;
  const label = textOf(objectOf(payload.label).name);
  if (label !== null) return `labels/${encodeURIComponent(label)}`;
  for (const [key, pathOf] of PATHS) {
    const id = numberOf(objectOf(payload[key]).id);
    if (id !== null) return pathOf(id);
  }
  const sha = textOf(payload.sha);
  return sha === null ? textOf(payload.ref) : `commits/${sha}`;
}

/** The paths of subjects that are known by their ids, by their keys in the payload. */
const PATHS: ReadonlyMap<string, (id: number) => string> = new Map([
  ...resources.flatMap(({ part, events, upstream: { path, numberColumn } }) =>
    part !== null && events && path && numberColumn === undefined
      ? [[events.in, (id: number) => path(id, null).slice(1)] as const]
      : [],
  ),
  ["workflow_job", (id: number) => `actions/jobs/${id}`],
  ["workflow_run", (id: number) => `actions/runs/${id}`],
]);

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
