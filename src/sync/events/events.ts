import type { MirrorPart } from "../../config/parts.ts";
import type { Told } from "../../events/log.ts";
import { type Fields, isObject, type Json, numberOf, objectOf, textOf, wholeOf } from "../../json.ts";
import type { Kind, ResourceKey } from "../../kinds/contract/kind.ts";
import { resourceOf, subjectOf } from "../../kinds/registry.ts";
import {
  InvalidRepresentationError,
  keyIn,
  type Observed,
  observe,
  type Sighting,
} from "../../mirror/store/observation.ts";
import type { ToldRef } from "../../mirror/store/refs.ts";
import { strip } from "../../mirror/store/template.ts";

export type Payload = Fields & { action?: string };

/** The repository that a payload is about. */
export type PayloadRepository = NonNullable<Sighting["repository"]>;

export interface RefreshAsk extends ResourceKey {
  /** The keys that are asked for. Without them it is all of the resource. */
  keys?: readonly string[];
  /** Ask only if the mirror knows the resource as an issue, not as a pull request. */
  ifPlainIssue?: boolean;
}

/** An issue in whose summary another one is counted, and the key of that summary. */
export interface Counting {
  fullName: string;
  number: number;
  key: "sub_issues_summary" | "issue_dependencies_summary";
}

/** What an event says about people: which of their lists may have changed. */
export interface ToldPeople {
  /** Null: the event names a repository. */
  organizationId: number | null;
  /** The team that changed, or that somebody joined or left. Null: the event is about no team. */
  teamId: number | null;
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
  /** It is read only where one of these parts is mirrored; none: it is read of every repository. */
  parts: readonly MirrorPart[];
  /** Older servers, without sub-issues, do not know it. They refuse a hook that names it. */
  isLate?: true;
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
  /** Whose lists of people may have changed. */
  toldPeople?: (payload: Payload) => ToldPeople | null;
  /** Upstream sends it to the hooks of organisations and to Apps alone, and it may name no repository. */
  isOfOrganization?: true;
}

/** What an event shows and asks for beside what its kind says of it. Its parts and keys are added to those of the kind. */
export interface FurtherReading extends Omit<Partial<FollowedEvent>, "observe"> {
  /** Replaces what the kind says. @param ofKind what that is */
  observe?: (payload: Payload, at: Sighting, ofKind: () => Observed[]) => Observed[];
}

/** What a milestone says of its issues. */
export const MILESTONE_COUNTS: readonly string[] = ["open_issues", "closed_issues"];

/** How an event is read of which nothing is known but what its kind says. */
export function readingOf(event: string): FollowedEvent {
  const subject = subjectOf(event);
  if (!subject) return { parts: [], own: [], observe: () => [] };
  const { in: key, beside, ownKeys, actions, lists, extra } = subject.events;
  const { kind, part } = resourceOf(subject.kind);
  // People are read in every payload.
  const named = [
    ...Object.values(lists).map(({ member, kind }) => [member, kind] as const),
    ...Object.values(actions).flatMap((one) => ("beside" in one ? [[one.field, one.beside] as const] : [])),
  ].filter(([, kind]) => kind !== "user");
  // Payloads name their actions as they like.
  const reported = (action = "") => (Object.hasOwn(actions, action) ? actions[action] : undefined);
  return {
    parts: part === null ? [] : [part],
    own: [key, ...Object.keys(beside), ...named.map(([name]) => name), ...Object.keys(extra?.(0) ?? {}), ...ownKeys],
    observe: (payload, at) => {
      const report = reported(payload.action);
      const isGone = report !== undefined && "exists" in report && !report.exists;
      return [
        ...Object.entries(beside).flatMap(([name, other]) => observeRequired(other, payload[name], at)),
        ...observeRequired(kind, payload[key], at, isGone),
        ...named.flatMap(([name, other]) => observeOptional(other, payload[name], at)),
      ];
    },
  };
}

/** What is done to a repository. Two of its actions report nothing that the mirror compares. */
const REPOSITORY_ACTIONS: readonly string[] = [
  ...Object.keys(subjectOf("repository")?.events.actions ?? {}),
  "transferred",
  "deleted",
];

