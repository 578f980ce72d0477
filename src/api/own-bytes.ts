/**
 * Bytes for keeping. A short text that Node.js turns into bytes, and a short body that it compresses, lie in a block of
 * memory many times as long, which stays as a whole as long as any part of it is kept.
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
