import { isPostgresConflict, isPostgresOutage } from "../../db/outage.ts";

/** Only the centre can do this. An edge passes the request on to the centre. */
export class AtCentreError extends Error {
  override name = "AtCentreError";
}

/**
 * Whether the centre may succeed where an edge has failed: its replica is away, takes no writes, or has cancelled a
 * read for its replay.
 */
export function isForCentre(error: unknown): boolean {
  return error instanceof AtCentreError || isPostgresOutage(error) || isPostgresConflict(error);
}
