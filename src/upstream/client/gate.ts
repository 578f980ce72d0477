import { Line } from "../../work/line.ts";
import { PRIORITIES, type Priority } from "../protocol/upstream.ts";

/**
 * A request of a class begins only while fewer requests than this are under way in this process. As with the quota,
 * each class leaves room for the classes above it. So a caller never waits behind twenty slow pages of a backfill.
 */
const ADMISSION: Readonly<Record<Priority, number>> = {
  caller: 20,
  refresh: 18,
  "catch-up": 16,
  audit: 14,
  backfill: 14,
};

/** The most requests under way at once in this process. GitHub docs: 100 for all processes of a user together. */
export const CONCURRENT_PER_PROCESS = ADMISSION.caller;

/**
 * The most answers that are forwarded at once by the mirror's own credential. They have left the gate, and need
 * connections of their own.
 */
export const MOST_OPENED = 6;

/** Bounds the requests under way. Waiting requests enter by class, and within a class in order of arrival. */
export class Gate {
  #underWay = 0;
  readonly #line = new Line<Priority>(
    {
      fits: (priority) => this.#underWay < ADMISSION[priority],
      take: () => {
        this.#underWay += 1;
      },
      free: () => {
        this.#underWay -= 1;
      },
    },
    { rankOf: (priority) => PRIORITIES.indexOf(priority) },
  );

  /**
   * Waits for a place. Dispose of the answer when the request is over.
   * @throws the signal's reason when it is aborted while waiting
   */
  enter(priority: Priority, signal?: AbortSignal): Promise<Disposable> {
    return this.#line.enter(priority, signal);
  }
}
