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

/** How the payload of an event is told from those of all others. */
interface Shape {
  /** The keys of `TELLING` that the payload may have. */
  own: readonly string[];
  /** The event's actions, where no key tells it from other events. Empty: the event has no action. */
  actions?: readonly string[];
}

/** What is done to a repository. */
const REPOSITORY_ACTIONS = "created edited renamed transferred archived unarchived privatized publicized deleted".split(
  " ",
);

/** By GitHub's OpenAPI description of webhooks, for the events that the mirror follows. */
const SHAPES: Readonly<Record<string, Shape>> = {
  issues: { own: ["issue", "label", "milestone"] },
  sub_issues: { own: ["parent_issue", "sub_issue"] },
  issue_dependencies: { own: ["blocked_issue", "blocking_issue"] },
  pull_request: { own: ["number", "pull_request", "label", "milestone"] },
  issue_comment: { own: ["issue", "comment"] },
  pull_request_review: { own: ["pull_request", "review"] },
  pull_request_review_comment: { own: ["pull_request", "comment"] },
  label: { own: ["label"] },
  milestone: { own: ["milestone"] },
  repository: { own: [], actions: REPOSITORY_ACTIONS },
  public: { own: [], actions: [] },
  check_run: { own: ["check_run"] },
  check_suite: { own: ["check_suite"] },
  status: { own: ["sha", "commit", "name"] },
  workflow_job: { own: ["workflow_job", "deployment"] },
  push: { own: ["ref", "commits"] },
  release: { own: ["release"] },
  create: { own: ["ref"] },
  delete: { own: ["ref"] },
};

/**
 * Keys that only some events have. A key that is missing here decides nothing, since upstream adds keys. Overlooking
 * that a repository was made private would be worse than taking one event for another.
 */
const TELLING = `alert answer blocked_issue blocking_issue branch build check_run check_suite comment commit commits
  definition deployment deployment_status discussion forkee hook invitation issue key label location member membership
  merge_group milestone number package pages parent_issue project project_card project_column pull_request ref
  registry_package release repository_advisory repository_ruleset review rule scan security_advisory sha starred_at
  status sub_issue team thread workflow workflow_job workflow_run zen`.split(/\s+/);

/**
 * Why the payload cannot belong to the event; null: no reason found. The event's name stands in a header, which nobody
 * signs. So a stranger could send bytes that upstream signed under another event's name. Pure.
 */
export function mismatch(event: string, payload: Payload): string | null {
  const shape = SHAPES[event];
  if (!shape) return null;
  const { own, actions } = shape;
  const strange = TELLING.find((key) => key in payload && !own.includes(key));
  if (strange) return `no payload of ${event} has ${strange}: it was signed as another event`;
  const { action } = payload;
  const isKnown = !actions || (action === undefined ? actions.length === 0 : actions.includes(action));
  return isKnown
    ? null
    : `no payload of ${event} has ${action ? `the action ${action}` : "no action"}: it was signed as another event`;
}
