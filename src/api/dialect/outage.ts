import { ApiFault } from "./fault.ts";

/** The mirror's own store cannot be reached: the same request may succeed later. */
export function storeOutage(cause: unknown): ApiFault {
  return new ApiFault(503, "Service Unavailable: the mirror's database cannot be reached", {
    headers: { "Retry-After": "5" },
    cause,
  });
}
