import type { MirrorPart } from "../../config/parts.ts";
import type { Config } from "../../config.ts";
import type { Taken } from "../../inbox/inbox.ts";
import { isObject, type Json, objectOf, parseExactly, textOf, wholeOf } from "../../json.ts";
import { resourceOf, resources } from "../../kinds/registry.ts";
import { FRESH_MS } from "../../mirror/store/merge-rule.ts";
import {
  InvalidRepresentationError,
  keyIn,
  MOST_NUMBER,
  type Observed,
  observe,
  type Seen,
  type Sighting,
} from "../../mirror/store/observation.ts";
import type { ToldRef } from "../../mirror/store/refs.ts";
import type { ShapeIds } from "../../mirror/store/template.ts";
import type { IssuePlace } from "../../mirror/store/transfers.ts";
import { JsonBoundError, MOST_PAYLOAD_VALUES, parseSent } from "../../sent-json.ts";
import {
  type BornHead,
  type Counting,
  isOfInstallations,
  organizationOf,
  type Payload,
  type PayloadRepository,
  type RefreshAsk,
  type ToldPeople,
} from "./events.ts";
import { FOLLOWED_EVENTS, partsOfEvent } from "./followed.ts";
import { type Installed, installedBy } from "./installed.ts";

/** A delivery is signed by upstream and yet says something that cannot be. Trying again will not help. */
export class InvalidPayloadError extends Error {
  override name = "InvalidPayloadError";
}

/** A delivery's content: what it shows, and what it leaves open. */
export interface DeliveryContent {
  /** The repository that it is about; null: none. */
  repositoryId: number | null;
  observed: Observed[];
  asks: RefreshAsk[];
  /** Issues in whose summary something has changed. */
  counting: Counting[];
  /** The repository that the delivery calls deleted. */
  deletedRepositoryId: number | null;
  /** An issue that left for another repository. */
  transfer: { from: IssuePlace; to: IssuePlace } | null;
  /** An installation of the App that may have changed what is to be mirrored. */
  installed: Installed | null;
  /** The branch of its repository that was moved, such as `refs/heads/main`. */
  movedRef: string | null;
  /** The commit that a push has just brought. */
  bornHead: BornHead | null;
  /** The branch or tag that the delivery tells about. */
  toldRef: ToldRef | null;
  /** The pull request that has the changed review thread. */
  threadsOf: number | null;
  /** Whose lists of people may have changed. */
  toldPeople: ToldPeople | null;
}

/** What deliveries have shown, after the merge. */
export interface MergedDeliveries {
  seen: readonly Seen[];
  shown: readonly DeliveryContent[];
  parts: ReadonlyMap<number, readonly MirrorPart[]>;
  askedAt: Date;
}

/** A delivery with its payload read. */
export interface Parsed {
  taken: Taken;
  payload: Payload;
  /** Null when it concerns none. */
  repository: PayloadRepository | null;
}

/** @throws InvalidPayloadError when it is no JSON object, or names another repository than the receiver read in it */
export function parse(taken: Taken): Parsed {
  const payload = parsePayload(taken.payload ?? "");
  const repository = repositoryInPayload(payload);
  // The signature was checked for the repository that the receiver read.
  if (taken.repositoryId !== null && objectOf(payload.repository).id !== taken.repositoryId)
    throw new InvalidPayloadError("The payload names two repositories, and was received as of another one");
  return { taken, payload, repository };
}

/** @throws InvalidPayloadError when it is no JSON object */
function parsePayload(text: string): Payload {
  let payload: Json;
  try {
    // The receiver of an earlier version took what is beyond the bounds.
    payload = parseSent(text, MOST_PAYLOAD_VALUES, parseExactly);
  } catch (error) {
    const reason = error instanceof JsonBoundError ? `cannot be taken. ${error.message}` : "is not JSON";
    throw new InvalidPayloadError(`The payload ${reason}`, { cause: error });
  }
  if (!isObject(payload)) throw new InvalidPayloadError("The payload is not a JSON object");
  const { action, ...fields } = payload;
  return typeof action === "string" ? { ...fields, action } : fields;
}

/** Null for an event that concerns no repository, or names it by what is no id or no name. */
function repositoryInPayload({ repository }: Payload): PayloadRepository | null {
  const { id: shownId, full_name: fullName, html_url: htmlUrl } = objectOf(repository);
  const id = wholeOf(shownId);
  return id !== null && typeof fullName === "string" ? { id, fullName, htmlUrl: textOf(htmlUrl) } : null;
}

/** What deliveries that are read together share. */
interface ReadTogether {
  /** What is mirrored of repositories by their ids, among them the delivery's if it is mirrored. */
  mirrored: ReadonlyMap<number, readonly MirrorPart[]>;
  /** Those of the named organisations whose people are mirrored. */
  organizations: ReadonlySet<number>;
  shapeIds: ShapeIds;
}

