import type { Transaction } from "../../../db/database.ts";
import { MIRRORED } from "../../../db/schema/states.ts";
import { sql } from "../../../db/sql.ts";
import { type Fields, type Json, numberOf, objectOf, textOf } from "../../json.ts";
import { literalOf, referenceId } from "../documents.ts";
import { fittingTime } from "./fitting.ts";
import type { Stored } from "./merge-rule.ts";
import { type Kind, numberInAddress, type ResourceKey } from "./resource.ts";
import type { RowWrite } from "./rows.ts";

/**
 * What upstream sends change events for in one kind of resource: keys, and lists, each with the word for one member. An
 * aspect is one such key or list member of one resource, such as `title` or `label 7`. Every resource also has the
 * aspect `exists`.
 */
interface EventAspects {
  keys: readonly string[];
  lists?: Readonly<Record<string, string>>;
}

const ISSUE = {
  keys: ["title", "body", "state", "locked", "milestone"],
  lists: { labels: "label", assignees: "assignee" },
};

const HEARD: Readonly<Partial<Record<Kind, EventAspects>>> = {
  label: { keys: ["name", "color", "description"] },
  milestone: { keys: ["title", "description", "due_on", "state"] },
  issue: ISSUE,
  pull_request: {
    keys: [...ISSUE.keys, "draft", "head", "base"],
    lists: { ...ISSUE.lists, requested_reviewers: "requested_reviewer" },
  },
  review: { keys: ["body", "state"] },
  issue_comment: { keys: ["body"] },
  review_comment: { keys: ["body"] },
  repository: { keys: ["name", "description", "homepage", "default_branch", "topics", "private", "archived"] },
  release: { keys: ["name", "body", "draft", "prerelease"] },
  check_suite: { keys: ["status"] },
  check_run: { keys: ["status"] },
};

/** The keys for which upstream sends change events. Pure. */
export function keysHeard(kind: Kind): readonly string[] {
  return HEARD[kind]?.keys ?? [];
}

/** The repository that a resource's events belong to. Pure. */
export function eventsRepositoryOf({ kind, repositoryId, key }: ResourceKey): number {
  return kind === "repository" ? key : repositoryId;
}

/** An aspect of a resource, by name. */
export interface Aspect extends ResourceKey {
  aspect: string;
}

export function aspectName({ kind, repositoryId, key, aspect }: Aspect): string {
  return `${kind} ${repositoryId}/${key} ${aspect}`;
}

/** The last value that webhooks gave each aspect, by `aspectName`. */
export type LastSaid = ReadonlyMap<string, Json>;

/** Whether two values of an aspect are the same: texts, numbers, booleans or null. Pure. */
export function sameAspect(a: Json | undefined, b: Json | undefined): boolean {
  return (a ?? null) === (b ?? null);
}

/** Text keys for which both null and an empty string mean "no text". */
const MAY_BE_EMPTY: ReadonlySet<string> = new Set(["body", "description", "homepage"]);

/** A stored value as the value of an aspect. Texts are as upstream sent them. Undefined: not known. Pure. */
export function aspectValue(key: string, value: Json | undefined): Json | undefined {
  if (value === undefined) return undefined;
  if (MAY_BE_EMPTY.has(key)) return typeof value === "string" ? literalOf(value) : "";
  switch (key) {
    case "milestone":
      return referenceId(value);
    case "head":
      return textOf(objectOf(value).sha) ?? undefined;
    case "base":
      return textOf(objectOf(value).ref) ?? undefined;
    case "topics":
      return Array.isArray(value) ? JSON.stringify(value) : undefined;
    case "status":
      // Upstream sends an event when a check has ended.
      return value === "completed";
    default:
      return typeof value === "string" ? literalOf(value) : value;
  }
}

/** The ids of a list's members; undefined: the list is not known. */
function membersOf(fields: Fields, list: string): readonly number[] | undefined {
  const members = fields[list];
  return Array.isArray(members) ? members.flatMap((one) => referenceId(one) ?? []) : undefined;
}

/** Whether everybody can see the resource. A review can only be seen once it is submitted. Pure. */
function isThere(stored: Stored | undefined): stored is Stored {
  return (
    stored !== undefined &&
    stored.deletedAt === null &&
    numberOf(stored.fields.id) !== null &&
    stored.fields.state !== "PENDING"
  );
}

