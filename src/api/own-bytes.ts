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
