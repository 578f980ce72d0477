import type { LogPosition } from "../../../db/replica.ts";
import { isSameSecret } from "../../config/same-secret.ts";
import { json, type Reply, type RequestHeaders } from "../../http/reply.ts";
import { type Json, objectOf, textOf } from "../../json.ts";

/** The path at which the centre tells its primary's position, for edges that have passed on a write. */
export const POSITION_PATH = "/-/position";

/**
 * The header in which an edge names the history of the database that it reads. The name is a random one, and only the
 * database has it. So others are not told how much the primary writes.
 */
const ERA_HEADER = "x-tain-era";

export function positionHeaders(era: string): Record<string, string> {
  return { [ERA_HEADER]: era };
}

/** The position, for those who name the history that it belongs to. Nobody else is told anything. */
export function positionReply({ era, lsn }: LogPosition, headers: RequestHeaders): Reply {
  const shown = [headers[ERA_HEADER]].flat()[0] ?? "";
  const isKnown = era !== "" && isSameSecret(shown, era);
  return json(200, isKnown ? { era, lsn: String(lsn) } : {}, { "Cache-Control": "no-store" });
}

/** The position in the answer of the centre. Null: the centre's database has begun another history. */
export function positionOf(answer: Json): LogPosition | null {
  const { era, lsn } = objectOf(answer);
  return textOf(era) === null ? null : { era: textOf(era) ?? "", lsn: BigInt(textOf(lsn) ?? 0) };
}
