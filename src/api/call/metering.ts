import type { Histogram } from "prom-client";
import type { Context } from "../../context.ts";
import type { Exchange } from "../../http/exchange.ts";
import type { Reply } from "../../http/reply.ts";
import { isRead } from "../../http/reply.ts";
import type { ActivityFigure } from "../../operations/activity.ts";
import { BoundedLabel } from "../../operations/metrics.ts";
import type { Caller } from "../callers/permissions.ts";
import { type Served, type Source, Sparing } from "../callers/spared.ts";
import { failureStatus } from "./failure.ts";

/** The count of requests with these labels. */
interface Tally {
  readonly labels: {
    route: string;
    method: string;
    status: number;
    caller: string;
    source: Source;
    agent: string;
  };
  count: number;
  /** The part of `count` that was added to the Prometheus counters already. The next scrape adds the rest. */
  added: number;
}

/** What is known so far of one request, for its labels. */
export interface RequestFigures {
  /** The request's route, such as `/repos/{owner}/{repo}`. */
  route: string;
  method: string;
  agent: string;
  caller: "unknown" | "anonymous" | "own" | "upstream";
  source: Source;
  /** The name of the credential whose quota upstream would have charged. Empty: unknown. */
  payer: string;
  /**
   * What upstream would charge for the request, in requests or in points of GraphQL. 0: the mirror asks upstream
   * anyway, so nothing is spared.
   */
  price: number;
  /** When the request began, by the monotonic clock. */
  startedAt: number;
}

/** A tally, and what its answers spared. */
interface CountedRequest {
  tally: Tally;
  served: Served | null;
  /** How many answers of this kind have still to be noted in `Sparing`. */
  waiting: number;
}

/**
 * Enough for every operation with each kind of caller and a dozen programs. Later combinations are counted under the
 * program "other".
 */
const MOST_TALLIES = 10_000;
const MOST_AGENTS = 50;
const ANSWER_SECONDS: readonly number[] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** The program's name in a `User-Agent`: the text before the version. */
const PROGRAM = /^[\w.-]+(?: (?:CLI|Ruby Gem|Desktop))?(?=[/ ]|$)/;

/** How often the waiting counts of answers from memory are noted. */
const NOTED_MS = 2_000;
/** Statuses that spare no quota: upstream does not charge for them, or they are the mirror's own refusals. */
const SPARES_NOTHING: ReadonlySet<number> = new Set([304, 401, 403, 429]);

const ACTIVITY_SOURCES = {
  mirror: "byMirror",
  kept: "byKept",
  cache: "byKept",
  forwarded: "byForwarding",
} as const satisfies Record<Source, ActivityFigure>;

/** Counts callers' requests. */
export class ApiMeter {
  readonly #sparing: Sparing;
  readonly #timer: NodeJS.Timeout;
  #waiting: CountedRequest[] = [];
  readonly #tallies = new Map<string, Tally>();
  readonly #agents = new BoundedLabel(MOST_AGENTS);
  readonly #seconds: Histogram<"route" | "method">;
  readonly #activity: Context["metrics"]["activity"];

