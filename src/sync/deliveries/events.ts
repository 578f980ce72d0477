import { isObject, type Json, objectOf } from "../../json.ts";
import { lacksMergeability } from "../../mirror/store/marks.ts";
import { type Observed, observe, type Sighting } from "../../mirror/store/observation.ts";
import { InvalidRepresentationError, keyIn } from "../../mirror/store/representation.ts";
import type { Kind, ResourceKey } from "../../mirror/store/resource.ts";
import type { Payload } from "./payload.ts";

/** A resource that changed in more than the payload shows. */
export interface Ask extends ResourceKey {
  /** The field known to have changed and not shown, and `updated_at` since, in ms; absent: the field is unknown. */
  of?: { field: "updated_at" | "closed_by" | "mergeable"; updatedAt: number };
}

/** How an event is read: what it shows, and what it does not show though it has changed. */
interface FollowedEvent {
  observe: (payload: Payload, at: Sighting) => Observed[];
  ask?: (payload: Payload) => Omit<Ask, "repositoryId">[];
}

/** The events that the mirror follows. Every payload shows its repository and its people beside that. */
export const FOLLOWED_EVENTS: Readonly<Record<string, FollowedEvent>> = {
  issues: {
    observe: (payload, at) => {
      // A transferred issue is gone here; its new repository hears of it as opened.
      const isGone = payload.action === "deleted" || payload.action === "transferred";
      return [
        ...one("issue", payload.issue, at, isGone),
        ...optional("label", payload.label, at),
        ...optional("milestone", payload.milestone, at),
      ];
    },
    // Payloads have no `closed_by`, and some leave the state out. An issue that was transferred here brings comments along,
    // and no event tells of those.
    ask: (payload) => {
      const key = keyIn("issue", payload.issue);
      const isPart =
        objectOf(payload.issue).state === undefined ||
        (isObject(payload.changes) && isObject(payload.changes.old_issue));
      if (isPart) return [{ kind: "issue", key }];
      return movesState(payload) ? [{ kind: "issue", key, of: fieldOf("closed_by", payload.issue) }] : [];
    },
  },
  pull_request: {
    observe: (payload, at) => [
      ...one("pull_request", payload.pull_request, at),
      ...optional("label", payload.label, at),
      ...optional("milestone", payload.milestone, at),
    ],
    ask: (payload) => {
      const key = keyIn("pull_request", payload.pull_request);
      // The event shows one side of the pull request.
      const side = fieldOf(movesState(payload) ? "closed_by" : "updated_at", payload.pull_request);
      // Upstream works out mergeability later. If the payload says so, all such pull requests of a repository are asked
      // about together. A new pull request is read nevertheless: the event shows less of its repositories than a read
      // does.
      const hasMoved = payload.action === "synchronize" || payload.action === "reopened";
      const isUnsettled =
        payload.action === "opened" || (hasMoved && !lacksMergeability(objectOf(payload.pull_request)));
      const pull = { kind: "pull_request" as const, key, of: fieldOf("mergeable", payload.pull_request) };
      return [{ kind: "issue" as const, key, of: side }, ...(isUnsettled ? [pull] : [])];
    },
  },
  issue_comment: {
    observe: (payload, at) => [
      ...one("issue", payload.issue, at),
      ...one("issue_comment", payload.comment, at, payload.action === "deleted"),
    ],
  },
  pull_request_review: {
    observe: (payload, at) => [...one("pull_request", payload.pull_request, at), ...one("review", payload.review, at)],
    // A dismissal moves `updated_at` on both sides of the pull request, and the event shows one side.
    ask: ({ action, pull_request: pull }) =>
      action === "dismissed"
        ? [{ kind: "issue", key: keyIn("pull_request", pull), of: fieldOf("updated_at", pull) }]
        : [],
  },
  pull_request_review_comment: {
    observe: (payload, at) => [
      ...one("pull_request", payload.pull_request, at),
      ...one("review_comment", payload.comment, at, payload.action === "deleted"),
    ],
  },
  label: { observe: (payload, at) => one("label", payload.label, at, payload.action === "deleted") },
  milestone: { observe: (payload, at) => one("milestone", payload.milestone, at, payload.action === "deleted") },
  repository: {
    observe: () => [],
    // Payloads leave out what a single repository shows, such as the organisation that it has left.
    ask: (payload) =>
      payload.action === "transferred" ? [{ kind: "repository", key: keyIn("repository", payload.repository) }] : [],
  },
  public: { observe: () => [] },
};

function movesState({ action }: Payload): boolean {
  return action === "closed" || action === "reopened";
}

function fieldOf(field: NonNullable<Ask["of"]>["field"], subject: Json | undefined): NonNullable<Ask["of"]> {
  return { field, updatedAt: isObject(subject) ? Date.parse(String(subject.updated_at)) : Number.NaN };
}

/** Without these nothing could ask for it again, and GraphQL could not show it. */
const IDENTITIES: Partial<Record<Kind, { key: string; type: "number" | "string" }>> = {
  issue: { key: "id", type: "number" },
  pull_request: { key: "id", type: "number" },
  label: { key: "node_id", type: "string" },
};

/** @throws InvalidRepresentationError when a key is missing that it is known by */
function requireIdentity(kind: Kind, value: Json | undefined): void {
  const identity = IDENTITIES[kind];
  if (!identity || !isObject(value)) return;
  // Old enterprise servers' labels have neither of the two: those are known by their names.
  if (kind === "label" && value.id === undefined && value.node_id === undefined) return;
  const { key, type } = identity;
  if (typeof value[key] !== type) throw new InvalidRepresentationError(`This ${kind} came without ${key}`);
}

function one(kind: Kind, value: Json | undefined, at: Sighting, deleted = false): Observed[] {
  requireIdentity(kind, value);
  return [observe(kind, value ?? null, deleted ? { ...at, deleted } : at)];
}

function optional(kind: Kind, value: Json | undefined, at: Sighting): Observed[] {
  return isObject(value) && typeof value.id === "number" ? one(kind, value, at) : [];
}
