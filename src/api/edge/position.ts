import type { LogPosition } from "../../../db/replica.ts";
import { json, type Reply } from "../../http/reply.ts";
import { type Json, objectOf, textOf } from "../../json.ts";

/** The path at which the centre tells its primary's position, for edges that have passed on a write. */
export const POSITION_PATH = "/-/position";

export function positionReply({ era, lsn }: LogPosition): Reply {
  return json(200, { era, lsn: String(lsn) }, { "Cache-Control": "no-store" });
}

/** The position in the answer of the centre. */
export function positionOf(answer: Json): LogPosition {
  const { era, lsn } = objectOf(answer);
  return { era: textOf(era) ?? "", lsn: BigInt(textOf(lsn) ?? 0) };
}
