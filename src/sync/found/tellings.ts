import { type Fields, isObject, type Json, numberOf, objectOf, rowsOf, textOf } from "../../json.ts";
import { type Aspect, aspectValue } from "../../mirror/store/found.ts";
import type { Kind } from "../../mirror/store/resource.ts";

/** A webhook's word on one aspect of its subject. */
export interface Telling extends Aspect {
  value: Json;
  /** The subject's `updated_at` in the payload; null: it has none. */
  updatedAt: Date | null;
  /** Whether the payload only shows the value, beside the one that the webhook tells. */
  isBeside: boolean;
}

/** The subject of an event: its kind, its key in the payload, and the key that it is known by. */
interface EventSubject {
  kind: Kind;
  in: string;
  by: "id" | "number";
}

export const SUBJECTS: Readonly<Record<string, EventSubject>> = {
  issues: { kind: "issue", in: "issue", by: "number" },
  pull_request: { kind: "pull_request", in: "pull_request", by: "number" },
  issue_comment: { kind: "issue_comment", in: "comment", by: "id" },
  pull_request_review: { kind: "review", in: "review", by: "id" },
  pull_request_review_comment: { kind: "review_comment", in: "comment", by: "id" },
  label: { kind: "label", in: "label", by: "id" },
  milestone: { kind: "milestone", in: "milestone", by: "id" },
  repository: { kind: "repository", in: "repository", by: "id" },
  release: { kind: "release", in: "release", by: "id" },
  check_suite: { kind: "check_suite", in: "check_suite", by: "id" },
  check_run: { kind: "check_run", in: "check_run", by: "id" },
};

/** The aspects that a webhook tells by its action. Other values in its payload have events of their own. Pure. */
export function tellingsOf(event: string, payload: Fields, repositoryId: number | null): Telling[] {
  const about = SUBJECTS[event];
  const subject = about && payload[about.in];
  if (!about || !isObject(subject) || repositoryId === null) return [];
  const key = numberOf(subject[about.by]);
  if (key === null) return [];
  const moved = Date.parse(textOf(subject.updated_at) ?? "");
  const updatedAt = Number.isNaN(moved) ? null : new Date(moved);
  const telling = ([aspect, value]: AspectValues[number], isBeside: boolean): Telling => ({
    ...{ kind: about.kind, repositoryId, key, aspect, value, updatedAt, isBeside },
  });
  const isBorn = payload.action === "opened" && event !== "milestone";
  return [
    ...said(payload, subject, event).map((one) => telling(one, false)),
    ...(isBorn ? shownAtBirth(subject).map((one) => telling(one, true)) : []),
  ];
}

type AspectValues = [aspect: string, value: Json][];

const KEYS = ["title", "body", "state", "locked", "draft", "head", "base"];
const LISTS = { labels: "label", assignees: "assignee", requested_reviewers: "requested_reviewer" };

/** First values for which upstream sends change events too, such as the labels of a new issue. */
function shownAtBirth(subject: Fields): AspectValues {
  const members = Object.entries(LISTS).flatMap(([list, name]) =>
    rowsOf(subject[list]).map(({ id }): AspectValues[number] => [`${name} ${id}`, true]),
  );
  const milestone = numberOf(objectOf(subject.milestone).id);
  const values = KEYS.flatMap((key): AspectValues => {
    const value = aspectValue(key, subject[key]);
    return value === undefined ? [] : [[key, value]];
  });
  return [...members, ["milestone", milestone], ...values];
}

function said(payload: Fields, subject: Fields, event: string): AspectValues {
  const now = (aspect: string): AspectValues => {
    const value = aspectValue(aspect, subject[aspect]);
    return value === undefined ? [] : [[aspect, value]];
  };
  const member = (name: string, isOne: boolean): AspectValues => {
    const id = numberOf(objectOf(payload[name]).id);
    return id === null ? [] : [[`${name} ${id}`, isOne]];
  };
  if (event === "repository") return saidOfRepository(payload, now);
  switch (payload.action) {
    case "published":
    case "unpublished":
      return now("draft");
    case "released":
    case "prereleased":
      return now("prerelease");
    case "completed":
      return [["status", true]];
    case "opened":
      return event === "milestone" ? now("state") : [["exists", true]];
    case "created":
    case "submitted":
      return [["exists", true]];
    case "deleted":
    case "transferred":
      return [["exists", false]];
    case "edited":
      return Object.keys(objectOf(payload.changes)).flatMap(now);
    case "closed":
    case "reopened":
      return now("state");
    case "dismissed":
      return [["state", "DISMISSED"]];
    case "labeled":
    case "unlabeled":
      return member("label", payload.action === "labeled");
    case "assigned":
    case "unassigned":
      return member("assignee", payload.action === "assigned");
    case "review_requested":
    case "review_request_removed":
      return member("requested_reviewer", payload.action === "review_requested");
    case "milestoned":
      return [["milestone", numberOf(objectOf(payload.milestone).id)]];
    case "demilestoned":
      return [["milestone", null]];
    case "locked":
    case "unlocked":
      return [["locked", payload.action === "locked"]];
    case "synchronize":
      return now("head");
    case "ready_for_review":
    case "converted_to_draft":
      return [["draft", payload.action === "converted_to_draft"]];
    default:
      return [];
  }
}

function saidOfRepository({ action, changes }: Fields, now: (aspect: string) => AspectValues): AspectValues {
  switch (action) {
    case "renamed":
      return now("name");
    case "edited":
      return Object.keys(objectOf(changes)).flatMap(now);
    case "archived":
    case "unarchived":
      return now("archived");
    case "privatized":
    case "publicized":
      return now("private");
    default:
      return [];
  }
}
