import type { IncomingHttpHeaders } from "node:http";
import { ApiFault } from "../dialect/fault.ts";
import { type FeedForm, feedFormOf } from "./envelope.ts";

/** What a reader asks of the feed. */
export interface FeedQuestion {
  form: FeedForm;
  /** The last place that the reader has read. Null: the reader begins with the next event. */
  since: number | null;
  /** The repositories, as `owner/name`. Null: all that the reader may see. */
  repositories: readonly string[] | null;
  events: readonly string[] | null;
  actions: readonly string[] | null;
}

const KNOWN: readonly string[] = ["since", "repository", "event", "action"];

/** The most names of each filter. A reader with a longer list does better without a filter. */
const MOST_NAMED = 100;

/** Reads the question. Pure. @throws ApiFault 406, 400 */
export function readQuestion(headers: IncomingHttpHeaders, query: URLSearchParams): FeedQuestion {
  const form = feedFormOf(headers.accept);
  if (!form) throw new ApiFault(406, "The feed is served as text/event-stream and as application/x-ndjson.");
  // A misspelt filter would let through events that nobody asked for.
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
  // A client that reconnects sends this header, and the address that it began with.
  const last = headers["last-event-id"];
  const since = (typeof last === "string" && last !== "" ? last : null) ?? query.get("since");
  return {
    form,
    since: since === null ? null : eventIdOf(since),
    repositories: named("repository"),
    events: named("event"),
    actions: named("action"),
  };
}

function eventIdOf(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new ApiFault(400, "since, or Last-Event-ID, is the id of an event: a number.");
  return Number(text);
}
