import type { Json } from "./json.ts";

// JSON that strangers send: payloads of webhooks, bodies of the API, the hooks API and the operator's page, and upstream's
// answers. Values take memory, so they are counted before anything is parsed. The rest is bounded before anybody reads
// it: whatever is nested is walked by recursion later, here and in Postgres.

/** How deep lists and objects may lie in each other. The deepest of upstream's payloads and answers have 10 levels. */
const MOST_DEPTH = 64;
/** The longest key, in characters. The longest of upstream's own has some 40, but a key may be a file's name. */
const MOST_KEY_LENGTH = 1_024;
/** No number reaches it. Upstream's largest have 19 digits; Postgres keeps each digit of a document's. */
const TOO_LARGE = 1e64;
/** The values of a caller's request. A MiB of nothing but keys or brackets takes 100 ms to parse; this many take 10. */
const MOST_VALUES = 10_000;
/** The values of a delivery: a push of 25 MB, at which upstream ends one, names so many files of 33 characters. */
export const MOST_PAYLOAD_VALUES = 700_000;

/** JSON that holds what is not taken. The message is a sentence without its full stop: "It is nested more than …". */
export class JsonBoundError extends Error {
  override name = "JsonBoundError";
  readonly bound: "values" | "depth" | "key" | "number";

  constructor(bound: JsonBoundError["bound"], message: string) {
    super(message);
    this.bound = bound;
  }
}

/**
 * JSON that a stranger sent.
 * @throws SyntaxError, JsonBoundError, and what `parse` throws
 */
export function parseSent(text: string, mostValues = MOST_VALUES, parse: (text: string) => Json = JSON.parse): Json {
  requireBoundedText(text, mostValues);
  const value = parse(text);
  // A text without this escape holds no NUL: looked for once, it need not be in each key.
  requireShape(value, 0, text.includes("\\u0000"));
  return value;
}

/**
 * JSON that upstream sent. In a list, also one beside its count, a row beyond the bounds is null and concerns no other:
 * the payload of a deployment, for one, is as its maker wrote it.
 * @throws SyntaxError, JsonBoundError, and what `parse` throws
 */
export function parseAnswer(text: string, parse: (text: string) => Json): Json {
  const value = parse(text);
  const mayHoldNul = text.includes("\\u0000");
  if (isShaped(value, mayHoldNul)) return value;
  const bounded = withoutRows(value, (row) => !isShaped(row, mayHoldNul));
  requireShape(bounded, 0, mayHoldNul);
  return bounded;
}

function isShaped(value: Json, mayHoldNul: boolean): boolean {
  try {
    requireShape(value, 0, mayHoldNul);
    return true;
  } catch (error) {
    if (error instanceof JsonBoundError) return false;
    throw error;
  }
}

function withoutRows(value: Json, isLeftOut: (row: Json) => boolean): Json {
  if (Array.isArray(value)) return value.map((row) => (isLeftOut(row) ? null : row));
  if (typeof value !== "object" || value === null || !("total_count" in value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, rows]) => [key, Array.isArray(rows) ? withoutRows(rows, isLeftOut) : rows]),
  );
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const LIST = 0x5b;
const BACKSLASH = 0x5c;
const LIST_END = 0x5d;
const OBJECT = 0x7b;
const OBJECT_END = 0x7d;

/**
 * Counts values, and how deep they lie, in one pass that builds nothing. A list or object in another takes more memory
 * than any other value. Whether the text is JSON is left to the parser.
 */
function requireBoundedText(text: string, mostValues: number): void {
  // Each value takes two characters at least, but the last of a list.
  if (text.length <= 2 * mostValues) return;
  // Each value but the first follows a comma or a bracket.
  let values = 1;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text.charCodeAt(at);
    if (character === QUOTE) {
      at = endOfString(text, at);
      if (at === -1) return;
      continue;
    }
    if (character === LIST_END || character === OBJECT_END) depth -= 1;
    if (character === LIST || character === OBJECT) requireDepth(depth++);
    else if (character !== COMMA) continue;
    values += 1;
    if (values > mostValues)
      throw new JsonBoundError("values", `It has more than ${mostValues.toLocaleString("en-US")} values`);
  }
}

/** Where the string's last quote is; -1: it has none. Before a quote, an odd number of backslashes escapes it. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let before = end - 1;
    while (text.charCodeAt(before) === BACKSLASH) before -= 1;
    if ((end - before) % 2 === 1) return end;
  }
  return -1;
}

/** @param depth how many lists and objects the value lies in */
function requireShape(value: Json, depth: number, mayHoldNul: boolean): void {
  if (typeof value === "number" && Math.abs(value) >= TOO_LARGE)
    throw new JsonBoundError("number", `It has a number beyond ${TOO_LARGE}`);
  // Most values are neither lists nor objects, and every delivery is walked.
  if (typeof value !== "object" || value === null) return;
  requireDepth(depth);
  if (Array.isArray(value)) {
    for (const each of value) requireShape(each, depth + 1, mayHoldNul);
    return;
  }
  for (const key in value) {
    requireKey(key, mayHoldNul);
    requireShape(value[key] ?? null, depth + 1, mayHoldNul);
  }
}

function requireDepth(depth: number): void {
  if (depth >= MOST_DEPTH) throw new JsonBoundError("depth", `It is nested more than ${MOST_DEPTH} levels deep`);
}

function requireKey(key: string, mayHoldNul: boolean): void {
  if (key.length > MOST_KEY_LENGTH)
    throw new JsonBoundError("key", `It has a key of more than ${MOST_KEY_LENGTH.toLocaleString("en-US")} characters`);
  // Postgres cannot read the other keys of a document that has such a one.
  if (mayHoldNul && key.includes("\0")) throw new JsonBoundError("key", "It has a key with the character U+0000");
  // Set on an object, this key changes what the object inherits.
  if (key === "__proto__") throw new JsonBoundError("key", "It has the key __proto__");
}
