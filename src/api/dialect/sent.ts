import { type Fields, isObject, type Json } from "../../json.ts";
import { JsonBoundError, parseSent } from "../../sent-json.ts";
import { ApiFault } from "./fault.ts";

/** The JSON in a request's body. @throws ApiFault 400, and 413 for more values than a request may have */
export function jsonIn(body: string): Json {
  try {
    return parseSent(body);
  } catch (cause) {
    if (!(cause instanceof JsonBoundError)) throw new ApiFault(400, "Problems parsing JSON", { cause });
    if (cause.bound === "values")
      throw new ApiFault(413, "The request's body has more values than are taken", { cause });
    throw new ApiFault(400, `Problems parsing JSON: ${cause.message}`, { cause });
  }
}

/** The JSON object in a request's body. @throws ApiFault as `jsonIn`, and 400 for another value */
export function objectIn(body: string): Fields {
  const value = jsonIn(body);
  if (isObject(value)) return value;
  throw new ApiFault(400, "Body should be a JSON object");
}