/** The events of every repository that show more than the documents of their kind, or belong to no kind. */
export const FOLLOWED_ALWAYS: Readonly<Record<string, FurtherReading>> = {
  issues: {
    observe: (payload, at, ofKind) => withCloser(ofKind(), payload, at),
    // Some payloads leave the state out. An issue that was transferred here brings comments along, and no event tells of
    // those, nor of who closed it before.
    ask: (payload) => {
      const { state, comments } = objectOf(payload.issue);
      const isMovedHere = isObject(objectOf(payload.changes).old_issue);
      const brought = [
        ...(isMovedHere && comments !== 0 ? ["comments"] : []),
        ...(isMovedHere && wasClosed(payload.issue) ? ["closed_by"] : []),
      ];
      const issue = { kind: "issue" as const, key: keyIn("issue", payload.issue) };
      const milestone = wholeOf(objectOf(objectOf(payload.issue).milestone).id);
      // The milestone no longer counts an issue that is gone, but the payload still shows the milestone with the old
      // count.
      const isCounted = (payload.action === "deleted" || payload.action === "transferred") && milestone !== null;
      return [
        ...(state === undefined ? [issue] : brought.length > 0 ? [{ ...issue, keys: brought }] : askBlocking(payload)),
        ...(isCounted ? [{ kind: "milestone" as const, key: milestone, keys: MILESTONE_COUNTS }] : []),
      ];
    },
    counting: countingParent,
  },
  public: { actions: [] },
  sub_issues: {
    isLate: true,
    own: ["parent_issue", "sub_issue"],
    observe: (payload, at) => observeLinked(payload, at, ["parent_issue", "sub_issue"]),
    ask: askLinked,
  },
  issue_dependencies: {
    isLate: true,
    own: ["blocked_issue", "blocking_issue"],
    observe: (payload, at) => observeLinked(payload, at, ["blocking_issue", "blocked_issue"]),
  },
  pull_request: {
    observe: (payload, at, ofKind) => withCloser(ofKind(), payload, at),
    bornHead: ({ action, pull_request: pull }) => {
      const { head, updated_at: at } = objectOf(pull);
      const sha = textOf(objectOf(head).sha);
      return action === "synchronize" && sha !== null ? { sha, at: Date.parse(textOf(at) ?? "") } : null;
    },
    // An issue that was made a pull request loses keys that the event does not name.
    ask: ({ action, pull_request: pull }) =>
      action === "opened" ? [{ kind: "issue", key: keyIn("pull_request", pull), ifPlainIssue: true }] : [],
  },
  label: {
    observe: (payload, at) =>
      observeRequired("label", payload.label, { ...at, before: valuesBefore(payload) }, payload.action === "deleted"),
  },
  repository: {
    actions: REPOSITORY_ACTIONS,
    observe: () => [],
    // A push does not change a name or an owner. Payloads also leave out what a single repository shows, such as the
    // organisation that it has left.
    ask: (payload) =>
      payload.action === "renamed" || payload.action === "transferred"
        ? [{ kind: "repository", key: keyIn("repository", payload.repository) }]
        : [],
  },
};

/** The account that upstream shows in the place of one that is gone. */
const NOBODY = "ghost";

/**
 * Payloads leave out who closed an issue or pull request, and are sent because that person did it: the sender. Another
 * Tain makes events of changes without knowing who made them, so there the sender stands for nobody. Nobody has closed
 * what was just opened, unless it was transferred here. What is reopened still shows who closed it.
 */
function withCloser(observed: Observed[], payload: Payload, { api, shapeIds }: Sighting): Observed[] {
  const closer = closerIn(payload);
  if (closer === undefined) return observed;
  const { fields, shapes } = strip({ closed_by: closer.by }, { api }, shapeIds);
  return observed.map((each) => ({
    seen: each.seen.map((one) =>
      one.kind === "issue" && one.fields.state === closer.state
        ? { ...one, fields: { ...one.fields, ...fields } }
        : one,
    ),
    shapes: new Map([...each.shapes, ...shapes]),
  }));
}

/** Undefined: the payload does not say. */
function closerIn({
  action,
  sender,
  changes,
  issue,
}: Payload): { by: Fields | null; state: "open" | "closed" } | undefined {
  if (action === "closed")
    return isObject(sender) && sender.login !== NOBODY ? { by: sender, state: "closed" } : undefined;
  const isMovedHere = isObject(objectOf(changes).old_issue);
  return action === "opened" && !(isMovedHere && wasClosed(issue)) ? { by: null, state: "open" } : undefined;
}

/** Whether somebody has ever closed the issue. */
function wasClosed(issue: Json | undefined): boolean {
  const { state, state_reason } = objectOf(issue);
  return state !== "open" || state_reason === "reopened";
}

/** @throws InvalidRepresentationError when a key is missing that it is known by */
function requireIdentity(kind: Kind, value: Json | undefined): void {
  const lacked = isObject(value) ? resourceOf(kind).lackedIdentity(value) : null;
  if (lacked !== null) throw new InvalidRepresentationError(`This ${kind} came without ${lacked}`);
}

function observeRequired(kind: Kind, value: Json | undefined, at: Sighting, deleted = false): Observed[] {
  requireIdentity(kind, value);
  return [observe(kind, value ?? null, deleted ? { ...at, deleted } : at)];
}

/** `changes: {name: {from: "bug"}}` as `{name: "bug"}`. */
function valuesBefore({ changes }: Payload): Fields {
  return Object.fromEntries(
    Object.entries(objectOf(changes)).flatMap(([key, change]): [string, Json][] => {
      const { from } = objectOf(change);
      return from === undefined ? [] : [[key, from]];
    }),
  );
}

