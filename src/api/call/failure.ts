import { isPoolExhausted, isPostgresCancelled, isPostgresOutage } from "../../../db/outage.ts";
import { HttpError } from "../../http/errors.ts";
import { JSON_TYPE, type Reply } from "../../http/reply.ts";
import { ApiFault, faultBody, REST_DOCS, tooBusy } from "../dialect/fault.ts";
import { dialectReply, type RequestIds } from "../dialect/protocol.ts";
import type { ApiContext } from "./call.ts";

/** The reply to a request that failed outside its route's own faults. @param path for the log */
export function failureReply(
  { log, requestIds }: Pick<ApiContext, "log"> & { requestIds: RequestIds },
  error: unknown,
  path: string | null,
): Reply {
  const requestId = requestIds.next();
  const reply = (fault: ApiFault) => faultReply(requestId, fault);
  if (error instanceof HttpError)
    return reply(new ApiFault(error.status, error.message, { headers: { ...error.headers } }));
  if (isPoolExhausted(error)) {
    log.warn({ err: error, requestId, path }, "All connections to the database are in use");
    return reply(tooBusy(5, { cause: error }));
  }
  if (isPostgresOutage(error)) {
    log.error({ err: error, requestId, path }, "The database cannot be reached");
    const message = "Service Unavailable: the mirror's database cannot be reached";
    return reply(new ApiFault(failureStatus(error), message, { headers: { "Retry-After": "5" }, cause: error }));
  }
  if (isPostgresCancelled(error)) {
    log.warn({ err: error, requestId, path }, "A read took longer than READ_TIMEOUT, or a search than half of it");
    return reply(new ApiFault(failureStatus(error), "Server Error"));
  }
  log.error({ err: error, requestId, path }, "A request failed");
  return reply(new ApiFault(failureStatus(error), "Server Error"));
}

/** The status of the reply that `failureReply` makes. Pure. */
export function failureStatus(error: unknown): number {
  if (error instanceof HttpError) return error.status;
  if (isPostgresOutage(error)) return 503;
  return isPostgresCancelled(error) ? 502 : 500;
}

/** A fault as the service words it. */
export function faultReply(requestId: string, fault: ApiFault, headers: Record<string, string> = {}): Reply {
  return dialectReply(requestId, {
    status: fault.status,
    headers: { "Content-Type": JSON_TYPE, ...headers, ...fault.headers },
    body: faultBody(fault, REST_DOCS),
  });
}
