/** Whether the value is an object of JSON, neither list nor null. Nothing is known of its fields yet. */
export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `choices.includes(value)`, which the compiler believes. */
export function isOneOf<Choice extends string>(choices: readonly Choice[], value: unknown): value is Choice {
  return choices.some((choice) => choice === value);
}

/** Values from the control routes or the command line are trusted to have the declared type. */
export function trusted<Given>(value: unknown): Given {
  // No type can check JSON, and a check of every field would guard tests against themselves.
  return value as Given;
}
