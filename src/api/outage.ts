import { ApiFault } from "./fault.ts";

/** Codes of the network and of Postgres (shutting down, starting up, too many connections) that mean "not now". */
const CODES = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "ENOTFOUND",
  "EAI_AGAIN",
  "57P01",
  "57P02",
  "57P03",
  "53300",
]);

/** pg has no codes for these. */
const MESSAGES =
  /^(timeout exceeded when trying to connect|Connection terminated|Client has encountered a connection error)/;

/** Whether the mirror's own store could not be reached: the same request may succeed later. */
export function isStoreOutage(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const parts = cause instanceof AggregateError ? [cause, ...cause.errors] : [cause];
    if (parts.some((part) => CODES.has((part as { code?: string }).code ?? "") || MESSAGES.test(part.message)))
      return true;
  }
  return false;
}

export function storeOutage(cause: unknown): ApiFault {
  return new ApiFault(503, "Service Unavailable: the mirror's database cannot be reached", {
    headers: { "Retry-After": "5" },
    cause,
  });
}
