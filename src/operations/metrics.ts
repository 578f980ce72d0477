import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

/** What a pool of connections has open, how much of it lies idle, and what waits for a connection. */
export interface PoolLoad {
  open: number;
  idle: number;
  waiting: number;
}

/**
 * What a process tells of itself, in Prometheus' text format. Each room declares its own figures, by the names that
 * they have there.
 */
export class Metrics {
  readonly #registry = new Registry();
  readonly #beforeScrape: (() => void | Promise<void>)[] = [];

  readonly contentType = this.#registry.contentType;

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

  /** Calls `set` before each reading, for figures that are not counted all the time. */
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

  /** A room that is opened twice counts on. */
  #once<Metric>(name: string, make: () => Metric): Metric {
    // One name is declared in one place, and so always of the same class.
    return (this.#registry.getSingleMetric(name) as Metric | undefined) ?? make();
  }
}

/** Values that come from outside: so many of them at most become a label, in the order in which they come. */
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
