/**
 * Cursors and global ids as the service writes them: a MessagePack array, in base64 behind a short prefix.
 * Only the four kinds of value that occur in them are spoken here: unsigned integers, strings, null, arrays.
 */
export type Packed = number | string | null | Packed[];

/** Encodes in the shortest form, as the service does. Throws on a negative or fractional number. */
export function pack(value: Packed): Buffer {
  if (value === null) return Buffer.of(0xc0);
  if (typeof value === "number") return packInteger(value);
  if (typeof value === "string") {
    const text = Buffer.from(value, "utf8");
    if (text.length < 32) return Buffer.concat([Buffer.of(0xa0 | text.length), text]);
    if (text.length < 256) return Buffer.concat([Buffer.of(0xd9, text.length), text]);
    if (text.length < 65_536) return Buffer.concat([Buffer.of(0xda, text.length >> 8, text.length & 255), text]);
    throw new RangeError(`A cursor key holds at most 65,535 bytes of text, not ${text.length}`);
  }
  if (value.length > 15) throw new RangeError(`A cursor holds at most 15 values, not ${value.length}`);
  return Buffer.concat([Buffer.of(0x90 | value.length), ...value.map(pack)]);
}

function packInteger(value: number): Buffer {
  if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`Not an unsigned integer: ${value}`);
  if (value < 0x80) return Buffer.of(value);
  if (value < 0x100) return Buffer.of(0xcc, value);
  const wide = Buffer.alloc(9);
  wide.writeBigUInt64BE(BigInt(value), 1);
  if (value < 0x1_0000) return Buffer.concat([Buffer.of(0xcd), wide.subarray(7)]);
  if (value < 0x1_0000_0000) return Buffer.concat([Buffer.of(0xce), wide.subarray(5)]);
  wide[0] = 0xcf;
  return wide;
}

/** The value in `bytes`, or undefined when they are not exactly one value of the kinds spoken here. */
export function unpack(bytes: Buffer): Packed | undefined {
  let at = 0;
  const take = (count: number): Buffer => {
    if (at + count > bytes.length) throw new RangeError("cut short");
    at += count;
    return bytes.subarray(at - count, at);
  };
  const read = (): Packed => {
    const tag = take(1).readUInt8();
    if (tag < 0x80) return tag;
    if (tag >= 0x90 && tag < 0xa0) return Array.from({ length: tag & 15 }, read);
    if (tag >= 0xa0 && tag < 0xc0) return take(tag & 31).toString("utf8");
    switch (tag) {
      case 0xc0:
        return null;
      case 0xcc:
        return take(1).readUInt8();
      case 0xcd:
        return take(2).readUInt16BE();
      case 0xce:
        return take(4).readUInt32BE();
      case 0xcf:
        return Number(take(8).readBigUInt64BE());
      case 0xd9:
        return take(take(1).readUInt8()).toString("utf8");
      case 0xda:
        return take(take(2).readUInt16BE()).toString("utf8");
      default:
        throw new RangeError(`unknown tag ${tag}`);
    }
  };
  try {
    const value = read();
    return at === bytes.length ? value : undefined;
  } catch (error) {
    if (error instanceof RangeError) return undefined; // Not our own bytes, and no fault of ours.
    throw error;
  }
}

const CURSOR_PREFIX = Buffer.from("cursor:v2:");

/** Opaque to clients: where a row stands in its order, and which row it is. */
export function encodeCursor(key: string | number | null, id: number): string {
  return Buffer.concat([CURSOR_PREFIX, pack([key, id])]).toString("base64");
}

/** `[key, id]`, or undefined when the text is no cursor of ours. Both base64 alphabets are read. */
export function decodeCursor(cursor: string): [key: string | number | null, id: number] | undefined {
  const bytes = Buffer.from(cursor, "base64");
  if (!bytes.subarray(0, CURSOR_PREFIX.length).equals(CURSOR_PREFIX)) return undefined;
  const value = unpack(bytes.subarray(CURSOR_PREFIX.length));
  if (!Array.isArray(value) || value.length !== 2) return undefined;
  const [key, id] = value;
  if (typeof id !== "number" || key === undefined || !isKey(key)) return undefined;
  return [key, id];
}

function isKey(value: Packed): value is string | number | null {
  return value === null || typeof value === "string" || typeof value === "number";
}
