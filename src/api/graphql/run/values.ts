/** The values that resolvers answer, and how they look in the text of an answer. */
import type { GraphQLLeafType } from "graphql";
import type { FieldInfo } from "./plan.ts";

/** The value of a field without a resolver of its own: the property, or the result if the property is a function. */
export function propertyOf(source: unknown, info: FieldInfo, args: unknown, context: unknown): unknown {
  if (typeof source !== "object" || source === null) return undefined;
  // No type can say which properties the sources of a field have.
  const value = (source as Record<string, unknown>)[info.fieldName];
  return typeof value === "function" ? value.call(source, args, context, info) : value;
}

export function leafText(type: GraphQLLeafType, value: unknown): string {
  // Values of these types are shown as they are: strings, or truth values.
  if (typeof value === "string" && isText(type)) return quoted(value);
  const coerced: unknown = type.coerceOutputValue(value);
  if (coerced == null) throw new Error(`A value of the type ${type} cannot be shown: ${value}`);
  return typeof coerced === "string" ? quoted(coerced) : JSON.stringify(coerced);
}

function isText(type: GraphQLLeafType): boolean {
  const { name } = type;
  return name === "String" || name === "ID" || name === "DateTime" || name === "URI";
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what JSON escapes
const ESCAPED = /["\\\u0000-\u001f\ud800-\udfff]/;

function quoted(text: string): string {
  return text.length < 64 && !ESCAPED.test(text) ? `"${text}"` : JSON.stringify(text);
}

/** A text below this is a tree of some ten thousand pieces at most, and is read within a millisecond or two. */
export const PIECE_CHARACTERS = 256 * 1024;

/**
 * The same text, in one piece in memory if it is long. A text that was added up is a tree of its pieces until it
 * is read. The 1.5 million pieces of a long answer, all at once, take 50 ms.
 */
export function flat(text: string): string {
  // To count its bytes is to read it.
  if (text.length > PIECE_CHARACTERS) Buffer.byteLength(text);
  return text;
}

export function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

/** Strings are no lists here, as for graphql-js. */
export function isIterable(value: unknown): value is Iterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.iterator in value;
}

interface Shared {
  /** One object for one resource, wherever the answer shows it. */
  rest: object;
  /** Takes its text. Such a resource is shown in one view alone. */
  keep?: (text: string) => void;
}

/** A resource that one answer may show at many places. */
export function isShared(value: unknown): value is Shared {
  return typeof value === "object" && value !== null && "rest" in value;
}
