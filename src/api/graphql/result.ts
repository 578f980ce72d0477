import type { ExecutionResult, GraphQLError } from "graphql";
import { quotaSpent, shownError } from "./errors.ts";
import type { Executed } from "./run/execution.ts";

/** The result of a query. It has no data if nothing was executed. */
export type Result = Partial<Executed> & Pick<Executed, "errors">;

/** Converts graphql-js's result to ours. */
export function resultOf({ data, errors = [] }: ExecutionResult): Result {
  return { ...(data === undefined ? {} : { data: JSON.stringify(data) }), errors };
}

export function resultText({ data, errors }: Result): string {
  const shown = errors.length > 0 ? `"errors":${JSON.stringify(errors.map(shownError))}` : "";
  return data === undefined ? `{${shown}}` : `{"data":${data}${shown && `,${shown}`}}`;
}

/** The first error that is not GraphQL's own. A resolver threw it, so callers must not read it. */
export function bugIn(errors: readonly GraphQLError[] = []): GraphQLError | undefined {
  return errors.find(({ originalError }) => originalError != null && originalError.name !== "GraphQLError");
}

export function quotaSpentText(userId: number): string {
  return resultText({ errors: [quotaSpent(userId)] });
}

export function wentWrongText(requestId: string, now: Date, guess = ""): string {
  const at = now.toISOString().replace(/\.\d+Z$/, "+00:00");
  const message = `Something went wrong while executing your query on ${at}.${guess} Please include \`${requestId}\` when reporting this issue.`;
  return JSON.stringify({ data: null, errors: [{ message }] });
}
