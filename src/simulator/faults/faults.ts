/** What goes wrong on purpose. Everything is off until set; `{}` clears. */
import { type Random, seededRandom } from "../world/random.ts";
import { REFUSALS, type RefusalName } from "./refusals.ts";
import { ROW_KINDS, type RowFault } from "./row-faults.ts";

/** What goes wrong on purpose. */
export interface GraphqlFaults {
  /** More than this many delivered nodes in one query take "too long": 502, and the points below are deducted. */
  timeoutAtWork?: number;
  /**
   * Any query about the sizes, threads or mergeability of these pull requests takes "too long", however small it is.
   */
  timeoutPulls?: readonly number[];
  /** The service fails to say who merged these pull requests: null, and an error that names the place. */
  failPulls?: readonly number[];
  /** Fields that the server is too old to have. */
  lacks?: readonly { readonly type: string; readonly field: string }[];
  /** How long a query that takes "too long" lets the caller wait. Default 0; the service's own is 10,000. */
  timeoutMs?: number;
  /** Points deducted for a time-out besides the query's own. Default 10: about 11 in all were observed. */
  timeoutPoints?: number;
  /** From this many delivered nodes on, connections answer RESOURCE_LIMITS_EXCEEDED; the rest of the data stays. */
  resourceLimitAtWork?: number;
  /**
   * More than this many delivered nodes in a minute take too much processor time: a secondary limit for the rest of it.
   */
  workPerMinute?: number;
  /** A nested connection with at least so many parents in one query silently keeps only `keep` nodes each. */
  truncateNested?: { readonly parents: number; readonly keep: number };
}

export interface HttpFault {
  /** A regular expression for `METHOD /path`; absent: every request. Control requests (`/-/`) are never touched. */
  readonly match?: string;
  /** Only pages of lists from this number on; cursors count pages too. */
  readonly fromPage?: number;
  /** Only pages of lists that ask for more rows than this: heavy pages fail, and smaller ones are answered. */
  readonly moreRowsThan?: number;
  /** What happens. `reset` ends the connection unanswered, `truncate` after half of the body. */
  readonly kind: "status" | "reset" | "truncate" | "slow" | "secondary-limit" | "refusal";
  /** For `refusal`: why the service will not answer. */
  readonly as?: RefusalName;
  /** For `status`: 500, 502, 503, 429, … */
  readonly status?: number;
  /** For `slow`: how long the answer waits. */
  readonly delayMs?: number;
  /** Seconds, for `secondary-limit` and `status`. */
  readonly retryAfter?: number;
  /** In [0, 1]; default 1. */
  readonly probability?: number;
  /** How many more requests it hits; absent: no end. */
  readonly times?: number;
}

export interface WebhookFaults {
  /** Probabilities in [0, 1]. Lost without a trace in the deliveries log. */
  readonly drop?: number;
  /** Not received, and the log says so. */
  readonly fail?: number;
  readonly duplicate?: number;
  readonly delay?: number;
  /** Upper bound of a delay. Default 1,000. */
  readonly delayMs?: number;
  /** A delivery waits until the next one has been sent. */
  readonly reorder?: number;
  /** A delivery waits like a delayed one, and the log says when it was held back. */
  readonly throttle?: number;
  /** A delivery counts as failed although the receiver has it: the answer came after the time-out. */
  readonly timeout?: number;
}

export interface FaultSettings {
  readonly seed?: number;
  readonly http?: readonly HttpFault[];
  readonly rows?: readonly RowFault[];
  readonly webhooks?: WebhookFaults;
  readonly graphql?: GraphqlFaults;
  /** Events that a server of an earlier time does not know: it refuses hooks that name them, and sends none. */
  readonly lacksEvents?: readonly string[];
  /** Reads show the state of this long ago. */
  readonly lagMs?: number;
  /** Each request is answered by another replica, which is behind by up to `lagMs`. */
  readonly lagDrawn?: boolean;
  /**
   * Two windows of one caller are counted apart. Each request falls into one of them, and its answer tells of that one.
   */
  readonly windows?: boolean;
  /** Tags of answers follow another formula, which says no more of the body than that it is the same. */
  readonly tags?: boolean;
  /**
   * How many rows of a list can be reached by page number. Lists of issues, which have cursors, keep their own limit.
   */
  readonly numberedRows?: number;
  /**
   * After so many requests with a token that is gone, within a minute, all of its account are refused for `seconds`.
   */
  readonly lockOut?: { readonly attempts: number; readonly seconds: number };
}

