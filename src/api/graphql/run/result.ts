import type { ExecutionResult, GraphQLError } from "graphql";
import type { Fields } from "../../../json.ts";
import type { ApiContext } from "../../call/call.ts";
import { MissingValueError, rateLimited, shownError } from "./errors.ts";
import type { Executed } from "./execution.ts";

/** The result of a query. It has no data if nothing was executed. */
export type Result = Partial<Executed> & Pick<Executed, "errors">;

/** Converts graphql-js's result to ours. */
export function resultOf({ data, errors = [] }: ExecutionResult): Result {
  return { ...(data === undefined ? {} : { data: JSON.stringify(data) }), errors };
}

export function resultText({ data, errors }: Result, extensions?: Fields): string {
  const parts = [
    ...(data === undefined ? [] : [`"data":${data}`]),
    ...(errors.length > 0 ? [`"errors":${JSON.stringify(errors.map(shownError))}`] : []),
    ...(extensions === undefined ? [] : [`"extensions":${JSON.stringify(extensions)}`]),
  ];
  return `{${parts.join(",")}}`;
}

/** The first error that is not GraphQL's own. A resolver threw it, so callers must not read it. */
export function bugIn(errors: readonly GraphQLError[] = []): GraphQLError | undefined {
  return errors.find(({ originalError }) => originalError != null && originalError.name !== "GraphQLError");
}

export function quotaSpentText(userId: number): string {
  return resultText({ errors: [rateLimited(userId)] });
}

export function wentWrongText(requestId: string, now: Date, guess = ""): string {
  const at = now.toISOString().replace(/\.\d+Z$/, "+00:00");
  const message = `Something went wrong while executing your query on ${at}.${guess} Please include \`${requestId}\` when reporting this issue.`;
  return JSON.stringify({ data: null, errors: [{ message }] });
}

const FIELD_LOG_MS = 60_000;

/**
 * Logs fields that had no value where they must have one. Callers see each case among their errors, so one line a
 * minute for each field is enough, also for a list of broken rows. There are no more fields than the schema has.
 */
export class MissingValues {
  readonly #ctx: Pick<ApiContext, "clock" | "log">;
  readonly #loggedAt = new Map<string, number>();

  constructor(ctx: Pick<ApiContext, "clock" | "log">) {
    this.#ctx = ctx;
  }

  note(errors: readonly GraphQLError[], requestId: string): void {
    for (const { originalError, path } of errors) {
      if (!(originalError instanceof MissingValueError)) continue;
      const { field } = originalError;
      const now = this.#ctx.clock.now().getTime();
      if (now - (this.#loggedAt.get(field) ?? Number.NEGATIVE_INFINITY) < FIELD_LOG_MS) continue;
      this.#loggedAt.set(field, now);
      this.#ctx.log.warn({ field, path: path?.join("."), requestId }, "A field that must have a value had none");
    }
  }
}
