import type { Told } from "../../events/log.ts";
import { type Fields, isObject, objectOf, wholeOf } from "../../json.ts";
import type { Sighting } from "../../mirror/store/observation.ts";

/** A delivery is signed by upstream and yet says something that cannot be. Trying again will not help. */
export class InvalidPayloadError extends Error {
  override name = "InvalidPayloadError";
}

export type Payload = Fields & { action?: string };

/** The repository that a payload is about. */
export type PayloadRepository = NonNullable<Sighting["repository"]>;

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
