import githubAppJwt from "universal-github-app-jwt";
import type { Clock } from "../../../db/database.ts";

/** How long a signature is used. GitHub docs: it may be valid for ten minutes at most. */
const REUSED_MS = 5 * 60_000;
/** GitHub docs: date the signature a minute back, since clocks differ. The library itself takes off half a minute. */
const BACKDATED_S = 30;
/** `Date` counts whole seconds and answers take their time: a smaller difference says nothing. */
const TOLERANCE_MS = 3_000;

/** Signs as the App, by upstream's clock: each answer's `Date` says how far it is ahead of ours. */
export class AppSignature {
  readonly #app: { id: string; privateKey: string };
  readonly #clock: Clock;
  #aheadMs = 0;
  #last: { text: string; madeAt: number } | null = null;

  constructor(app: { id: string; privateKey: string }, clock: Clock) {
    this.#app = app;
    this.#clock = clock;
  }

  /** The value of the Authorization header. */
  async authorization(): Promise<string> {
    const now = this.upstreamNow();
    if (!this.#last || Math.abs(now - this.#last.madeAt) > REUSED_MS) {
      const { token } = await githubAppJwt({
        ...this.#app,
        now: Math.floor(now / 1_000) - BACKDATED_S,
      });
      this.#last = { text: `Bearer ${token}`, madeAt: now };
    }
    return this.#last.text;
  }

  /** Our estimate of upstream's clock from its answers, in epoch milliseconds. */
  upstreamNow(): number {
    return this.#clock.now().getTime() + this.#aheadMs;
  }

  /**
   * Learns upstream's clock from an answer to a request sent at `sentAt`. Answers true if the clock differs from our
   * estimate: then the App should sign again.
   */
  learn(date: string | string[] | undefined, sentAt: Date): boolean {
    const dated = Date.parse([date].flat()[0] ?? "");
    if (Number.isNaN(dated)) return false;
    // The date is cut to whole seconds, so it is half a second late on average. Upstream took it at some moment of the
    // exchange.
    const aheadMs = dated + 500 - (sentAt.getTime() + this.#clock.now().getTime()) / 2;
    if (Math.abs(aheadMs - this.#aheadMs) <= TOLERANCE_MS) return false;
    this.#aheadMs = aheadMs;
    this.#last = null;
    return true;
  }
}
