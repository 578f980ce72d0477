import { isPostgresConflict, isPostgresOutage } from "../../db/outage.ts";

/** Only a process that writes can do this. One that reads from a replica alone passes the request on. */
export class ElsewhereError extends Error {
  override name = "ElsewhereError";
}

/**
 * Whether a process that writes may succeed where one that reads from a replica alone has failed: its replica is away,
 * takes no writes, or has cancelled a read for its replay.
 */
export function isForElsewhere(error: unknown): boolean {
  return error instanceof ElsewhereError || isPostgresOutage(error) || isPostgresConflict(error);
}
