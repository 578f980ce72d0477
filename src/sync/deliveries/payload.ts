import { InvalidRepresentationError } from "../../mirror/store/observation.ts";
import type { Fields, Json } from "../../mirror/store/template.ts";

/** A delivery is signed by upstream and yet says something that cannot be. Trying again will not help. */
export class InvalidPayloadError extends Error {
  override name = "InvalidPayloadError";
}

export type Payload = Fields & { action?: string };

/** @throws InvalidPayloadError when it is no JSON object */
export function parsePayload(text: string): Payload {
  let payload: Json;
  try {
    payload = JSON.parse(text);
  } catch (error) {
    throw new InvalidPayloadError("The payload is not JSON", { cause: error });
  }
  if (!isObject(payload)) throw new InvalidPayloadError("The payload is not a JSON object");
  const { action, ...fields } = payload;
  return typeof action === "string" ? { ...fields, action } : fields;
}

/** Null for an event that concerns no repository. */
export function repositoryOf(payload: Payload): Fields | null {
  const { repository } = payload;
  return isObject(repository) && typeof repository.id === "number" && typeof repository.full_name === "string"
    ? repository
    : null;
}

/** @throws InvalidRepresentationError when it has none */
export function numberOf(value: Json | undefined): number {
  if (!isObject(value) || typeof value.number !== "number")
    throw new InvalidRepresentationError("its subject has no number");
  return value.number;
}

export function isObject(value: Json | undefined): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
