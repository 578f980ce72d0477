import type { Histogram } from "prom-client";
import type { Exchange } from "../http/exchange.ts";
import type { Reply } from "../http/reply.ts";
import { BoundedLabel, type Metrics } from "../operations/metrics.ts";
import type { Caller } from "./callers/caller.ts";
import { failureStatus } from "./dialect/failure.ts";

/**
 * Where an answer comes from: rows of the mirror; an answer that was kept and still stands; upstream, on the caller's behalf; an
 * answer of upstream's that was kept.
 */
export type Source = "mirror" | "kept" | "forwarded" | "cache";

/** Requests that have all of this in common. */
export interface Tally {
  readonly labels: {
    route: string;
    method: string;
    status: number;
    caller: string;
    source: Source;
    agent: string;
  };
  count: number;
  /** Of `count`, what the figures hold already. */
  told: number;
}

/** What is known of a request so far, for the figures. */
export interface RequestFigures {
  /** The form of its path. */
  route: string;
  method: string;
  agent: string;
  caller: "unknown" | "anonymous" | "own" | "upstream";
  source: Source;
  /** By the monotonic clock. */
  startedAt: number;
}

/** Enough for every operation with each kind of caller and a dozen programs; what comes after counts as another program's. */
const MOST_TALLIES = 10_000;
const MOST_AGENTS = 50;
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** What stands before a version, or the whole of a short name. */
const PROGRAM = /^[\w.-]+(?: (?:CLI|Ruby Gem|Desktop))?(?=[/ ]|$)/;

/** Counts callers' requests. */
export class ApiMeter {
  readonly #tallies = new Map<string, Tally>();
  readonly #agents = new BoundedLabel(MOST_AGENTS);
  readonly #seconds: Histogram<"route" | "method">;

  constructor(metrics: Metrics) {
    this.#seconds = metrics.histogram(
      "tain_api_request_duration_seconds",
      "From a request's arrival to the beginning of its answer, for what was not kept.",
      ["route", "method"],
      SECONDS,
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
        const since = tally.count - tally.told;
        tally.told = tally.count;
        requests.inc(labels, since);
        programs.inc({ agent, caller: labels.caller, source: labels.source }, since);
      }
    });
  }

  begin(route: string, method: string, userAgent: string | undefined): RequestFigures {
    const agent = this.#agents.of(PROGRAM.exec(userAgent ?? "")?.[0] ?? "unnamed");
    return { route, method, agent, caller: "unknown", source: "mirror", startedAt: performance.now() };
  }

  /** Counts what comes of a request, a failure by the status that its caller is told. */
  async around(exchange: Exchange, metered: RequestFigures, answer: () => Promise<Reply>): Promise<Reply> {
    try {
      const reply = await answer();
      this.end(metered, reply.status);
      return reply;
    } catch (error) {
      // Who has gone away is told nothing; what was read for them has been cancelled.
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
    this.tally(metered, status).count += 1;
    if (source !== "kept") this.#seconds.observe({ route, method }, (performance.now() - startedAt) / 1_000);
  }

  tally({ route, method, agent, caller, source }: RequestFigures, status: number): Tally {
    const key = `${route} ${method} ${status} ${caller} ${source} ${agent}`;
    const known = this.#tallies.get(key);
    if (known) return known;
    if (this.#tallies.size >= MOST_TALLIES && agent !== "other")
      return this.tally({ route, method, agent: "other", caller, source, startedAt: 0 }, status);
    const made = { labels: { route, method, status, caller, source, agent }, count: 0, told: 0 };
    this.#tallies.set(key, made);
    return made;
  }
}

export function kindOf(caller: Caller): RequestFigures["caller"] {
  return caller.kind === "anonymous" ? "anonymous" : caller.by.of;
}
