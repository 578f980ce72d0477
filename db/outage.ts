/**
 * Whether Postgres was away: no connection, a broken connection, a server that starts, stops or is full, or a lock that
 * is not given back. The same work may succeed later.
 */
export function isPostgresOutage(error: unknown): boolean {
  return hasCause(
    error,
    (cause) => isOutageCode(cause.code) || MESSAGES.has(String(cause.message)) || isQueueFull(cause),
  );
}

/** Whether all connections of a pool were in use for so long that no statement could be sent. Postgres may be well. */
export function isPoolExhausted(error: unknown): boolean {
  return hasCause(error, ({ message }) => message === POOL_EXHAUSTED);
}

/** Whether the transaction lost against another one and was undone. A second try may succeed. */
export function isPostgresConflict(error: unknown): boolean {
  // serialization_failure, deadlock_detected
  return hasCause(error, ({ code }) => code === "40001" || code === "40P01");
}

/** Whether Postgres gave a statement up: it took too long, or its caller has gone away. */
export function isPostgresCancelled(error: unknown): boolean {
  return hasCause(error, ({ code }) => code === "57014"); // query_canceled
}

/**
 * Whether no column or index can hold a value of the statement (classes 22 and 54), or one is missing
 * (not_null_violation). Another try cannot help.
 */
export function isPostgresDataException(error: unknown): boolean {
  return hasCause(
    error,
    (cause) => typeof cause.code === "string" && /^((22|54)\w{3}|23502)$/.test(cause.code) && !isQueueFull(cause),
  );
}

/** Postgres' queue of notifications is full, which has the same code as a value that is too long. */
function isQueueFull({ code, routine }: PostgresFailure): boolean {
  return code === "54000" && routine === "PreCommit_Notify";
}

/** The same, or a constraint forbids what the statement would store (class 23). */
export function isPostgresRefusal(error: unknown): boolean {
  return (
    isPostgresDataException(error) || hasCause(error, ({ code }) => typeof code === "string" && /^23\w{3}$/.test(code))
  );
}

/** Whether the error came from Postgres, or from the attempt to reach it. */
export function isOfPostgres(error: unknown): boolean {
  return isPostgresOutage(error) || hasCause(error, ({ code }) => typeof code === "string" && SQLSTATE.test(code));
}

/** A code of Postgres always has a digit. System errors of five letters, such as EPERM, have none. */
const SQLSTATE = /^(?=.*\d)[0-9A-Z]{5}$/;

interface PostgresFailure {
  code?: unknown;
  message?: unknown;
  /** Of an error of Postgres: the function of the server that failed. */
  routine?: unknown;
}

function hasCause(error: unknown, isSo: (cause: PostgresFailure) => boolean): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    // A host with several addresses fails with an error for each.
    const parts = cause instanceof AggregateError ? [cause, ...cause.errors] : [cause];
    if (parts.some((part) => isSo(part ?? {}))) return true;
  }
  return false;
}

function isOutageCode(code: unknown): boolean {
  return typeof code === "string" && (CODES.has(code) || code.startsWith("08"));
}

const CODES: ReadonlySet<string> = new Set([
  // https://www.postgresql.org/docs/18/errcodes-appendix.html; 08… are failures of the connection.
  "57P01", // admin_shutdown
  "57P02", // crash_shutdown
  "57P03", // cannot_connect_now
  "57P05", // idle_session_timeout
  "53100", // disk_full
  "53200", // out_of_memory: also where other sessions hold as many locks as the server has room for
  "53300", // too_many_connections
  "25006", // read_only_sql_transaction: a standby that has not been promoted yet
  "55P03", // lock_not_available: another transaction does not end
  "55000", // object_not_in_prerequisite_state: such a standby was asked for its own log position
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
]);

const POOL_EXHAUSTED = "timeout exceeded when trying to connect";

/** Errors of node-postgres that have a message but no code. A test looks for these texts in the driver's source. */
export const MESSAGES: ReadonlySet<string> = new Set([
  // pg 8.23.1, lib/client.js:170, 204, 707, 767, 774
  "timeout expired",
  "Connection terminated",
  "Connection terminated unexpectedly",
  "Query read timeout",
  "Client has encountered a connection error and is not queryable",
  "Client was closed and is not queryable",
  // pg-pool 3.14.0, index.js:224, 276
  POOL_EXHAUSTED,
  "Connection terminated due to connection timeout",
]);