function observeOptional(kind: Kind, value: Json | undefined, at: Sighting): Observed[] {
  return isObject(value) && typeof value.id === "number" ? observeRequired(kind, value, at) : [];
}

/**
 * Events of links show two issues, perhaps of two repositories. Each repository is told, so the other's issue is left out.
 * @param names the keys of the two in the payload
 */
function observeLinked(payload: Payload, at: Sighting, names: readonly string[]): Observed[] {
  return names
    .filter((name) => isOwn(payload, name))
    .map((name) => {
      const issue = payload[name] ?? null;
      return observe(
        "issue",
        isOrphan(payload, name) && isObject(issue) ? { ...issue, parent_issue_url: null } : issue,
        at,
      );
    });
}

/** An issue without a parent lacks a key, and only a read shows that. */
function askLinked(payload: Payload): Omit<RefreshAsk, "repositoryId">[] {
  return isOwn(payload, "sub_issue") && isOrphan(payload, "sub_issue")
    ? [{ kind: "issue", key: keyIn("issue", payload.sub_issue) }]
    : [];
}

/** A sub-issue that was taken from its parent. */
function isOrphan({ action, ...payload }: Payload, name: string): boolean {
  return (
    name === "sub_issue" && action?.endsWith("_removed") === true && !("parent_issue_url" in objectOf(payload[name]))
  );
}

/**
 * Whether the issue belongs to the payload's own repository. A payload may name the repository of the other issue; some
 * leave it out.
 */
function isOwn({ repository, ...payload }: Payload, name: string): boolean {
  if (!isObject(payload[name])) return false;
  const { id, url } = objectOf(repository);
  const given = objectOf(payload[`${name}_repo`]).id;
  return given === undefined ? objectOf(payload[name]).repository_url === url : given === id;
}

const COUNTED_ACTIONS: ReadonlySet<string> = new Set(["closed", "reopened", "deleted", "transferred"]);

/** The parent of an issue that was closed, opened again or deleted: no event tells of its summary. */
function countingParent({ action = "", issue }: Payload): Counting[] {
  const parent = COUNTED_ACTIONS.has(action) ? issueAt(objectOf(issue).parent_issue_url) : null;
  return parent ? [{ ...parent, key: "sub_issues_summary" }] : [];
}

/** Whether other issues wait for this one. Only a list at upstream says which. */
export function isBlocking(issue: Json | undefined): boolean {
  return (numberOf(objectOf(objectOf(issue).issue_dependencies_summary).total_blocking) ?? 0) > 0;
}

/**
 * Asks for an issue that was closed or reopened while others wait for it. Its read also reads the waiting issues
 * (`blocked-issues.ts`).
 */
function askBlocking({ action = "", issue }: Payload): Omit<RefreshAsk, "repositoryId">[] {
  const isMoved = action === "closed" || action === "reopened";
  return isMoved && isBlocking(issue) ? [{ kind: "issue", key: keyIn("issue", issue) }] : [];
}

/** The issue at an address of upstream's API; null: it is no such address. */
export function issueAt(address: Json | undefined): { fullName: string; number: number } | null {
  const [, fullName, number] = /\/repos\/([^/]+\/[^/]+)\/issues\/(\d{1,9})$/.exec(textOf(address) ?? "") ?? [];
  return fullName === undefined ? null : { fullName, number: Number(number) };
}

/** What an App is installed on is read from upstream, whatever the delivery says of it. */
export function isOfInstallations(event: string): boolean {
  return event === "installation" || event === "installation_repositories";
}

/** Upstream's id of the account that an event belongs to: its repository's owner, or its organization. Null: it names none. */
export function ownerOf(payload: Payload): number | null {
  return wholeOf(objectOf(objectOf(payload.repository).owner).id) ?? organizationOf(payload);
}

/** Upstream's id of the organisation that a payload names. Null: it names none. */
export function organizationOf({ organization }: Payload): number | null {
  return wholeOf(objectOf(organization).id);
}

/** Whether a payload says that its repository is private. */
export function saysPrivate({ repository }: Payload): boolean {
  const { private: isPrivate, visibility } = objectOf(repository);
  return isPrivate === true || (visibility !== undefined && visibility !== null && visibility !== "public");
}

/** The issue or pull request that a payload is about; null: none. */
export function aboutOf({ issue, pull_request: pull }: Payload): Told["about"] {
  const number = wholeOf(objectOf(pull).number);
  if (number !== null) return { number, isPullRequest: true };
  const { number: shownOwn, pull_request: asPull } = objectOf(issue);
  const own = wholeOf(shownOwn);
  return own !== null ? { number: own, isPullRequest: isObject(asPull) } : null;
}
