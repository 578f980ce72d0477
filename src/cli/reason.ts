/** Why it failed, in one sentence: the innermost message, since what wraps it repeats the statement that failed. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.cause instanceof Error) return reasonOf(error.cause);
  // Several addresses that all refuse make an error whose own message is empty.
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  return error.message || codeOf(error) || error.name;
}

/** The system's own name for a failure, such as `ENOENT`; undefined for a failure of another kind. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}
