import { PRIORITIES, type Priority } from "./upstream.ts";

/**
 * A request of a class begins only while fewer requests than this are under way in this process. As with the quota,
 * each class leaves room for the classes above it. So a caller never waits behind twenty slow pages of a backfill.
 */
const ADMISSION: Record<Priority, number> = { caller: 20, refresh: 18, "catch-up": 16, audit: 14, backfill: 14 };

/** The most requests under way at once in this process. GitHub docs: 100 for all processes of a user together. */
export const MOST_UNDER_WAY = ADMISSION.caller;

/** The most answers that are being forwarded at once. They have left the gate, and need connections of their own. */
export const MOST_OPENED = 6;

interface Waiter {
  admit: () => void;
}

/** Bounds the requests under way. Waiting requests enter by class, and within a class in order of arrival. */
export class Gate {
  #underWay = 0;
  readonly #waiting = new Map<Priority, Set<Waiter>>(PRIORITIES.map((priority) => [priority, new Set()]));

  /**
   * Waits for a place. Dispose of the answer when the request is over.
   * @throws the signal's reason when it is aborted while waiting
   */
  async enter(priority: Priority, signal?: AbortSignal): Promise<Disposable> {
    signal?.throwIfAborted();
    if (this.#underWay < ADMISSION[priority] && this.#nobodyWaits(priority)) {
      this.#underWay += 1;
    } else {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const waiting: Waiter = { admit: resolve };
      const queue = this.#waiting.get(priority);
      const leave = () => {
        if (queue?.delete(waiting)) reject(signal?.reason);
      };
      queue?.add(waiting);
      signal?.addEventListener("abort", leave, { once: true });
      try {
        await promise;
      } finally {
        signal?.removeEventListener("abort", leave);
      }
    }
    let isInside = true;
    return {
      [Symbol.dispose]: () => {
        if (!isInside) return;
        isInside = false;
        this.#underWay -= 1;
        this.#admit();
      },
    };
  }

  #admit(): void {
    for (const priority of PRIORITIES) {
      for (const waiting of this.#waiting.get(priority) ?? []) {
        if (this.#underWay >= ADMISSION[priority]) break;
        this.#waiting.get(priority)?.delete(waiting);
        this.#underWay += 1;
        waiting.admit();
      }
    }
  }

  #nobodyWaits(priority: Priority): boolean {
    return PRIORITIES.slice(0, PRIORITIES.indexOf(priority) + 1).every((above) => this.#waiting.get(above)?.size === 0);
  }
}
