import { BoundedLabel, type Metrics } from "../../operations/metrics.ts";
import { pathFormOf } from "../protocol/paths.ts";
import type { Priority } from "../protocol/upstream.ts";
import type { Spending } from "../quota/spending.ts";

const REQUEST_SECONDS: readonly number[] = [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const MOST_ROUTES = 200;

/** A request to upstream, with the values that become labels of metrics. */
export interface MeteredRequest {
  path: string;
  bucket: string;
  /** The class of the mirror's own quota that pays, or "own" for a caller's token. */
  class: Priority | "own";
  /** The caller for whom the mirror reads, by the name of their quota; undefined: for no single caller. */
  caller?: string | undefined;
}

/** Counts the requests to upstream. */
export class UpstreamMeter {
  readonly #routes = new BoundedLabel(MOST_ROUTES);
  readonly #requests;
  readonly #charged;
  readonly #seconds;
  readonly #spending: Spending | null;
  readonly #activity: Metrics["activity"];

  /** @param spending null: no quota of the mirror's is spent */
  constructor(metrics: Metrics, spending: Spending | null = null) {
    this.#spending = spending;
    this.#activity = metrics.activity;
    if (spending) this.#activity.tellOf("spentRequests", "spentPoints");
    this.#requests = metrics.counter("tain_upstream_requests_total", "Requests that upstream answered.", [
      "route",
      "bucket",
      "class",
      "status",
    ]);
    this.#charged = metrics.counter(
      "tain_upstream_charged_total",
      "What they took of the mirror's quota: requests, or points of GraphQL.",
      ["route", "bucket", "class"],
    );
    this.#seconds = metrics.histogram(
      "tain_upstream_request_duration_seconds",
      "From a request to upstream until its whole answer.",
      ["bucket", "class"],
      REQUEST_SECONDS,
    );
  }

  answered(of: MeteredRequest, status: number, startedAt: number): void {
    const { bucket, class: name } = of;
    this.#requests.inc({ route: this.#routeOf(of.path), bucket, class: name, status });
    this.#seconds.observe({ bucket, class: name }, (performance.now() - startedAt) / 1_000);
  }

  charged(of: MeteredRequest, cost: number): void {
    if (!(cost > 0)) return;
    const { bucket, class: name, caller = "" } = of;
    const route = this.#routeOf(of.path);
    this.#charged.inc({ route, bucket, class: name }, cost);
    this.#spending?.note({ class: name, bucket, route, caller, cost });
    this.#activity.add(bucket === "graphql" ? "spentPoints" : "spentRequests", cost);
  }

  #routeOf(path: string): string {
    return this.#routes.of(pathFormOf(path));
  }
}
