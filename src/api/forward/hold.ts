import { Readable } from "node:stream";
import type { Json } from "../../json.ts";
import { UpstreamUnavailableError } from "../../upstream/client/errors.ts";
import type { Opened } from "../../upstream/client/opened.ts";
import { collected } from "./body.ts";

/** So much of a write's answer is held, to see what it changed; what is longer is forwarded unread. */
const MOST_HELD = 1024 * 1024;

/** Reads the answer, and has it ready to be read again. `answer` is null for what is no JSON, or too long. */
export async function hold(answered: Opened): Promise<{ opened: Opened; answer: Json }> {
  const held = await collected(unbroken(answered.body), MOST_HELD);
  const body = Readable.from("whole" in held ? [held.whole] : held.pieces);
  body.once("close", () => answered.body.destroy());
  return { opened: { ...answered, body }, answer: "whole" in held ? jsonOf(held.whole) : null };
}

async function* unbroken(body: Readable): AsyncGenerator<Buffer> {
  try {
    for await (const piece of body) yield Buffer.from(piece);
  } catch (cause) {
    throw new UpstreamUnavailableError("The answer to a write broke off", "unreadable", { cause });
  }
}

function jsonOf(bytes: Buffer): Json {
  try {
    return JSON.parse(bytes.toString());
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
