import { isOneOf } from "../world/json.ts";
import { Refusal } from "../world/refusal.ts";
import type { Call } from "./call.ts";

/** Reading of request bodies: what is absent is undefined, what has the wrong type is refused as the service does. */
type Body = Call["body"];

function wrong(name: string, expected: string, value: unknown): Refusal {
  return new Refusal(422, `Invalid request.\n\nFor 'properties/${name}', ${JSON.stringify(value)} is not ${expected}.`);
}

export function text(body: Body, name: string): string | undefined {
  const value = body[name];
  if (value === undefined) return undefined;
  if (typeof value !== "string") throw wrong(name, "a string", value);
  return value;
}

export function textOrNull(body: Body, name: string): string | null | undefined {
  return body[name] === null ? null : text(body, name);
}

export function flag(body: Body, name: string): boolean | undefined {
  const value = body[name];
  if (value === undefined) return undefined;
  if (typeof value !== "boolean") throw wrong(name, "a boolean", value);
  return value;
}

export function numberOf(body: Body, name: string): number | undefined {
  const value = body[name];
  if (value === undefined) return undefined;
  if (typeof value !== "number" || !Number.isSafeInteger(value)) throw wrong(name, "an integer", value);
  return value;
}

export function texts(body: Body, name: string): readonly string[] | undefined {
  const value = body[name];
  if (value === undefined) return undefined;
  const isTexts = (list: unknown[]): list is string[] => list.every((one) => typeof one === "string");
  if (!Array.isArray(value) || !isTexts(value)) throw wrong(name, "an array of strings", value);
  return value;
}

export function oneOf<Choice extends string>(body: Body, name: string, choices: readonly Choice[]): Choice | undefined {
  const value = text(body, name);
  if (value === undefined || isOneOf(choices, value)) return value;
  throw new Refusal(
    422,
    `Invalid request.\n\nNo subschema in "anyOf" matched.\nFor 'properties/${name}', ${value} is not a member of ${JSON.stringify(choices)}.`,
  );
}

export function required<Value>(value: Value | undefined, name: string): Value {
  if (value === undefined) throw new Refusal(422, `Invalid request.\n\n"${name}" wasn't supplied.`);
  return value;
}

/** ISO 8601 → whole seconds. */
export function timeOf(body: Body, name: string): number | null | undefined {
  const value = textOrNull(body, name);
  if (value === undefined || value === null) return value;
  const at = Date.parse(value);
  if (Number.isNaN(at)) throw wrong(name, "a valid time", value);
  return Math.floor(at / 1_000);
}
