import { type Fields, isObject, parseSent, TooManyValuesError } from "../../json.ts";

/** What a caller sent, if it is an object of a size that is read. */
export function objectIn(body: string): Fields {
  try {
    const value = parseSent(body);
    return isObject(value) ? value : {};
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TooManyValuesError) return {};
    throw error;
  }
}
