import type { Config } from "../../config.ts";
import type { Payer } from "../callers/quota.ts";

/** How many streams of this process are open, by whose quota they draw on. */
export class StreamPlaces {
  readonly #most: number;
  readonly #open = new Map<string, number>();

  constructor({ streamsPerCaller }: Pick<Config, "streamsPerCaller">) {
    this.#most = streamsPerCaller;
  }

  /** Null: the caller has as many as one may have. */
  take({ quotaName }: Payer): DisposableStack | null {
    const count = this.#open.get(quotaName) ?? 0;
    if (count >= this.#most) return null;
    this.#open.set(quotaName, count + 1);
    const place = new DisposableStack();
    place.defer(() => {
      const left = (this.#open.get(quotaName) ?? 1) - 1;
      if (left > 0) this.#open.set(quotaName, left);
      else this.#open.delete(quotaName);
    });
    return place;
  }

  /** Why there is none, in words. */
  get refusal(): string {
    return `You have ${this.#most} streams open, and no more are served.`;
  }
}
