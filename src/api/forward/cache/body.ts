/** Forwarded bodies. They are sent on piece by piece, so that none is held as a whole. */
import type { Readable } from "node:stream";
import type { Outlet } from "../../../http/reply.ts";
import type { Logger } from "../../../operations/log.ts";
import { UpstreamUnavailableError } from "../../../upstream/protocol/errors.ts";

/** How long a caller may leave a written piece unread. Meanwhile upstream's connection waits. */
const PIECE_UNREAD_MS = 30_000;

/**
 * Writes each piece as fast as the caller reads. If upstream's answer breaks off, so does this one: it must not look
 * whole.
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
        if ((await outlet.drained(PIECE_UNREAD_MS)) !== "drained") return outlet.drop();
      }
    } catch (error) {
      if (isRead) log.warn({ err: error }, "Upstream's answer broke off while it was forwarded");
      outlet.drop();
    } finally {
      body.destroy();
    }
  };
}

/** The bytes with one address replaced by another. It holds back no more bytes than the address has. */
export async function* rebasedBytes(body: AsyncIterable<Buffer>, from: string, to: string): AsyncGenerator<Buffer> {
  // One character for each byte, since a piece may end within a character of UTF-8.
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

/** The same for bytes that are complete. */
export function rebased(bytes: Buffer, from: string, to: string): Buffer {
  if (!bytes.includes(from)) return bytes;
  const [sought, put] = [Buffer.from(from).toString("latin1"), Buffer.from(to).toString("latin1")];
  return Buffer.from(bytes.toString("latin1").replaceAll(sought, put), "latin1");
}

/**
 * Reads a body that is no longer than `most`. A longer body is answered as pieces from its beginning on, while they
 * arrive.
 * @param of what was asked, for the message
 * @throws UpstreamUnavailableError when it breaks off; the reason of `gone` once that has fired
 */
export async function collected(
  body: AsyncIterable<Buffer>,
  most: number,
  { of, gone }: { of: string; gone?: AbortSignal },
): Promise<{ whole: Buffer } | { pieces: AsyncIterable<Buffer> }> {
  const arriving: AsyncIterator<Buffer> = body[Symbol.asyncIterator]();
  const begun: Buffer[] = [];
  for (let size = 0; size <= most; ) {
    const { done, value } = await arriving.next().catch((cause: unknown) => {
      gone?.throwIfAborted();
      throw new UpstreamUnavailableError(`${of}: upstream's answer broke off`, "interrupted", { cause });
    });
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
