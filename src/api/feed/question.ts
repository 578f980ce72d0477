import type { IncomingHttpHeaders } from "node:http";
import { ApiFault } from "../dialect/fault.ts";
import { type FeedForm, feedFormOf } from "./envelope.ts";

/** What a reader asks of the feed. */
export interface FeedQuestion {
  form: FeedForm;
  /** The last place that they have read; null: they begin with what comes next. */
  since: number | null;
  /** `owner/name`; null: all that they may see. */
  repositories: readonly string[] | null;
  events: readonly string[] | null;
  actions: readonly string[] | null;
}

const KNOWN = ["since", "repository", "event", "action"];

/** Of each: a longer filter is better none. */
const MOST_NAMED = 100;

/** Pure. @throws ApiFault 406, 400 */
export function readQuestion(headers: IncomingHttpHeaders, query: URLSearchParams): FeedQuestion {
  const form = feedFormOf(headers.accept);
  if (!form) throw new ApiFault(406, "The feed is served as text/event-stream and as application/x-ndjson.");
  // A filter that is misspelt would let through what nobody asked for.
  const unknown = [...query.keys()].find((name) => !KNOWN.includes(name));
  if (unknown !== undefined)
    throw new ApiFault(400, `There is no parameter ${unknown}: there are ${KNOWN.join(", ")}.`);
  const named = (name: string) => {
    const all = query.getAll(name).flatMap((text) =>
      text
        .split(",")
        .map((one) => one.trim())
        .filter(Boolean),
    );
    if (all.length > MOST_NAMED) throw new ApiFault(400, `${name} may be given ${MOST_NAMED} times at most.`);
    return all.length > 0 ? [...new Set(all)] : null;
  };
  // A client that comes again sends the header beside the address that it began with.
  const last = headers["last-event-id"];
  const since = (typeof last === "string" && last !== "" ? last : null) ?? query.get("since");
  return {
    form,
    since: since === null ? null : placeOf(since),
    repositories: named("repository"),
    events: named("event"),
    actions: named("action"),
  };
}

function placeOf(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new ApiFault(400, "since, or Last-Event-ID, is the id of an event: a number.");
  return Number(text);
}
