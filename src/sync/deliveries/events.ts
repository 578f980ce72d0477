import { isObject, type Json, numberOf, objectOf, textOf, wholeOf } from "../../json.ts";
import {
  InvalidRepresentationError,
  keyIn,
  type Observed,
  observe,
  requireObject,
  requireString,
  type Sighting,
} from "../../mirror/store/observation.ts";
import { refNameOf, type ToldRef } from "../../mirror/store/refs.ts";
import type { Kind } from "../../mirror/store/resource.ts";
import { strip } from "../../mirror/store/resource.ts";
import type { HookEvent, PartEvent } from "../following/hook-subscriptions.ts";
import { askBlocking, askLinked, countingParent, observeLinked } from "./counts.ts";
import type { BornHead, FollowedEvent, Payload } from "./payload.ts";

/** What is done to a repository. */
const REPOSITORY_ACTIONS = "created edited renamed transferred archived unarchived privatized publicized deleted".split(
  " ",
);

/** The events that are followed only where a part is mirrored. */
const FOLLOWED_FOR_PARTS = {
  check_run: {
    own: ["check_run"],
    observe: ({ check_run: run }, at) => {
      const { check_suite: suite } = objectOf(run);
      return [
        observe("check_run", run ?? null, at),
        ...(isObject(suite) && suite.head_sha !== undefined ? [observePartial("check_suite", suite, at)] : []),
      ];
    },
  },
  check_suite: {
    own: ["check_suite"],
    observe: ({ check_suite: suite }, at) => [observePartial("check_suite", suite, at)],
  },
  status: { own: ["sha", "commit", "name"], observe: (payload, at) => [observeStatus(payload, at)] },
  // No event of a check run says that it has begun; of a job of Actions this one does.
  workflow_job: {
    own: ["workflow_job", "deployment"],
    observe: ({ workflow_job: job }, at) => observeJob(job, at),
  },
  release: {
    own: ["release"],
    observe: ({ release, action }, at) => [
      observe("release", release ?? null, action === "deleted" ? { ...at, deleted: true } : at),
    ],
  },
  push: {
    own: ["ref", "commits"],
    hasOtherRepository: true,
    observe: () => [],
    movedRef: ({ ref }) => textOf(ref),
    bornHead,
    toldRef: ({ ref, before, after }) => {
      const named = refNameOf(textOf(ref) ?? "");
      return named && { ...named, before: pointedAt(before), after: pointedAt(after) };
    },
  },
  create: {
    own: ["ref"],
    observe: () => [],
    toldRef: (payload) => madeRef(payload, { before: null, after: undefined }),
  },
  delete: {
    own: ["ref"],
    observe: () => [],
    toldRef: (payload) => madeRef(payload, { before: undefined, after: null }),
  },
  // The event does not move the pull request's time, and says nothing about its other threads.
  pull_request_review_thread: {
    own: ["pull_request", "thread"],
    observe: () => [],
    threadsOf: ({ pull_request: pull }) => wholeOf(objectOf(pull).number),
  },
} satisfies Record<PartEvent, FollowedEvent>;

/** A push says where a ref pointed and points to; forty zeros are nowhere. */
function pointedAt(sha: Payload[string] | undefined): string | null {
  if (typeof sha !== "string" || !/^[0-9a-f]{40,64}$/.test(sha))
    throw new InvalidRepresentationError("This push came without before or after");
  return /^0+$/.test(sha) ? null : sha;
}

/** Commits that upstream does not call distinct were there before. */
function bornHead({ after, commits, repository }: Payload): BornHead | null {
  const isNew =
    Array.isArray(commits) && commits.some((one) => objectOf(one).id === after && objectOf(one).distinct === true);
  const sha = isNew ? textOf(after) : null;
  // Other events say it as text, a push in seconds.
  const pushedAt = numberOf(objectOf(repository).pushed_at);
  return sha !== null && pushedAt !== null ? { sha, at: pushedAt * 1_000 } : null;
}

