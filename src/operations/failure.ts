/** Postgres may put the rows themselves into these fields of an error: people's words, at worst secrets. */
const CONTENTS = ["detail", "where", "internalQuery"];

/** What went wrong, in words. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // Several addresses that all refuse make an AggregateError, whose own message is empty.
  return error.message || ("code" in error && typeof error.code === "string" ? error.code : error.name);
}

/** Whether the language itself refused: a mistake of ours, whatever else is away. */
export function isBug(error: unknown): boolean {
  return error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError;
}

/** How loudly to tell a failure that was reckoned with. A mistake of ours must not pass for an outage. */
export function levelOf<Usual extends "debug" | "info" | "warn">(error: unknown, usual: Usual): Usual | "error" {
  return isBug(error) ? "error" : usual;
}

/** The same failure without the contents it happened with, fit for a log or a job's reason. */
export function withoutContents(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  if (error.cause !== undefined) error.cause = withoutContents(error.cause);
  for (const name of CONTENTS) if (name in error) Reflect.deleteProperty(error, name);
  return error;
}
