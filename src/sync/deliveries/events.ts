import { isObject, type Json, objectOf, textOf } from "../../json.ts";
import { type Observed, observe, type Sighting } from "../../mirror/store/observation.ts";
import { InvalidRepresentationError, keyIn } from "../../mirror/store/representation.ts";
import type { Kind } from "../../mirror/store/resource.ts";
import { strip } from "../../mirror/store/template.ts";
import type { FollowedEvent } from "./followed-event.ts";
import { askBlocking, askLinked, countingParent, observeLinked } from "./linked-issues.ts";
import { PART_EVENTS } from "./part-events.ts";
import type { Payload } from "./payload.ts";

/** The events that the mirror follows. Every payload also shows its repository and its people. */
export const FOLLOWED_EVENTS: Readonly<Record<string, FollowedEvent>> = {
  issues: {
    observe: (payload, at) => {
      // A transferred issue is gone here; its new repository hears of it as opened.
      const isGone = payload.action === "deleted" || payload.action === "transferred";
      return [
        ...withCloser(one("issue", payload.issue, at, isGone), payload, at),
        ...optional("label", payload.label, at),
        ...optional("milestone", payload.milestone, at),
      ];
    },
    // Some payloads leave the state out. An issue that was transferred here brings comments along, and no event tells of those.
    ask: (payload) => {
      const isPart =
        objectOf(payload.issue).state === undefined ||
        (isObject(payload.changes) && isObject(payload.changes.old_issue));
      const { id: milestone } = objectOf(objectOf(payload.issue).milestone);
      // The milestone no longer counts an issue that is gone, but the payload still shows the milestone with the old
      // count.
      const isCounted =
        (payload.action === "deleted" || payload.action === "transferred") && typeof milestone === "number";
      return [
        ...(isPart ? [{ kind: "issue" as const, key: keyIn("issue", payload.issue) }] : askBlocking(payload)),
        ...(isCounted ? [{ kind: "milestone" as const, key: milestone }] : []),
      ];
    },
    counting: countingParent,
  },
  sub_issues: {
    observe: (payload, at) => observeLinked(payload, at, ["parent_issue", "sub_issue"]),
    ask: askLinked,
  },
  issue_dependencies: {
    observe: (payload, at) => observeLinked(payload, at, ["blocking_issue", "blocked_issue"]),
  },
  pull_request: {
    observe: (payload, at) => [
      ...withCloser(one("pull_request", payload.pull_request, at), payload, at),
      ...optional("label", payload.label, at),
      ...optional("milestone", payload.milestone, at),
    ],
    bornHead: ({ action, pull_request: pull }) => {
      const { head, updated_at: at } = objectOf(pull);
      const sha = textOf(objectOf(head).sha);
      return action === "synchronize" && sha !== null ? { sha, at: Date.parse(textOf(at) ?? "") } : null;
    },
    // An issue that was made a pull request loses keys that the event does not name.
    ask: ({ action, pull_request: pull }) =>
      action === "opened" ? [{ kind: "issue", key: keyIn("pull_request", pull), ifPlainIssue: true }] : [],
  },
  issue_comment: {
    observe: (payload, at) => [
      ...one("issue", payload.issue, at),
      ...one("issue_comment", payload.comment, at, payload.action === "deleted"),
    ],
  },
  pull_request_review: {
    observe: (payload, at) => [...one("pull_request", payload.pull_request, at), ...one("review", payload.review, at)],
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
  ...PART_EVENTS,
};

/** The account that upstream shows in the place of one that is gone. */
const NOBODY = "ghost";

/**
 * Payloads leave out who closed an issue or pull request, and are sent because that person did it: the sender. No payload
 * says who reopened it, so `closed_by` is left to the next catch-up. The same holds where the sender stands for nobody: another
 * Tain makes events of changes without knowing who made them.
 */
function withCloser(observed: Observed[], { action, sender }: Payload, { api }: Sighting): Observed[] {
  if (action !== "closed" || !isObject(sender) || sender.login === NOBODY) return observed;
  const { fields, shapes } = strip({ closed_by: sender }, { api });
  return observed.map((each) => ({
    seen: each.seen.map((one) =>
      one.kind === "issue" && one.fields.state === "closed" ? { ...one, fields: { ...one.fields, ...fields } } : one,
    ),
    shapes: new Map([...each.shapes, ...shapes]),
  }));
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