/** The ref of a `create` or `delete` event, whose payload tells only the name. */
function madeRef({ ref, ref_type: type }: Payload, told: Pick<ToldRef, "before" | "after">): ToldRef | null {
  const name = textOf(ref);
  if (name === null || (type !== "branch" && type !== "tag")) return null;
  return { kind: type === "branch" ? "heads" : "tags", name, ...told };
}

/** A partial observation, since webhooks leave out keys that every read has. */
function observePartial(kind: "check_run" | "check_suite", value: Payload[string] | undefined, at: Sighting): Observed {
  const observed = observe(kind, value ?? null, at);
  const seen = observed.seen.map((one) => (one.kind === kind ? { ...one, extent: "partial" as const } : one));
  return { ...observed, seen };
}

/**
 * The payload has the status without its address, its creator and its global id. The first two are told by what stands beside it;
 * a read has to show the third.
 */
function observeStatus(payload: Payload, at: Sighting): Observed {
  const { id, sha, state, description, target_url, context, avatar_url, sender } = payload;
  if (typeof sha !== "string" || !at.repository) throw new InvalidRepresentationError("This status came without sha");
  const url = `${at.api}/repos/${at.repository.fullName}/statuses/${sha}`;
  return observe(
    "status",
    {
      url,
      avatar_url: avatar_url ?? objectOf(sender).avatar_url ?? null,
      id: id ?? null,
      state: state ?? null,
      description: description ?? null,
      target_url: target_url ?? null,
      context: context ?? null,
      created_at: inSeconds(requireString("status", payload, "created_at")),
      updated_at: inSeconds(requireString("status", payload, "updated_at")),
      ...(isObject(sender) && { creator: sender }),
    },
    at,
  );
}

/** `2019-05-15T15:20:41+00:00` → `2019-05-15T15:20:41Z`, as REST has it. */
function inSeconds(moment: string): string {
  const at = new Date(moment);
  return Number.isNaN(at.getTime()) ? moment : at.toISOString().replace(/\.\d+Z$/, "Z");
}

/**
 * A job of Actions, observed as its check run: the job's address has the run's id. A run that the mirror does not know
 * yet is not learnt from a job.
 */
function observeJob(value: Payload[string] | undefined, at: Sighting): Observed[] {
  const { check_run_url, status, started_at, head_sha, name } = objectOf(value);
  const id = numberOf(Number(/\/check-runs\/(\d+)$/.exec(textOf(check_run_url) ?? "")?.[1]));
  if (status !== "in_progress" || !Number.isSafeInteger(id)) return [];
  const run = { id, head_sha: head_sha ?? null, name: name ?? null, status, started_at: started_at ?? null };
  return [observePartial("check_run", requireObject("check_run", run), at)];
}

