/** Long texts and bytes, made one piece by piece: whole, they would hold the event loop for as long as they are. */
import type { Pace } from "./pace.ts";

/** A millisecond's work, roughly. */
const CHARACTERS_AT_ONCE = 256 * 1024;

/** Texts and bytes as one, in UTF-8. */
export async function joinedBytes(parts: readonly (string | Buffer)[], pace: Pace): Promise<Buffer> {
  let size = 0;
  for (const part of parts) {
    // A text of many pieces becomes one when its bytes are counted.
    if (pace.isOver()) await pace.turn();
    size += Buffer.byteLength(part);
  }
  // Its memory is taken as it is filled: at once, 100 MB of it would take long.
  const whole = Buffer.allocUnsafeSlow(size);
  let at = 0;
  for (const part of parts) {
    if (pace.isOver()) await pace.turn();
    at += typeof part === "string" ? whole.write(part, at) : part.copy(whole, at);
  }
  return whole;
}

/** A text in UTF-8. A short one stays a text. */
export async function sendable(text: string, pace: Pace): Promise<string | Buffer> {
  if (text.length <= CHARACTERS_AT_ONCE) return text;
  const pieces: string[] = [];
  for (let start = 0, end: number; start < text.length; start = end) {
    end = start + CHARACTERS_AT_ONCE;
    // The two units of one character stay together.
    if (isFirstOfTwo(text.charCodeAt(end - 1))) end += 1;
    pieces.push(text.slice(start, end));
  }
  return joinedBytes(pieces, pace);
}

function isFirstOfTwo(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
