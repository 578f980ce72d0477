import { compressed, type Encoding } from "../../http/reply.ts";

/** A body of JSON that is kept. */
export interface KeptBody {
  bytes: Buffer;
  /** The bytes compressed, by encoding, for callers who accept that. */
  encoded: Map<Encoding, Buffer>;
}

/**
 * The memory that a body of JSON takes, as a multiple of its size. Its compressed forms, brotli and gzip, take about a
 * third of the size together. A body that compresses worse takes more than is counted.
 */
export const COMPRESSED = 1.4;

/** The body in this encoding, which is made once and kept with it. */
export async function encoded(body: KeptBody, encoding: Encoding): Promise<Buffer> {
  const known = body.encoded.get(encoding);
  if (known) return known;
  const bytes = ownBytes(await compressed(body.bytes, encoding, "often"));
  body.encoded.set(encoding, bytes);
  return bytes;
}

/**
 * Bytes in memory of their own, for keeping. Node.js puts the bytes of a short text, or of a short compressed body,
 * into a much larger block. The whole block would stay in memory while any part of it is kept.
 */
export function ownBytes(bytes: string | Buffer): Buffer {
  if (typeof bytes === "string") {
    const own = Buffer.allocUnsafeSlow(Buffer.byteLength(bytes));
    own.write(bytes);
    return own;
  }
  if (bytes.length === bytes.buffer.byteLength) return bytes;
  const own = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(own);
  return own;
}
