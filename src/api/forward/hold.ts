import { Readable } from "node:stream";
import type { Json } from "../../json.ts";
import { UpstreamUnavailableError } from "../../upstream/client/errors.ts";
import type { Opened } from "../../upstream/client/opened.ts";

/** So much of a write's answer is held, to see what it changed; what is longer is passed on unread. */
const MOST_HELD = 1024 * 1024;

/** Reads the answer, and has it ready to be read again. `answer` is null for what is no JSON, or too long. */
export async function hold(answered: Opened): Promise<{ opened: Opened; answer: Json }> {
  const pieces: Buffer[] = [];
  let size = 0;
  const rest = answered.body[Symbol.asyncIterator]();
  const more = async () => {
    try {
      const { done, value } = await rest.next();
      return done ? null : Buffer.from(value);
    } catch (cause) {
      throw new UpstreamUnavailableError("The answer to a write broke off", "unreadable", { cause });
    }
  };
  let piece = await more();
  for (; piece !== null && size + piece.length <= MOST_HELD; piece = await more()) {
    pieces.push(piece);
    size += piece.length;
  }
  const last = piece;
  async function* again() {
    yield* pieces;
    for (let one = last; one !== null; one = await more()) yield one;
  }
  const body = Readable.from(again());
  body.once("close", () => answered.body.destroy());
  return { opened: { ...answered, body }, answer: last === null ? jsonOf(Buffer.concat(pieces)) : null };
}

function jsonOf(bytes: Buffer): Json {
  try {
    return JSON.parse(bytes.toString());
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
