/** What a text or JSON array is made of, by the name of its elements' type. https://www.postgresql.org/docs/18/datatype-oid.html */
const ELEMENT_OIDS: Readonly<Record<string, number>> = { text: 25, json: 114 };

const HEAD_BYTES = 20;

/**
 * A parameter of the type `text[]` or `json[]` in Postgres's binary form; null for any other type. As text each quote of a
 * document would be escaped here and unescaped there. The form is that of `array_send`: dimensions, whether there are nulls,
 * the elements' type, length and lower bound, and then each element behind its length.
 */
export function textArray(type: string, elements: readonly (string | null)[]): Buffer | null {
  const oid = ELEMENT_OIDS[type];
  if (oid === undefined) return null;
  // An empty one has no dimension.
  let size = elements.length === 0 ? 12 : HEAD_BYTES;
  for (const element of elements) size += 4 + (element === null ? 0 : Buffer.byteLength(element));
  const bytes = Buffer.allocUnsafe(size);
  bytes.writeInt32BE(elements.length === 0 ? 0 : 1, 0);
  bytes.writeInt32BE(elements.includes(null) ? 1 : 0, 4);
  bytes.writeInt32BE(oid, 8);
  if (elements.length === 0) return bytes;
  bytes.writeInt32BE(elements.length, 12);
  bytes.writeInt32BE(1, 16);
  let at = HEAD_BYTES;
  for (const element of elements) {
    const length = element === null ? -1 : bytes.write(element, at + 4);
    bytes.writeInt32BE(length, at);
    at += 4 + Math.max(0, length);
  }
  return bytes;
}
