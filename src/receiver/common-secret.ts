import type { Logger } from "../operations/log.ts";
import type { Envelope } from "./envelope.ts";

/** Further hooks are not told apart. Once these are mended, the next start names the others. */
const MOST_HOOKS = 1_000;

/** Says once of each hook that it signs with WEBHOOK_SECRET itself, as hooks did that were made before each had its own. */
export class CommonSecret {
  readonly #log: Logger;
  readonly #told = new Set<number>();

  constructor(log: Logger) {
    this.#log = log;
  }

  note({ hookId, target }: Pick<Envelope, "hookId" | "target">): void {
    if (this.#told.has(hookId) || this.#told.size === MOST_HOOKS) return;
    this.#told.add(hookId);
    this.#log.warn(
      { hookId, [target?.type ?? "target"]: target?.id },
      "A hook signs with WEBHOOK_SECRET itself, which can sign for all: `tain hooks register` gives it its own",
    );
  }
}
