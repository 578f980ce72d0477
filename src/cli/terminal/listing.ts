import { duration } from "../../config/values.ts";
import { rootReasonOf } from "../../failure.ts";
import { type Given, UsageError } from "./command.ts";

const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 1_000;

/** How many rows a list shows: `--limit`, described for the help. */
export const LIMIT = { takes: "N", about: `how many, at most ${MAX_LIMIT} (default ${DEFAULT_LIMIT})` };

/** Pure. @throws UsageError */
export function readLimit(values: Given["values"]): number {
  const limit = values.get("limit") ?? String(DEFAULT_LIMIT);
  if (!/^\d{1,4}$/.test(limit) || Number(limit) < 1 || Number(limit) > MAX_LIMIT)
    throw new UsageError(`--limit ${limit} is not a number from 1 to ${MAX_LIMIT}`);
  return Number(limit);
}

/** How far back `--since` goes, in ms; null: without an end. Pure. @throws UsageError */
export function readSince(values: Given["values"]): number | null {
  const text = values.get("since");
  if (text === undefined) return null;
  try {
    return duration(text);
  } catch (error) {
    throw new UsageError(`--since ${rootReasonOf(error)}`);
  }
}
