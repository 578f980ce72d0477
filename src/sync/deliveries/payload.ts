import type { Told } from "../../events/log.ts";
import { type Fields, isObject, objectOf, wholeOf } from "../../json.ts";
import type { Observed, Sighting } from "../../mirror/store/observation.ts";
import type { ToldRef } from "../../mirror/store/refs.ts";
import type { ResourceKey } from "../../mirror/store/resource.ts";

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

export interface RefreshAsk extends ResourceKey {
  /** Ask only if the mirror knows the resource as an issue, not as a pull request. */
  ifPlainIssue?: boolean;
}

/** An issue in whose summary another one is counted, and the key of that summary. */
export interface Counting {
  fullName: string;
  number: number;
  key: "sub_issues_summary" | "issue_dependencies_summary";
}

export interface BornHead {
  sha: string;
  at: number;
}

/**
 * How an event is read: what it shows, and what upstream has to be asked for because no payload and no list of the next
 * catch-up shows it. `docs/quota.md` has a table of what each event leaves open, and who answers it.
 */
export interface FollowedEvent {
  /** The keys of its payload that not every event has, by GitHub's OpenAPI description of webhooks. */
  own: readonly string[];
  /** Its actions, where no key tells it from other events. Empty: it has no action. */
  actions?: readonly string[];
  observe: (payload: Payload, at: Sighting) => Observed[];
  ask?: (payload: Payload) => Omit<RefreshAsk, "repositoryId">[];
  /** The payload's repository is not observed: it has keys and values that no other representation has. */
  hasOtherRepository?: true;
  /** The branch that the event moved, such as `refs/heads/main`. */
  movedRef?: (payload: Payload) => string | null;
  /** The commit that a push has just brought; `at`: when, by upstream's clock, in ms. */
  bornHead?: (payload: Payload) => BornHead | null;
  /** The issues that count the subject of the event and are not in the payload. */
  counting?: (payload: Payload) => Counting[];
  /** What the event says about a branch or tag. */
  toldRef?: (payload: Payload) => ToldRef | null;
  /** The pull request that has the changed review thread. */
  threadsOf?: (payload: Payload) => number | null;
}
