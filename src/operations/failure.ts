import { DrizzleQueryError } from "../../db/drizzle.ts";

/** What Postgres and Drizzle add to an error that may hold the rows themselves: people's words, at worst secrets. */
const CONTENTS = ["query", "params", "detail", "where", "internalQuery", "parameters"];

/**
 * The same failure without the contents it happened with, fit for a log or a job's reason. Drizzle writes the statement and
 * all its values into the message; what went wrong stands in its cause.
 */
export function withoutContents(error: unknown): unknown {
  if (error instanceof DrizzleQueryError) return withoutContents(error.cause ?? new Error("A statement failed"));
  if (!(error instanceof Error)) return error;
  if (error.cause !== undefined) error.cause = withoutContents(error.cause);
  for (const name of CONTENTS) if (name in error) Reflect.deleteProperty(error, name);
  return error;
}