/**
 * Reads a delivery. A text says why nothing is done with it. Pure, but that shapes become known.
 * @throws InvalidPayloadError when the payload cannot be what its event says
 */
export function readDelivery(config: Config, parsed: Parsed, together: ReadTogether): DeliveryContent | string {
  const { event } = parsed.taken;
  try {
    return isOfInstallations(event) ? readInstallation(config, parsed) : readFollowed(config, parsed, together);
  } catch (error) {
    if (!(error instanceof InvalidRepresentationError)) throw error;
    throw new InvalidPayloadError(`A ${event} event cannot be applied: ${error.message}`, { cause: error });
  }
}

const EMPTY_CONTENT: DeliveryContent = {
  repositoryId: null,
  observed: [],
  asks: [],
  counting: [],
  deletedRepositoryId: null,
  transfer: null,
  installed: null,
  movedRef: null,
  bornHead: null,
  toldRef: null,
  threadsOf: null,
  toldPeople: null,
};

function readInstallation({ appId }: Config, { taken: { event }, payload }: Parsed): DeliveryContent | string {
  if (appId === null) return `${event} is followed only by an App, and APP_ID is not set`;
  const installed = installedBy(payload.installation);
  return installed === null ? "it names no installation" : { ...EMPTY_CONTENT, installed };
}

function readFollowed(
  config: Config,
  parsed: Parsed,
  { mirrored, organizations, shapeIds }: ReadTogether,
): DeliveryContent | string {
  const { taken, payload, repository } = parsed;
  const followed = FOLLOWED_EVENTS.get(taken.event);
  if (!followed) return `the mirror does not follow ${taken.event} events`;
  if (!repository) {
    const organizationId = followed.isOfOrganization ? organizationOf(payload) : null;
    if (!isObject(payload.repository) && organizationId !== null) {
      if (!organizations.has(organizationId))
        return `${taken.event} events are followed only of organisations whose people are mirrored`;
      return mismatch(taken.event, payload) ?? { ...EMPTY_CONTENT, toldPeople: followed.toldPeople?.(payload) ?? null };
    }
    if (!isObject(payload.repository)) return "it concerns no repository";
    throw new InvalidPayloadError(
      `A ${taken.event} event cannot be applied: its repository came without a whole id, or without full_name`,
    );
  }
  const repositoryId = repository.id;
  const parts = mirrored.get(repositoryId);
  if (!parts) return "its repository is not mirrored";
  const needed = partsOfEvent(taken.event);
  if (needed.length > 0 && !needed.some((part) => parts.includes(part)))
    return `${taken.event} events are followed only where ${needed.join(" or ")} are mirrored`;
  const strange = mismatch(taken.event, payload);
  if (strange !== null) return strange;
  const at: Sighting = {
    api: config.upstreamUrl,
    repository,
    seenAt: taken.receivedAt,
    read: false,
    isLate: taken.receivedAt.getTime() - happenedAt(payload) > FRESH_MS,
    shapeIds,
  };
  const around = followed.hasOtherRepository ? [] : observeAround(payload, at);
  // Several parts may read one event.
  const isMirrored = ({ kind }: Seen) => {
    const { part } = resourceOf(kind);
    return part === null || parts.includes(part);
  };
  const own = followed.observe(payload, at).map((one) => ({ ...one, seen: one.seen.filter(isMirrored) }));
  const observed = [...around, ...own];
  for (const { seen } of observed) for (const one of seen) requireKeyInRange(one);
  const asks = (followed.ask?.(payload) ?? []).map((key) => ({
    ...key,
    // The key of a repository itself has 0 in place of a repository.
    repositoryId: key.kind === "repository" ? 0 : repositoryId,
  }));
  const threadsOf = followed.threadsOf?.(payload) ?? null;
  if (threadsOf !== null) requireKeyInRange({ kind: "pull_request", key: threadsOf });
  const gone = observed.flatMap(({ seen }) => seen.filter(({ deleted }) => deleted));
  return {
    ...EMPTY_CONTENT,
    repositoryId,
    observed,
    // A resource that a delivery calls deleted is hidden at once. It comes back if upstream still shows it.
    asks: [...asks, ...gone.map(({ kind, repositoryId, key }) => ({ kind, repositoryId, key }))],
    counting: followed.counting?.(payload) ?? [],
    deletedRepositoryId: taken.event === "repository" && payload.action === "deleted" ? repositoryId : null,
    transfer: taken.event === "issues" ? transferOf(payload, repositoryId) : null,
    movedRef: followed.movedRef?.(payload) ?? null,
    bornHead: followed.bornHead?.(payload) ?? null,
    toldRef: followed.toldRef?.(payload) ?? null,
    threadsOf,
    toldPeople: followed.toldPeople?.(payload) ?? null,
  };
}