  constructor({ metrics, ...ctx }: Pick<Context, "metrics" | "redis" | "config" | "clock" | "log">) {
    this.#sparing = new Sparing(ctx);
    this.#activity = metrics.activity;
    this.#activity.tellOf("byMirror", "byKept", "byForwarding", "sparedRequests", "sparedPoints");
    this.#timer = setInterval(() => this.#note(), NOTED_MS).unref();
    this.#seconds = metrics.histogram(
      "tain_api_request_duration_seconds",
      "From a request's arrival to the beginning of its answer, for what was not kept.",
      ["route", "method"],
      ANSWER_SECONDS,
    );
    const requests = metrics.counter("tain_api_requests_total", "Callers' requests that were answered.", [
      "route",
      "method",
      "status",
      "caller",
      "source",
    ]);
    const programs = metrics.counter("tain_api_agent_requests_total", "The same, by the program that asked.", [
      "agent",
      "caller",
      "source",
    ]);
    metrics.beforeScrape(() => {
      for (const tally of this.#tallies.values()) {
        const { agent, ...labels } = tally.labels;
        const since = tally.count - tally.added;
        tally.added = tally.count;
        requests.inc(labels, since);
        programs.inc({ agent, caller: labels.caller, source: labels.source }, since);
      }
    });
  }

  begin(route: string, method: string, userAgent: string | undefined): RequestFigures {
    const agent = this.#agents.of(PROGRAM.exec(userAgent ?? "")?.[0] ?? "unnamed");
    // The price of a GraphQL request is known only after its document was read.
    const price = route === "/graphql" || !isRead(method) ? 0 : 1;
    const startedAt = performance.now();
    return { route, method, agent, caller: "unknown", source: "mirror", payer: "", price, startedAt };
  }

  /** Notes what is known of the caller. */
  identified(metered: RequestFigures, caller: Caller): void {
    metered.caller = callerKind(caller);
    metered.payer = caller.kind === "anonymous" ? "strangers" : caller.quotaName;
  }

  /** Writes the waiting counts. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#note();
    await this.#sparing.flush();
  }

  #note(): void {
    for (const counted of this.#waiting.splice(0)) {
      if (counted.served) this.#noteServed(counted.served, counted.waiting);
      counted.waiting = 0;
    }
  }

  #noteServed(served: Served, times: number): void {
    this.#sparing.note(served, times);
    this.#activity.add(ACTIVITY_SOURCES[served.source], times);
    this.#activity.add(served.bucket === "points" ? "sparedPoints" : "sparedRequests", served.spared * times);
  }

  /** Counts the outcome of a request. A failure counts under the status that its caller receives. */
  async around(exchange: Exchange, metered: RequestFigures, answer: () => Promise<Reply>): Promise<Reply> {
    try {
      const reply = await answer();
      this.end(metered, reply.status);
      return reply;
    } catch (error) {
      // A caller who has gone away gets no answer, and their reads were cancelled.
      if (!exchange.gone.aborted) this.end(metered, failureStatus(error));
      throw error;
    } finally {
      const { route, method, caller, source } = metered;
      exchange.span?.updateName(`${method} ${route}`);
      exchange.span?.setAttributes({ "http.route": route, "tain.caller": caller, "tain.source": source });
    }
  }

  end(metered: RequestFigures, status: number): void {
    const { route, method, source, startedAt } = metered;
    this.counter(metered, status)();
    if (source !== "kept") this.#seconds.observe({ route, method }, (performance.now() - startedAt) / 1_000);
  }

  /** Returns a function that counts one more answer of this kind. It serves repeated requests from memory. */
  counter(metered: RequestFigures, status: number): () => void {
    const counted: CountedRequest = {
      tally: this.#tally(metered, status),
      served: servedAs(metered, status),
      waiting: 0,
    };
    return () => {
      counted.tally.count += 1;
      if (counted.served && counted.waiting++ === 0) this.#waiting.push(counted);
    };
  }

  #tally({ route, method, agent, caller, source }: Omit<RequestFigures, "payer" | "price">, status: number): Tally {
    const key = `${route} ${method} ${status} ${caller} ${source} ${agent}`;
    const known = this.#tallies.get(key);
    if (known) return known;
    if (this.#tallies.size >= MOST_TALLIES && agent !== "other")
      return this.#tally({ route, method, agent: "other", caller, source, startedAt: 0 }, status);
    const made = { labels: { route, method, status, caller, source, agent }, count: 0, added: 0 };
    this.#tallies.set(key, made);
    return made;
  }
}

function servedAs({ route, payer, price, source }: RequestFigures, status: number): Served | null {
  if (payer === "") return null;
  const isSpared = source !== "forwarded" && status < 500 && !SPARES_NOTHING.has(status);
  const bucket = route === "/graphql" ? "points" : "requests";
  return { caller: payer, bucket, source, spared: isSpared ? price : 0 };
}

function callerKind(caller: Caller): RequestFigures["caller"] {
  return caller.kind === "anonymous" ? "anonymous" : caller.by.of;
}