/** An aspect's value now; undefined: it is not known, or there is no such resource. Pure. */
export function aspectOf(kind: Kind, stored: Stored | undefined, aspect: string): Json | undefined {
  if (aspect === "exists") return isThere(stored);
  if (!stored) return undefined;
  const [name, id] = aspect.split(" ");
  for (const [list, member] of Object.entries(HEARD[kind]?.lists ?? {}))
    if (member === name) return membersOf(stored.fields, list)?.includes(Number(id));
  return aspectValue(aspect, stored.fields[aspect]);
}

/** All aspects that the first event of a resource shows, with their values. Pure. */
export function shownAtFirst(kind: Kind, { fields }: Pick<Stored, "fields">): { aspect: string; value: Json }[] {
  const { keys, lists = {} } = HEARD[kind] ?? { keys: [] };
  const members = Object.entries(lists).flatMap(([list, name]) =>
    (membersOf(fields, list) ?? []).map((id) => ({ aspect: `${name} ${id}`, value: true })),
  );
  const values = keys.flatMap((aspect) => {
    const value = aspectValue(aspect, fields[aspect]);
    return value === undefined ? [] : [{ aspect, value }];
  });
  return [...values, ...members];
}

/**
 * The aspects in which two states of a resource differ, with their former values. An aspect that one state does not
 * show is left out. Pure.
 */
function changedAspects(kind: Kind, before: Stored | undefined, after: Stored): [aspect: string, was: Json][] {
  const heard = HEARD[kind];
  // A pull request has events of its own.
  if (!heard || (kind === "issue" && (after.fields.pull_request ?? null) !== null)) return [];
  const is = isThere(after);
  if (!isThere(before)) return is ? [["exists", false], ...sinceBirth(kind, after)] : [];
  if (!is) return [["exists", true]];
  const changed: [string, Json][] = [];
  for (const key of heard.keys) {
    const raw = before.fields[key];
    if (raw === after.fields[key]) continue;
    const [was, now] = [aspectValue(key, raw), aspectValue(key, after.fields[key])];
    if (was !== undefined && now !== undefined && !sameAspect(was, now)) changed.push([key, was]);
  }
  for (const list in heard.lists) {
    const [was, now] = [membersOf(before.fields, list), membersOf(after.fields, list)];
    if (!was || !now) continue;
    for (const id of was) if (!now.includes(id)) changed.push([`${heard.lists[list]} ${id}`, true]);
    for (const id of now) if (!was.includes(id)) changed.push([`${heard.lists[list]} ${id}`, false]);
  }
  return changed;
}

/** Values that a resource gets only after it is opened. Upstream sends a change event for each. */
function sinceBirth(kind: Kind, { fields }: Stored): [aspect: string, was: Json][] {
  if (kind === "release")
    return fields.draft === true
      ? []
      : [
          ["draft", true],
          ["prerelease", null],
        ];
  if (kind === "check_run" || kind === "check_suite") return fields.status === "completed" ? [["status", false]] : [];
  if (kind !== "issue" && kind !== "pull_request") return [];
  const lists = Object.entries(HEARD[kind]?.lists ?? {});
  return [
    ...lists.flatMap(([list, name]) =>
      (membersOf(fields, list) ?? []).map((id): [string, Json] => [`${name} ${id}`, false]),
    ),
    ...(referenceId(fields.milestone) === null ? [] : [["milestone", null] satisfies [string, Json]]),
    ...(fields.state === "closed" ? [["state", "open"] satisfies [string, Json]] : []),
  ];
}

interface FoundChange extends Aspect {
  was: Json;
  foundAt: Date;
  /** When a new resource was made, by upstream's word; null: it is not new, or upstream does not say. */
  createdAt: string | null;
  /** The issue that it is, or that it stands under; null: neither. */
  issue: number | null;
}

/** Upstream's clock and ours may differ by this much. */
const SKEW = sql`interval '1 minute'`;

/** How long a webhook's value counts as known to targets, even if the mirror did not store it at first. */
export const BELIEVED_WITHIN = sql`interval '1 hour'`;