/** One key beyond its column would fail all deliveries of its batch. @throws InvalidRepresentationError */
function requireKeyInRange({ kind, key }: Pick<Seen, "kind" | "key">): void {
  const isNumbered = kind === "issue" || kind === "pull_request";
  if (Number.isSafeInteger(key) && (!isNumbered || Math.abs(key) <= MOST_NUMBER)) return;
  const [name, most] = isNumbered ? ["number", MOST_NUMBER] : ["id", Number.MAX_SAFE_INTEGER];
  throw new InvalidRepresentationError(`The ${name} of its ${kind} is no whole number up to ${most}`);
}

/** From where to where the issue went; null: nowhere, or the payload does not say so. Both repositories are told. */
function transferOf({ action, issue, changes }: Payload, repositoryId: number): DeliveryContent["transfer"] {
  if (!isObject(changes)) return null;
  const { new_issue, new_repository, old_issue, old_repository } = changes;
  const to = action === "transferred" ? issuePlaceOf(new_issue, new_repository) : null;
  if (to) return { from: { repositoryId, number: keyIn("issue", issue) }, to };
  const from = action === "opened" ? issuePlaceOf(old_issue, old_repository) : null;
  return from && { from, to: { repositoryId, number: keyIn("issue", issue) } };
}

function issuePlaceOf(issue: Json | undefined, repository: Json | undefined): IssuePlace | null {
  const repositoryId = wholeOf(objectOf(repository).id);
  return isObject(issue) && repositoryId !== null ? { repositoryId, number: keyIn("issue", issue) } : null;
}

const SUBJECTS: ReadonlySet<string> = new Set(
  resources.flatMap(({ events }) => (events ? [events.in, ...Object.keys(events.beside)] : [])),
);
const MOMENTS: readonly string[] = ["created_at", "submitted_at", "updated_at", "pushed_at", "closed_at"];

/**
 * The newest moment in the payload, in ms. Most events happened then. Some events, such as a deleted comment, move no
 * time and seem older than they are.
 */
function happenedAt(payload: Payload): number {
  const moments = [...SUBJECTS].flatMap((subject) => {
    const value = payload[subject];
    return isObject(value) ? MOMENTS.map((moment) => Date.parse(String(value[moment]))) : [];
  });
  return Math.max(0, ...moments.filter((moment) => !Number.isNaN(moment)));
}

/** Observes what every payload carries beside its subject. An account that cannot be read says nothing of the subject. */
function observeAround(payload: Payload, at: Sighting): Observed[] {
  const named = [payload.sender, payload.assignee, payload.requested_reviewer].filter(
    (user) => isObject(user) && typeof user.type === "string",
  );
  const users = named.map((user) => readable(() => observe("user", user ?? null, at)));
  return [observe("repository", payload.repository ?? null, at), ...users.filter((user) => user !== null)];
}

function readable(observeOne: () => Observed): Observed | null {
  try {
    return observeOne();
  } catch (error) {
    if (error instanceof InvalidRepresentationError) return null;
    throw error;
  }
}

/**
 * Keys that only some events have. A key that is missing here decides nothing, since upstream adds keys. Overlooking
 * that a repository was made private would be worse than taking one event for another.
 */
const EVENT_KEYS = `alert answer blocked_issue blocking_issue branch build check_run check_suite comment commit commits
  definition deployment deployment_status discussion forkee hook invitation issue key label location member membership
  merge_group milestone number package pages parent_issue project project_card project_column pull_request ref
  registry_package release repository_advisory repository_ruleset review rule scan security_advisory sha starred_at
  status sub_issue team thread workflow workflow_job workflow_run zen`.split(/\s+/);

/**
 * Why the payload cannot belong to the event; null: no reason found. The event's name stands in a header, which nobody
 * signs. So a stranger could send bytes that upstream signed under another event's name. Pure.
 */
export function mismatch(event: string, payload: Payload): string | null {
  const followed = FOLLOWED_EVENTS.get(event);
  if (!followed) return null;
  const { own, actions } = followed;
  const strange = EVENT_KEYS.find((key) => key in payload && !own.includes(key));
  if (strange) return `no payload of ${event} has ${strange}: it was signed as another event`;
  const { action } = payload;
  const isKnown = !actions || (action === undefined ? actions.length === 0 : actions.includes(action));
  return isKnown
    ? null
    : `no payload of ${event} has ${action ? `the action ${action}` : "no action"}: it was signed as another event`;
}
