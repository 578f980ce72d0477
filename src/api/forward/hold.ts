import { Readable } from "node:stream";
import type { Json } from "../../json.ts";
import type { Opened } from "../../upstream/client/opened.ts";
import { collected } from "./body.ts";

/** The longest answer to a write that is held, to see what the write changed. A longer one is forwarded unread. */
const MOST_HELD = 1024 * 1024;

/**
 * Reads the answer, and makes its body readable once more. `answer` is null if the body is no JSON, or too long.
 * @throws as `collected`
 */
export async function hold(answered: Opened): Promise<{ opened: Opened; answer: Json }> {
  const held = await collected(answered.body, MOST_HELD, { of: "A write" });
  const body = Readable.from("whole" in held ? [held.whole] : held.pieces);
  body.once("close", () => answered.body.destroy());
  return { opened: { ...answered, body }, answer: "whole" in held ? jsonOf(held.whole) : null };
}

function jsonOf(bytes: Buffer): Json {
  try {
    return JSON.parse(bytes.toString());
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
