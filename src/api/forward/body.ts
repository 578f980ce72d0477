/** Forwarded bodies: they go on piece by piece, so that none is ever held as a whole. */
import type { Readable } from "node:stream";
import type { Outlet } from "../../http/reply.ts";
import type { Logger } from "../../operations/log.ts";

/** How long a reader may leave unread what was written. Meanwhile upstream's connection waits. */
const UNREAD_MS = 30_000;

/**
 * Writes what arrives, as fast as it is read. An answer that breaks off is broken off here too: it must not look whole.
 * @param body where the pieces come from
 */
export function forwardedBody(
  body: Readable,
  pieces: AsyncIterable<Buffer>,
  log: Logger,
): (outlet: Outlet) => Promise<void> {
  return async (outlet) => {
    let isRead = true;
    outlet.onClose(() => {
      isRead = false;
      body.destroy();
    });
    try {
      for await (const piece of pieces) {
        if (outlet.write(piece)) continue;
        if ((await outlet.drained(UNREAD_MS)) !== "drained") return outlet.drop();
      }
    } catch (error) {
      if (isRead) log.warn({ err: error }, "Upstream's answer broke off while it was forwarded");
      outlet.drop();
    } finally {
      body.destroy();
    }
  };
}

/** The bytes with one address for another. Of a piece no more is held than the address is long. */
export async function* rebasedBytes(body: AsyncIterable<Buffer>, from: string, to: string): AsyncGenerator<Buffer> {
  // A character for each byte: pieces may end within a character.
  const [sought, put] = [Buffer.from(from).toString("latin1"), Buffer.from(to).toString("latin1")];
  let held = "";
  for await (const piece of body) {
    const parts = (held + piece.toString("latin1")).split(sought);
    const last = parts.pop() ?? "";
    const end = Math.max(0, last.length - sought.length + 1);
    held = last.slice(end);
    const whole = [...parts, last.slice(0, end)].join(put);
    if (whole !== "") yield Buffer.from(whole, "latin1");
  }
  if (held !== "") yield Buffer.from(held, "latin1");
}

/** The same of bytes that are there as a whole. */
export function rebased(bytes: Buffer, from: string, to: string): Buffer {
  if (!bytes.includes(from)) return bytes;
  const [sought, put] = [Buffer.from(from).toString("latin1"), Buffer.from(to).toString("latin1")];
  return Buffer.from(bytes.toString("latin1").replaceAll(sought, put), "latin1");
}

/**
 * Reads a body that is no longer than `most`. Of a longer one: the pieces, from its beginning on, as they arrive.
 * @throws when it breaks off
 */
export async function collected(
  body: AsyncIterable<Buffer>,
  most: number,
): Promise<{ whole: Buffer } | { pieces: AsyncIterable<Buffer> }> {
  const arriving: AsyncIterator<Buffer> = body[Symbol.asyncIterator]();
  const begun: Buffer[] = [];
  for (let size = 0; size <= most; ) {
    const { done, value } = await arriving.next();
    if (done) return { whole: Buffer.concat(begun) };
    begun.push(value);
    size += value.length;
  }
  return { pieces: resumed(begun, arriving) };
}

async function* resumed(begun: readonly Buffer[], arriving: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield* begun;
  for (let next = await arriving.next(); !next.done; next = await arriving.next()) yield next.value;
}
