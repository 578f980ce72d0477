import type { GraphQLError } from "graphql";
import type { ApiContext } from "../call.ts";
import { MissingValueError } from "./errors.ts";

const WINDOW_MS = 60_000;

/**
 * Logs fields that had no value where they must have one. Callers see each case among their errors, so one line a
 * minute for each field is enough, also for a list of broken rows. There are no more fields than the schema has.
 */
export class MissingValues {
  readonly #ctx: Pick<ApiContext, "clock" | "log">;
  readonly #toldAt = new Map<string, number>();

  constructor(ctx: Pick<ApiContext, "clock" | "log">) {
    this.#ctx = ctx;
  }

  note(errors: readonly GraphQLError[], requestId: string): void {
    for (const { originalError, path } of errors) {
      if (!(originalError instanceof MissingValueError)) continue;
      const { field } = originalError;
      const now = this.#ctx.clock.now().getTime();
      if (now - (this.#toldAt.get(field) ?? Number.NEGATIVE_INFINITY) < WINDOW_MS) continue;
      this.#toldAt.set(field, now);
      this.#ctx.log.warn({ field, path: path?.join("."), requestId }, "A field that must have a value had none");
    }
  }
}