const HTTP_KINDS = [
  "status",
  "reset",
  "truncate",
  "slow",
  "secondary-limit",
  "refusal",
] as const satisfies readonly HttpFault["kind"][];

export class Faults {
  random: Random;
  webhooks: WebhookFaults = {};
  graphql: GraphqlFaults = {};
  lacksEvents: readonly string[] = [];
  lagMs = 0;
  lagDrawn = false;
  windows = false;
  tags = false;
  numberedRows = Number.POSITIVE_INFINITY;
  lockOut: FaultSettings["lockOut"];
  /** How often each kind struck since it was last set: `{"status 502": 3}`. */
  readonly struck = new Map<string, number>();
  #rows: { fault: RowFault; match: RegExp | null }[] = [];
  #http: { fault: HttpFault; match: RegExp | null; left: number }[] = [];

  constructor(seed: number) {
    this.random = seededRandom(seed);
  }

  /** Replaces all faults. Throws a sentence that says what is wrong with the settings. */
  set(settings: FaultSettings): void {
    const http = (settings.http ?? []).map((fault) => {
      if (!HTTP_KINDS.includes(fault.kind))
        throw new Error(`"${fault.kind}" is no kind of HTTP fault: ${HTTP_KINDS.join(", ")}`);
      if (fault.kind === "refusal" && !(fault.as !== undefined && Object.hasOwn(REFUSALS, fault.as)))
        throw new Error(`A fault of kind refusal says as what: ${Object.keys(REFUSALS).join(", ")}`);
      if (fault.kind === "status" && !(fault.status && fault.status >= 400 && fault.status <= 599)) {
        throw new Error("A fault of kind status needs a status from 400 to 599");
      }
      return {
        fault,
        match: fault.match === undefined ? null : new RegExp(fault.match),
        left: fault.times ?? Number.POSITIVE_INFINITY,
      };
    });
    for (const [name, value] of Object.entries(settings.webhooks ?? {})) {
      if (name !== "delayMs" && !(value >= 0 && value <= 1))
        throw new Error(`webhooks.${name} is a probability from 0 to 1, not ${value}`);
    }
    const rows = (settings.rows ?? []).map((fault) => {
      if (!ROW_KINDS.includes(fault.kind))
        throw new Error(`"${fault.kind}" is no kind of fault of a row: ${ROW_KINDS.join(", ")}`);
      return { fault, match: fault.match === undefined ? null : new RegExp(fault.match) };
    });
    if (settings.seed !== undefined) this.random = seededRandom(settings.seed);
    this.#http = http;
    this.#rows = rows;
    this.webhooks = settings.webhooks ?? {};
    this.graphql = settings.graphql ?? {};
    this.lacksEvents = settings.lacksEvents ?? [];
    this.lagMs = settings.lagMs ?? 0;
    this.lagDrawn = settings.lagDrawn ?? false;
    this.windows = settings.windows ?? false;
    this.tags = settings.tags ?? false;
    this.numberedRows = settings.numberedRows ?? Number.POSITIVE_INFINITY;
    this.lockOut = settings.lockOut;
    this.struck.clear();
  }

  /** The fault that hits this request, if any. */
  http(method: string, path: string, { page = 1, rows = 30 } = {}): HttpFault | null {
    for (const one of this.#http) {
      if (page < (one.fault.fromPage ?? 1) || rows <= (one.fault.moreRowsThan ?? 0)) continue;
      if (one.left <= 0 || (one.match && !one.match.test(`${method} ${path}`))) continue;
      if (!this.random.chance(one.fault.probability ?? 1)) continue;
      one.left -= 1;
      this.strike(one.fault.kind === "status" ? `status ${one.fault.status}` : one.fault.kind);
      return one.fault;
    }
    return null;
  }

  /** The faults of rows in the answer to this request. */
  rows(method: string, path: string): readonly RowFault[] {
    return this.#rows
      .filter(({ match }) => match === null || match.test(`${method} ${path}`))
      .map(({ fault }) => fault);
  }

  /** Whether a fault of a delivery strikes. */
  webhook(kind: "drop" | "fail" | "duplicate" | "delay" | "throttle" | "reorder" | "timeout"): boolean {
    const probability = this.webhooks[kind] ?? 0;
    if (probability === 0 || !this.random.chance(probability)) return false;
    this.strike(`webhook ${kind}`);
    return true;
  }

  strike(name: string): void {
    this.struck.set(name, (this.struck.get(name) ?? 0) + 1);
  }
}