/** The events that the mirror follows. Every payload also shows its repository and its people. */
export const FOLLOWED_EVENTS: Readonly<Record<string, FollowedEvent>> = {
  issues: {
    own: ["issue", "label", "milestone"],
    observe: (payload, at) => {
      // A transferred issue is gone here; its new repository hears of it as opened.
      const isGone = payload.action === "deleted" || payload.action === "transferred";
      return [
        ...withCloser(observeRequired("issue", payload.issue, at, isGone), payload, at),
        ...observeOptional("label", payload.label, at),
        ...observeOptional("milestone", payload.milestone, at),
      ];
    },
    // Some payloads leave the state out. An issue that was transferred here brings comments along, and no event tells of those.
    ask: (payload) => {
      const isPart =
        objectOf(payload.issue).state === undefined ||
        (isObject(payload.changes) && isObject(payload.changes.old_issue));
      const milestone = wholeOf(objectOf(objectOf(payload.issue).milestone).id);
      // The milestone no longer counts an issue that is gone, but the payload still shows the milestone with the old
      // count.
      const isCounted = (payload.action === "deleted" || payload.action === "transferred") && milestone !== null;
      return [
        ...(isPart ? [{ kind: "issue" as const, key: keyIn("issue", payload.issue) }] : askBlocking(payload)),
        ...(isCounted ? [{ kind: "milestone" as const, key: milestone }] : []),
      ];
    },
    counting: countingParent,
  },
  sub_issues: {
    own: ["parent_issue", "sub_issue"],
    observe: (payload, at) => observeLinked(payload, at, ["parent_issue", "sub_issue"]),
    ask: askLinked,
  },
  issue_dependencies: {
    own: ["blocked_issue", "blocking_issue"],
    observe: (payload, at) => observeLinked(payload, at, ["blocking_issue", "blocked_issue"]),
  },
  pull_request: {
    own: ["number", "pull_request", "label", "milestone"],
    observe: (payload, at) => [
      ...withCloser(observeRequired("pull_request", payload.pull_request, at), payload, at),
      ...observeOptional("label", payload.label, at),
      ...observeOptional("milestone", payload.milestone, at),
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
    own: ["issue", "comment"],
    observe: (payload, at) => [
      ...observeRequired("issue", payload.issue, at),
      ...observeRequired("issue_comment", payload.comment, at, payload.action === "deleted"),
    ],
  },
  pull_request_review: {
    own: ["pull_request", "review"],
    observe: (payload, at) => [
      ...observeRequired("pull_request", payload.pull_request, at),
      ...observeRequired("review", payload.review, at),
    ],
  },
  pull_request_review_comment: {
    own: ["pull_request", "comment"],
    observe: (payload, at) => [
      ...observeRequired("pull_request", payload.pull_request, at),
      ...observeRequired("review_comment", payload.comment, at, payload.action === "deleted"),
    ],
  },
  label: {
    own: ["label"],
    observe: (payload, at) => observeRequired("label", payload.label, at, payload.action === "deleted"),
  },
  milestone: {
    own: ["milestone"],
    observe: (payload, at) => observeRequired("milestone", payload.milestone, at, payload.action === "deleted"),
  },
  repository: {
    own: [],
    actions: REPOSITORY_ACTIONS,
    observe: () => [],
    // Payloads leave out what a single repository shows, such as the organisation that it has left.
    ask: (payload) =>
      payload.action === "transferred" ? [{ kind: "repository", key: keyIn("repository", payload.repository) }] : [],
  },
  public: { own: [], actions: [], observe: () => [] },
  ...FOLLOWED_FOR_PARTS,
} satisfies Record<HookEvent | PartEvent, FollowedEvent>;

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
  const followed = FOLLOWED_EVENTS[event];
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

/** The account that upstream shows in the place of one that is gone. */
const NOBODY = "ghost";

/**
 * Payloads leave out who closed an issue or pull request, and are sent because that person did it: the sender. No payload
 * says who reopened it, so `closed_by` is left to the next catch-up. The same holds where the sender stands for nobody: another
 * Tain makes events of changes without knowing who made them.
 */
function withCloser(observed: Observed[], { action, sender }: Payload, { api, shapeIds }: Sighting): Observed[] {
  if (action !== "closed" || !isObject(sender) || sender.login === NOBODY) return observed;
  const { fields, shapes } = strip({ closed_by: sender }, { api }, shapeIds);
  return observed.map((each) => ({
    seen: each.seen.map((one) =>
      one.kind === "issue" && one.fields.state === "closed" ? { ...one, fields: { ...one.fields, ...fields } } : one,
    ),
    shapes: new Map([...each.shapes, ...shapes]),
  }));
}

/** Without these nothing could ask for it again, and GraphQL could not show it. */
const IDENTITIES: Readonly<Partial<Record<Kind, { key: string; type: "number" | "string" }>>> = {
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

function observeRequired(kind: Kind, value: Json | undefined, at: Sighting, deleted = false): Observed[] {
  requireIdentity(kind, value);
  return [observe(kind, value ?? null, deleted ? { ...at, deleted } : at)];
}

function observeOptional(kind: Kind, value: Json | undefined, at: Sighting): Observed[] {
  return isObject(value) && typeof value.id === "number" ? observeRequired(kind, value, at) : [];
}