/**
 * Stores the changes in these rows that no webhook reported, so that events are made of them. Rows of a first copy do
 * not count as changes. Nor do resources that are older than the selection of the repository, except for what a
 * transferred issue brings along: upstream sends nothing of its comments.
 * @param told the values that this transaction's webhooks gave, by `aspectName`
 */
export async function noteFound(tx: Transaction, kind: Kind, rows: readonly RowWrite[], told: LastSaid): Promise<void> {
  const found = rows.flatMap((row) => foundIn(kind, row, told));
  if (found.length === 0) return;
  const of = <Key extends keyof FoundChange>(key: Key) => found.map((one) => one[key]);
  await tx.prepared(sql`
    insert into found_changes as f (repository_id, kind, key, aspect, was, found_at)
      select x.r, x.kind, x.k, x.aspect, x.was::json, x.found_at
        from unnest(${sql.array(of("repositoryId"), "bigint")}, ${sql.array(of("kind"), "text")}, ${sql.array(of("key"), "bigint")},
            ${sql.array(of("aspect"), "text")}, ${sql.array(
              of("was").map((was) => JSON.stringify(was)),
              "text",
            )},
            ${sql.array(
              of("foundAt").map((at) => at.toISOString()),
              "timestamptz",
            )}, ${sql.array(of("createdAt"), "timestamptz")}, ${sql.array(of("issue"), "integer")})
          as x(r, kind, k, aspect, was, found_at, created_at, issue)
        join repository_syncs s on s.repository_id = x.r
        where ${MIRRORED} and s.backfilled_at >= s.added_at and (x.created_at is null or x.created_at >=
          case when x.kind = any(${[...OF_PARTS]}::text[]) then coalesce(s.parts_changed_at, s.added_at) else s.added_at end - ${SKEW}
          or (x.r, x.issue) in (select to_repository_id, to_number from issue_transfers))
        order by x.r, x.kind, x.k, x.aspect
      on conflict (repository_id, kind, key, aspect) do update set found_at = coalesce(f.found_at, excluded.found_at),
        was = case when f.found_at is not null or f.heard_at > excluded.found_at - ${BELIEVED_WITHIN}
          then coalesce(f.was, excluded.was) else excluded.was end`);
}

/** Kinds that `MIRROR` adds. They may be selected later than the repository. */
const OF_PARTS: readonly Kind[] = ["release", "check_suite", "check_run"];

/** When the resource was made at upstream; null: upstream does not say. Pure. */
function madeAt(kind: Kind, fields: Fields): string | null {
  switch (kind) {
    case "review":
      return textOf(fields.submitted_at);
    case "release":
      // The `created_at` of a release is its commit's.
      return textOf(fields.published_at) ?? textOf(fields.created_at);
    case "check_run":
      return textOf(fields.started_at);
    default:
      return textOf(fields.created_at);
  }
}

function foundIn(kind: Kind, { seen, stored, before }: RowWrite, told: LastSaid): FoundChange[] {
  const { key } = seen;
  const repositoryId = eventsRepositoryOf(seen);
  const foundAt = new Date(stored.deletedAt ?? stored.stamp.seenAt);
  const isNew = !isThere(before?.stored);
  const issue = kind === "issue" ? key : kind === "issue_comment" ? numberInAddress(stored.fields.issue_url) : null;
  const changed = changedAspects(kind, before?.stored, stored);
  // The opening event may have other values than the resource has by now.
  if (isNew && isThere(stored))
    for (const { aspect } of shownAtFirst(kind, stored)) {
      const said = told.get(aspectName({ kind, repositoryId, key, aspect }));
      if (said !== undefined && changed.every(([name]) => name !== aspect)) changed.push([aspect, said]);
    }
  return changed.flatMap(([aspect, before]) => {
    const said = told.get(aspectName({ kind, repositoryId, key, aspect }));
    if (said !== undefined && sameAspect(said, aspectOf(kind, stored, aspect))) return [];
    const was = said ?? before;
    const createdAt = madeAt(kind, stored.fields);
    return [{ kind, repositoryId, key, aspect, was, foundAt, createdAt: isNew ? fittingTime(createdAt) : null, issue }];
  });
}
