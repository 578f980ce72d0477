import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { ActivitySums } from "./activity.ts";

/** How many connections a pool has open, how many of them are idle, and how many statements wait for one. */
export interface PoolLoad {
  open: number;
  idle: number;
  waiting: number;
}

/**
 * A process's metrics, in Prometheus' text format. Each part of the program declares its own metrics, by their
 * Prometheus names.
 */
export class Metrics {
  readonly #registry = new Registry();
  readonly #beforeScrape: (() => void | Promise<void>)[] = [];

  readonly contentType = this.#registry.contentType;
  /** The few figures that the operator's page draws. */
  readonly activity = new ActivitySums();

  counter<Label extends string>(name: string, help: string, labelNames: readonly Label[]): Counter<Label> {
    return this.#once(name, () => new Counter({ name, help, labelNames, registers: [this.#registry] }));
  }

  gauge<Label extends string>(name: string, help: string, labelNames: readonly Label[]): Gauge<Label> {
    return this.#once(name, () => new Gauge({ name, help, labelNames, registers: [this.#registry] }));
  }

  /** @param buckets upper bounds, in the unit that the name ends in */
  histogram<Label extends string>(
    name: string,
    help: string,
    labelNames: readonly Label[],
    buckets: readonly number[],
  ): Histogram<Label> {
    const options = { name, help, labelNames, buckets: [...buckets], registers: [this.#registry] };
    return this.#once(name, () => new Histogram(options));
  }

  /** Calls `set` before each scrape, for values that are only computed then. */
  beforeScrape(set: () => void | Promise<void>): void {
    this.#beforeScrape.push(set);
  }

  /** Adds what a pool of connections to Postgres has open, and how many statements wait for one. */
  watchPool(name: string, pool: { load(): PoolLoad }): void {
    const connections = this.gauge("tain_postgres_connections", "Open connections to Postgres.", ["pool", "state"]);
    const waiting = this.gauge("tain_postgres_waiting", "What waits for a connection to Postgres.", ["pool"]);
    this.beforeScrape(() => {
      const { open, idle, waiting: inLine } = pool.load();
      connections.set({ pool: name, state: "idle" }, idle);
      connections.set({ pool: name, state: "busy" }, open - idle);
      waiting.set({ pool: name }, inLine);
    });
  }

  /**
   * Adds the process's own figures: processor time, memory, collections, the event loop's delay. Once for each process.
   */
  observeProcess(): void {
    collectDefaultMetrics({ register: this.#registry });
  }

  async text(): Promise<string> {
    for (const set of this.#beforeScrape) await set();
    return await this.#registry.metrics();
  }

  /** If a part of the program is opened twice, both use one metric. */
  #once<Metric>(name: string, make: () => Metric): Metric {
    // Each name is declared in one place, so the registered metric has this class.
    return (this.#registry.getSingleMetric(name) as Metric | undefined) ?? make();
  }
}

/**
 * A label whose values come from outside. Only the first `most` values become labels, so that callers cannot make
 * metrics without end.
 */
export class BoundedLabel {
  readonly #known = new Set<string>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  of(value: string): string {
    if (this.#known.has(value)) return value;
    if (this.#known.size >= this.#most) return "other";
    this.#known.add(value);
    return value;
  }
}
