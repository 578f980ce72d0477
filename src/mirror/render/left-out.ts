import { reasonOf } from "../../failure.ts";
import type { Fields } from "../../json.ts";
import type { Logger } from "../../operations/log.ts";
import type { Metrics } from "../../operations/metrics.ts";

/** What cannot be shown: a stored row or an event of the log. The fields name it in the log. */
export interface Unshowable {
  what: "row" | "event";
  [field: string]: string | number | null;
}

/** Each is logged once; of more than these, only the metric tells. */
const MOST_NAMED = 1_000;

/**
 * Leaves out what cannot be shown, so that one row fails no list and one event ends no feed. An earlier version stored
 * what is nested so deep that walking it takes all of the stack.
 */
export class LeftOut {
  readonly #log: Logger;
  readonly #count: (what: string) => void;
  readonly #named = new Set<string>();

  constructor({ log, metrics }: { log: Logger; metrics: Metrics }) {
    this.#log = log;
    const left = metrics.counter("tain_left_out_total", "Rows and events that were left out, since they fail.", [
      "what",
    ]);
    this.#count = (what) => left.inc({ what });
  }

  /** What `make` makes of it. Null: it fails. `make` is pure, so nothing but the thing itself can be to blame. */
  unless<Made>(name: () => Unshowable, make: () => Made): Made | null {
    try {
      return make();
    } catch (error) {
      this.#note(name(), error);
      return null;
    }
  }

  #note(one: Unshowable, error: unknown): void {
    this.#count(one.what);
    const key = JSON.stringify(one);
    if (this.#named.has(key) || this.#named.size === MOST_NAMED) return;
    this.#named.add(key);
    this.#log.error({ ...one, reason: reasonOf(error) }, "Something that is stored cannot be shown, and is left out");
  }
}

/** Stands for the fields of a row that cannot be shown, where rows have places that cannot be left empty. */
export const UNSHOWN: Fields = Object.freeze({});

/** The row of a stored document. */
export function rowNamed({ repositoryId, document }: { repositoryId: number; document: string }): Unshowable {
  return { what: "row", repositoryId, nodeId: /"node_id":"([\w=-]{1,100})"/.exec(document)?.[1] ?? null };
}
