import { type Fields, isObject, parseSent, TooManyValuesError } from "../../json.ts";

/** The caller's body, if it is an object that is small enough to read. */
export function objectIn(body: string): Fields {
  try {
    const value = parseSent(body);
    return isObject(value) ? value : {};
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TooManyValuesError) return {};
    throw error;
  }
}
