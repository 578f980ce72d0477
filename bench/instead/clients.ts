import { setTimeout as delay } from "node:timers/promises";
import { Agent, request } from "undici";
import { type Answer, digestOf, type Row } from "./truth.ts";

/** Who reads, and how. */
export interface Clients {
  count: number;
  /** Whether each keeps the tag of what it has read, and asks with it. */
  withValidators: boolean;
  /** They share these evenly. */
  tokens: readonly string[];
}

export interface Polling {
  /** Of what stands between the clients and upstream. */
  url: string;
  paths: { lists: readonly string[]; issues: readonly string[] };
  /** How long each waits between two reads. */
  everyMs: number;
  seconds: number;
}

export interface Polled {
  /** Milliseconds until the last byte of each answer that is 200 or 304. */
  latencies: number[];
  asked: number;
  answers: Answer[];
}

const PATIENCE_MS = 10_000;

/** Each client reads a list and a single issue in turn, at its own moment, for so long. */
export async function pollOn(
  { count, withValidators, tokens }: Clients,
  { url, paths, everyMs, seconds }: Polling,
): Promise<Polled> {
  const polled: Polled = { latencies: [], asked: 0, answers: [] };
  const beganAt = performance.now();
  const endsAt = beganAt + seconds * 1_000;
  await using resources = new AsyncDisposableStack();
  const dispatcher = new Agent({ keepAliveTimeout: everyMs * 2 });
  resources.defer(() => dispatcher.close());
  const one = async (client: number) => {
    const held = new Map<string, { etag: string; shown: string }>();
    for (let nth = 0; ; nth++) {
      const dueAt = beganAt + ((client + 0.5) / count) * everyMs + nth * everyMs;
      if (dueAt >= endsAt) return;
      await delay(Math.max(0, dueAt - performance.now()));
      const of = nth % 2 === client % 2 ? paths.lists : paths.issues;
      const path = of[(client + (nth >> 1)) % of.length] as string;
      const known = withValidators ? held.get(path) : undefined;
      const askedAt = performance.now();
      polled.asked += 1;
      try {
        const { statusCode, headers, body } = await request(url + path, {
          dispatcher,
          headersTimeout: PATIENCE_MS,
          bodyTimeout: PATIENCE_MS,
          headers: {
            authorization: `Bearer ${tokens[client % tokens.length]}`,
            "user-agent": "bench",
            accept: "application/vnd.github+json",
            ...(known && { "if-none-match": known.etag }),
          },
        });
        const text = await body.text();
        if (statusCode !== 200 && !(statusCode === 304 && known)) continue;
        polled.latencies.push(performance.now() - askedAt);
        const shown = statusCode === 304 && known ? known.shown : digestOf(JSON.parse(text) as Row | Row[]);
        polled.answers.push({ path, shown, askedAt });
        if (typeof headers.etag === "string") held.set(path, { etag: headers.etag, shown });
      } catch (error) {
        // No answer is one more that is not among the answers.
        if (!(error instanceof Error && "code" in error)) throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: count }, (_, client) => one(client)));
  return polled;
}
