import { type Fields, type Json, parseStored } from "../../json.ts";
import type { Kind, ResourceKey } from "../../mirror/store/resource.ts";

/** An aspect that was found changed: the value that targets know, and the value now. */
export interface Changed {
  aspect: string;
  was: Json;
  now: Json;
}

/** An event to be made: its action, and the aspects that it reports. */
export interface Making {
  action: string;
  /** The aspects that the event reports, with their values. */
  tells: readonly { aspect: string; value: Json }[];
  /** The label, milestone or account that its payload shows beside its subject. */
  beside?: Pick<ResourceKey, "kind" | "key"> & { as: string };
  /** Further keys of its payload. */
  more?: Fields;
}

/** Keys whose change upstream reports as `edited`, with their former values. */
const EDITED: ReadonlySet<string> = new Set([
  "title",
  "body",
  "name",
  "color",
  "description",
  "due_on",
  "base",
  "homepage",
  "default_branch",
  "topics",
]);

const BESIDE: Readonly<Record<string, { kind: Kind; as: string; come: string; gone: string }>> = {
  label: { kind: "label", as: "label", come: "labeled", gone: "unlabeled" },
  assignee: { kind: "user", as: "assignee", come: "assigned", gone: "unassigned" },
  requested_reviewer: {
    kind: "user",
    as: "requested_reviewer",
    come: "review_requested",
    gone: "review_request_removed",
  },
};

/** The events for the changes of one resource, in order. Upstream has no event for some changes. Pure. */
export function makingsOf(kind: Kind, changed: readonly Changed[]): Making[] {
  const exists = changed.find(({ aspect }) => aspect === "exists");
  if (exists) {
    const isClosed = exists.now === true && kind !== "milestone" && changed.some(isClosing);
    const since = exists.now === true && AT_BIRTH.has(kind) ? changed.flatMap((one) => otherwise(kind, one)) : [];
    // A new resource that is already closed also gets a `closed` event, for listeners to that action.
    return [...existence(kind, exists), ...(isClosed ? [{ action: "closed", tells: TELLS_CLOSED }] : []), ...since];
  }
  return [...edited(kind, changed), ...changed.flatMap((one) => otherwise(kind, one))];
}

/** For these kinds upstream sends an event for each of their first values. */
const AT_BIRTH: ReadonlySet<Kind> = new Set<Kind>(["release", "check_suite", "check_run"]);

const TELLS_CLOSED = [{ aspect: "state", value: "closed" }] as const;

const isClosing = ({ aspect, now }: Changed) => aspect === "state" && now === "closed";

function existence(kind: Kind, { now }: Changed): Making[] {
  const tells = [{ aspect: "exists", value: now }];
  if (now !== true) return NEVER_DELETED.has(kind) ? [] : [{ action: "deleted", tells }];
  // Upstream sends the event of a new suite only to the App that made it.
  if (kind === "repository" || kind === "check_suite") return [];
  const isTalkedAbout = kind === "issue" || kind === "pull_request";
  return [{ action: isTalkedAbout ? "opened" : kind === "review" ? "submitted" : "created", tells }];
}

/** Kinds for whose deletion upstream sends no event, or another event. */
const NEVER_DELETED: ReadonlySet<Kind> = new Set<Kind>([
  "pull_request",
  "review",
  "repository",
  "check_suite",
  "check_run",
]);

function edited(kind: Kind, changed: readonly Changed[]): Making[] {
  const texts = changed.filter(({ aspect }) => EDITED.has(aspect) && !(kind === "repository" && aspect === "name"));
  if (texts.length === 0) return [];
  const changes = Object.fromEntries(
    texts.map(({ aspect, was }) => [
      aspect,
      aspect === "base" ? { ref: { from: was } } : { from: wordOf(kind, aspect, was) },
    ]),
  );
  const tells = texts.map(({ aspect, now }) => ({ aspect, value: now }));
  return [{ action: "edited", tells, more: { changes } }];
}

/** A former value in the form of the payload's `changes`. */
function wordOf(kind: Kind, aspect: string, was: Json): Json {
  if (aspect === "topics" && typeof was === "string") return parseStored<Json>(was);
  // By GitHub's webhook schema, a former value of a release is never null.
  if (kind === "release") return was ?? "";
  return was === "" ? null : was;
}

function otherwise(kind: Kind, { aspect, was, now }: Changed): Making[] {
  const one = (action: string, more: Pick<Making, "beside" | "more"> = {}): Making[] => [
    { action, tells: [{ aspect, value: now }], ...more },
  ];
  const [name = "", id] = aspect.split(" ");
  const member = BESIDE[name];
  if (member) {
    const { come, gone, ...beside } = member;
    return one(now === true ? come : gone, { beside: { ...beside, key: Number(id) } });
  }
  switch (aspect) {
    case "name":
      return kind === "repository"
        ? one("renamed", { more: { changes: { repository: { name: { from: was } } } } })
        : [];
    case "private":
      return one(now === true ? "privatized" : "publicized");
    case "archived":
      return one(now === true ? "archived" : "unarchived");
    case "prerelease":
      return one(now === true ? "prereleased" : "released");
    case "status":
      return now === true ? one("completed") : [];
    case "state":
      if (now === "closed") return one("closed");
      if (now === "open") return one(kind === "milestone" ? "opened" : "reopened");
      return now === "DISMISSED" ? one("dismissed") : [];
    case "milestone": {
      const event = (action: string, key: Json, value: Json): Making[] =>
        typeof key === "number"
          ? [{ action, tells: [{ aspect, value }], beside: { kind: "milestone", key, as: "milestone" } }]
          : [];
      return [...event("demilestoned", was, null), ...event("milestoned", now, now)];
    }
    case "locked":
      return one(now === true ? "locked" : "unlocked");
    case "draft":
      if (kind === "release") return one(now === true ? "unpublished" : "published");
      return one(now === true ? "converted_to_draft" : "ready_for_review");
    case "head":
      return one("synchronize", { more: { before: was, after: now } });
    default:
      return [];
  }
}
