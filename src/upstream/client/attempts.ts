import { setTimeout as sleep } from "node:timers/promises";
import { waitAfterMs } from "../../operations/backoff.ts";
import type { Stores } from "../../stores.ts";
import { CredentialUnusableError, UpstreamUnavailableError } from "./errors.ts";
import type { Ask, Attempt, Exchange } from "./exchange.ts";
import { Gate } from "./gate.ts";

/** How often a passing failure is met with a repetition. */
const MAX_REPEATS = 2;
const LONGEST_WAIT_MS = 5_000;

/** Lets questions in by their class, and repeats those that may be repeated. */
export class Attempts {
  readonly #exchange: Exchange;
  readonly #gate = new Gate();
  readonly #random: () => number;
  readonly #repeatAfterMs: number;
  readonly #credentials: () => number;

  /** @param credentials how many different credentials a question may meet */
  constructor(
    { random }: Pick<Stores, "random">,
    exchange: Exchange,
    { repeatAfterMs, credentials }: { repeatAfterMs: number; credentials: () => number },
  ) {
    this.#exchange = exchange;
    this.#random = random;
    this.#repeatAfterMs = repeatAfterMs;
    this.#credentials = credentials;
  }

  /** Asks once, as a write has to be. */
  async once(ask: Ask): Promise<Attempt> {
    using _place = ask.isWithin ? null : await this.#gate.enter(ask.demand.priority, ask.demand.signal);
    return await this.#exchange.run(ask);
  }

  /** Asks what may be asked twice: a passing failure is repeated, at most twice. */
  async repeatedly(ask: Ask): Promise<Attempt> {
    for (let attempts = 1; ; attempts++) {
      const isLast = attempts > MAX_REPEATS;
      try {
        const attempt = await this.#byAnyCredential(ask);
        if (isLast || !isPassing(attempt.received.status, ask.demand.bucket)) return attempt;
      } catch (error) {
        const isInterrupted = error instanceof UpstreamUnavailableError && error.outage === "interrupted";
        if (isLast || !isInterrupted) throw error;
      }
      const backoff = { firstMs: this.#repeatAfterMs, longestMs: LONGEST_WAIT_MS };
      const { signal } = ask.demand;
      await sleep(waitAfterMs(attempts, backoff, this.#random), undefined, signal ? { signal } : {});
    }
  }

  /** A credential that is refused gives way: the next lease goes to another one, or says when one may be used again. */
  async #byAnyCredential(ask: Ask): Promise<Attempt> {
    for (let refusals = 1; ; refusals++) {
      const attempt = await this.once(ask).catch((error: unknown) => {
        if (error instanceof CredentialUnusableError) return { refusal: error };
        throw error;
      });
      if ("received" in attempt && attempt.refusal === null) return attempt;
      if (refusals > this.#credentials()) throw attempt.refusal;
    }
  }
}

/** Whether the same request may soon be answered. A GraphQL query that ran out of time would do so again. */
function isPassing(status: number, bucket: string): boolean {
  return status === 503 || ((status === 502 || status === 504) && bucket !== "graphql");
}
