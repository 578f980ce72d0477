import { rootReasonOf } from "../../failure.ts";
import { type Fields, objectOf, parseStored, textOf } from "../../json.ts";
import { VERSION } from "../../version.ts";
import { CommandError } from "../terminal/command.ts";
import { type FeedLine, linesOf } from "./lines.ts";

/** The time after which a silent connection counts as broken: the server sends a sign of life three times in it. */
const STREAM_SILENT_MS = 45_000;

export interface FeedAddress {
  url: string;
  token: string;
  query: URLSearchParams;
}

/** The stream has ended and can be opened again. `afterMs`: the wait that the server asked for; null: none. */
export interface Interrupted {
  reason: string;
  afterMs: number | null;
}

/**
 * Opens one connection to the feed, and yields its lines until it ends.
 * @throws CommandError for an error that will not pass by itself
 */
export async function* connect(
  { url, token, query }: FeedAddress,
  since: string | null,
  leaving: AbortSignal,
): AsyncGenerator<FeedLine, Interrupted> {
  const silent = new AbortController();
  const watch = setTimeout(() => silent.abort(new Error("nothing was heard for 45 seconds")), STREAM_SILENT_MS);
  try {
    const answer = await fetch(`${url}/-/events?${query}`, {
      headers: {
        authorization: `Bearer ${token}`,
        accept: "application/x-ndjson",
        "user-agent": `tain/${VERSION}`,
        ...(since === null ? {} : { "last-event-id": since }),
      },
      signal: AbortSignal.any([leaving, silent.signal]),
    });
    if (!answer.ok) return await feedRefusal(answer);
    yield* linesOf(answer, () => watch.refresh());
    return { reason: "the connection was closed", afterMs: null };
  } catch (error) {
    if (error instanceof CommandError || leaving.aborted) throw error;
    return { reason: `the mirror does not answer (${rootReasonOf(error)})`, afterMs: null };
  } finally {
    clearTimeout(watch);
  }
}

/** @throws CommandError */
async function feedRefusal(answer: Response): Promise<Interrupted> {
  const body = await answer.text();
  const reason = messageIn(body) ?? `the mirror answers ${answer.status}`;
  const { status, headers } = answer;
  const seconds = Number(headers.get("retry-after"));
  if (status >= 500 || status === 429) return { reason, afterMs: seconds > 0 ? seconds * 1_000 : null };
  const reset = Number(headers.get("x-ratelimit-reset"));
  if (status === 403 && headers.get("x-ratelimit-remaining") === "0" && reset > 0)
    return { reason, afterMs: Math.max(1_000, reset * 1_000 - Date.now()) };
  if (status === 404)
    throw new CommandError("The mirror shows no such repository, or has no feed: see `tain status`, and its version");
  throw new CommandError(reason);
}

function messageIn(body: string): string | null {
  try {
    return textOf(objectOf(parseStored<Fields>(body)).message);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
