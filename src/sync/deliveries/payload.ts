import type { Told } from "../../events/log.ts";
import { type Fields, isObject, type Json, objectOf, textOf, wholeOf } from "../../json.ts";
import type { Sighting } from "../../mirror/store/observation.ts";

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

/** The repository that a payload is about. */
export type PayloadRepository = NonNullable<Sighting["repository"]>;

/** Null for an event that concerns no repository, or names it by what is no id or no name. */
export function repositoryInPayload({ repository }: Payload): PayloadRepository | null {
  const { id: shownId, full_name: fullName, html_url: htmlUrl } = objectOf(repository);
  const id = wholeOf(shownId);
  return id !== null && typeof fullName === "string" ? { id, fullName, htmlUrl: textOf(htmlUrl) } : null;
}

/** Upstream's id of the account that an event belongs to: its repository's owner, or its organization. Null: it names none. */
export function ownerOf({ repository, organization }: Payload): number | null {
  return wholeOf(objectOf(objectOf(repository).owner).id) ?? wholeOf(objectOf(organization).id);
}

/** The issue or pull request that a payload is about; null: none. */
export function aboutOf({ issue, pull_request: pull }: Payload): Told["about"] {
  const number = wholeOf(objectOf(pull).number);
  if (number !== null) return { number, isPullRequest: true };
  const { number: shownOwn, pull_request: asPull } = objectOf(issue);
  const own = wholeOf(shownOwn);
  return own !== null ? { number: own, isPullRequest: isObject(asPull) } : null;
}
