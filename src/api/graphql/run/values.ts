import type { GraphQLError, GraphQLLeafType } from "graphql";
import type { FieldInfo } from "./plan.ts";

/** Reads the values that resolvers answer, and writes them as the text of an answer. */

/** The value of a field without a resolver of its own: the property, or the result if the property is a function. */
export function propertyOf(source: unknown, info: FieldInfo, args: unknown, context: unknown): unknown {
  if (typeof source !== "object" || source === null) return undefined;
  // No type can say which properties the sources of a field have.
  const value = (source as Record<string, unknown>)[info.fieldName];
  return typeof value === "function" ? value.call(source, args, context, info) : value;
}

export function leafText(type: GraphQLLeafType, value: unknown): string {
  // A string type shows these values as they are.
  if (typeof value === "string" && isText(type)) return jsonString(value);
  const coerced: unknown = type.coerceOutputValue(value);
  if (coerced == null) throw new Error(`A value of the type ${type} cannot be shown: ${value}`);
  return typeof coerced === "string" ? jsonString(coerced) : JSON.stringify(coerced);
}

function isText(type: GraphQLLeafType): boolean {
  const { name } = type;
  return name === "String" || name === "ID" || name === "DateTime" || name === "URI";
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what JSON escapes
const ESCAPED = /["\\\u0000-\u001f\ud800-\udfff]/;

function jsonString(text: string): string {
  return text.length < 64 && !ESCAPED.test(text) ? `"${text}"` : JSON.stringify(text);
}

/**
 * How long a text may be before it is flattened. A shorter one is a tree of ten thousand pieces at most, which is read
 * within a millisecond or two.
 */
export const PIECE_CHARACTERS = 256 * 1024;

/**
 * The same text, in one piece of memory if it is long. A concatenated string is a tree of its pieces until it is read.
 * Reading the 1.5 million pieces of a long answer at once takes 50 ms.
 */
export function flat(text: string): string {
  // Counting the bytes makes the engine flatten the string.
  if (text.length > PIECE_CHARACTERS) Buffer.byteLength(text);
  return text;
}

export function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

/** Whether the value is a list. As in graphql-js, strings are none. */
export function isIterable(value: unknown): value is Iterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.iterator in value;
}

interface Shared {
  /** The object that stands for the resource, wherever the answer shows it. */
  rest: object;
  /** Takes the text of a resource that one view alone shows. */
  keep?: (text: string) => void;
}

/** A resource that one answer may show at many places. */
export function isShared(value: unknown): value is Shared {
  return typeof value === "object" && value !== null && "rest" in value;
}

/** The place of a value in the answer. */
export interface ResponsePath {
  above: ResponsePath | undefined;
  key: string | number;
}

export function responsePath(place: ResponsePath): (string | number)[] {
  const path: (string | number)[] = [];
  for (let at: ResponsePath | undefined = place; at; at = at.above) path.push(at.key);
  return path.reverse();
}

/** Collects the errors of one answer. */
export class Faults {
  /** The errors that the answer shows. */
  readonly errors: GraphQLError[] = [];
  /** The places that are null because of an error. Errors below such a place are not shown. */
  readonly #nulled = new Set<string>();
  #count = 0;

  /** How many errors occurred, shown or not. */
  get count(): number {
    return this.#count;
  }

  /** @param path the path of the value that is null because of the error */
  add(error: GraphQLError, path: readonly (string | number)[]): void {
    this.#count += 1;
    for (let length = path.length; length >= 0; length--)
      if (this.#nulled.has(JSON.stringify(path.slice(0, length)))) return;
    this.#nulled.add(JSON.stringify(path));
    this.errors.push(error);
  }
}
