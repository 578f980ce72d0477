/** Postgres may put the rows themselves into these fields of an error: people's words, at worst secrets. */
const ROW_FIELDS: readonly string[] = ["detail", "where", "internalQuery"];

/** What went wrong, in the error's own words. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.message) return error.message;
  // Several addresses that all refuse make an AggregateError without a message.
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  return codeOf(error) ?? error.name;
}

/** The reason at the root, for a person at a terminal. An error around it, such as "fetch failed", says less. */
export function rootReasonOf(error: unknown): string {
  return error instanceof Error && error.cause instanceof Error ? rootReasonOf(error.cause) : reasonOf(error);
}

/** Both, for a person who can mend what lies at the root: "upstream cannot be reached (self-signed certificate)". */
export function wholeReasonOf(error: unknown): string {
  const [reason, root] = [reasonOf(error), rootReasonOf(error)];
  return reason === root ? reason : `${reason} (${root})`;
}

/** The system's own name for a failure, such as `ENOENT`; undefined for a failure of another kind. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** Whether the language itself refused: a mistake of ours, whatever else is away. */
export function isBug(error: unknown): boolean {
  return error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError;
}

/** Errors of commands that Redis could never run. */
const REFUSED_BY_REDIS = /^(ERR|WRONGTYPE|EXECABORT|CROSSSLOT)\b/;
/** What begins like these and passes: Redis has too many clients, or, before Redis 7, a script met an outage. */
const PASSING_IN_REDIS =
  /^ERR (max number of clients reached|.* -(OOM|READONLY|MISCONF|NOREPLICAS|MASTERDOWN|LOADING|BUSY|CLUSTERDOWN|TRYAGAIN)\b)/;

/** Whether it is a mistake of ours: a bug, or a command that Redis could never run. */
export function isMistake(error: unknown): boolean {
  if (!(error instanceof Error) || error.name !== "ReplyError") return isBug(error);
  // Redis discards a transaction when it refuses one of its commands. ioredis keeps the reasons, which may be outages.
  const reasons = "previousErrors" in error && Array.isArray(error.previousErrors) ? error.previousErrors : [];
  return reasons.length > 0 ? reasons.some(isMistake) : isRefusedForEver(error.message);
}

function isRefusedForEver(words: string): boolean {
  return REFUSED_BY_REDIS.test(words) && !PASSING_IN_REDIS.test(words);
}

/** The log level of an expected failure. A mistake of ours must not pass for an outage. */
export function levelOf<Usual extends "debug" | "info" | "warn">(error: unknown, usual: Usual): Usual | "error" {
  return isMistake(error) ? "error" : usual;
}

/** The same failure without the contents it happened with, fit for a log or a job's reason. */
export function withoutContents(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  if (error.cause !== undefined) error.cause = withoutContents(error.cause);
  for (const name of ROW_FIELDS) if (name in error) Reflect.deleteProperty(error, name);
  return error;
}
