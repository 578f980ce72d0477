/** What was asked of the simulated service and what it cost. */
export interface Tally {
  requests: number;
  /** Requests that cost a unit of the bucket (REST) or were counted at all (GraphQL). */
  charged: number;
  /** 304 answers, free or not. */
  notModified: number;
  /** GraphQL points charged. */
  points: number;
  /** Refused for the primary limit. */
  primaryLimited: number;
  /** Refused for a secondary limit. */
  secondaryLimited: number;
  /** Answers of 400 and more, limits included. */
  errors: number;
}

export interface MeterReading extends Tally {
  /** Epoch milliseconds of the last reset. */
  readonly since: number;
  /** Caller (token or `ip:…`) → bucket → tally. */
  readonly callers: Readonly<Record<string, Readonly<Record<string, Tally>>>>;
  /** `GET /repos/:owner/:repo/issues` → tally; `/repositories/:id` counts as the same route. */
  readonly routes: Readonly<Record<string, Tally>>;
  /** Caller → route → tally. */
  readonly callersRoutes: Readonly<Record<string, Readonly<Record<string, Tally>>>>;
  /** Repository's id → tally of what REST was asked about it. */
  readonly repositories: Readonly<Record<string, Tally>>;
  /** The most requests that were being answered at once. */
  readonly maxConcurrent: number;
}

export interface Measured {
  readonly caller: string;
  readonly bucket: string;
  readonly route: string;
  readonly repository: string | null;
  readonly status: number;
  readonly charged: number;
  readonly points: number;
  readonly limited: "primary" | "secondary" | null;
}

export class Meter {
  readonly #now: () => number;
  #since: number;
  #total = emptyTally();
  #callers = new Map<string, Map<string, Tally>>();
  #callersRoutes = new Map<string, Map<string, Tally>>();
  #routes = new Map<string, Tally>();
  #repositories = new Map<string, Tally>();
  #maxConcurrent = 0;

  constructor(now: () => number) {
    this.#now = now;
    this.#since = now();
  }

  count(measured: Measured): void {
    const { caller, bucket, route } = measured;
    const tallies = [
      this.#total,
      tallyOf(of(this.#callers, caller), bucket),
      tallyOf(of(this.#callersRoutes, caller), route),
      tallyOf(this.#routes, route),
    ];
    if (measured.repository !== null) tallies.push(tallyOf(this.#repositories, measured.repository));
    for (const tally of tallies) {
      tally.requests += 1;
      tally.charged += measured.charged;
      tally.points += measured.points;
      if (measured.status === 304) tally.notModified += 1;
      if (measured.status >= 400) tally.errors += 1;
      if (measured.limited === "primary") tally.primaryLimited += 1;
      if (measured.limited === "secondary") tally.secondaryLimited += 1;
    }
  }

  sawConcurrent(requests: number): void {
    this.#maxConcurrent = Math.max(this.#maxConcurrent, requests);
  }

  read(): MeterReading {
    const eachCopied = (all: ReadonlyMap<string, Map<string, Tally>>) =>
      Object.fromEntries([...all].map(([caller, tallies]) => [caller, copied(tallies)]));
    return {
      since: this.#since,
      ...this.#total,
      callers: eachCopied(this.#callers),
      callersRoutes: eachCopied(this.#callersRoutes),
      routes: copied(this.#routes),
      repositories: copied(this.#repositories),
      maxConcurrent: this.#maxConcurrent,
    };
  }

  reset(): void {
    this.#since = this.#now();
    this.#total = emptyTally();
    this.#callers = new Map();
    this.#callersRoutes = new Map();
    this.#routes = new Map();
    this.#repositories = new Map();
    this.#maxConcurrent = 0;
  }
}

function of(all: Map<string, Map<string, Tally>>, caller: string): Map<string, Tally> {
  const tallies = all.get(caller) ?? new Map<string, Tally>();
  all.set(caller, tallies);
  return tallies;
}

function tallyOf(tallies: Map<string, Tally>, key: string): Tally {
  const tally = tallies.get(key) ?? emptyTally();
  tallies.set(key, tally);
  return tally;
}

function copied(tallies: ReadonlyMap<string, Tally>): Record<string, Tally> {
  return Object.fromEntries([...tallies].map(([key, tally]) => [key, { ...tally }]));
}

function emptyTally(): Tally {
  return { requests: 0, charged: 0, notModified: 0, points: 0, primaryLimited: 0, secondaryLimited: 0, errors: 0 };
}
