import type { Transaction } from "../../../db/database.ts";
import { MIRRORED } from "../../../db/schema/states.ts";
import { sql } from "../../../db/sql.ts";
import { type Json, numberOf, textOf } from "../../json.ts";
import { type FieldChange, fieldValue, type Kind, membersOf, type ResourceKey } from "../../kinds/contract/kind.ts";
import { resourceOf, resources } from "../../kinds/registry.ts";
import { fittingTime } from "./fitting.ts";
import type { Stored } from "./merge-rule.ts";
import type { RowWrite } from "./rows.ts";

/** The repository that a resource's events belong to. Pure. */
export function eventsRepositoryOf({ kind, repositoryId, key }: ResourceKey): number {
  return kind === "repository" ? key : repositoryId;
}

/**
 * An aspect of a resource: what upstream sends change events for (`ResourceEvents`). It is a field, a member of a list such
 * as `label 7`, or `exists`.
 */
export interface Aspect extends ResourceKey {
  aspect: string;
}

export function aspectName({ kind, repositoryId, key, aspect }: Aspect): string {
  return `${kind} ${repositoryId}/${key} ${aspect}`;
}

/** The last value that webhooks gave each aspect, by `aspectName`. */
export type LastSaid = ReadonlyMap<string, Said>;

export interface Said {
  value: Json;
  /** Its event tells of another aspect. What the first event of a resource shows is news of a new resource alone. */
  isBeside: boolean;
}

/** Whether two values of an aspect are the same: texts, numbers, booleans or null. Pure. */
export function sameAspect(a: Json | undefined, b: Json | undefined): boolean {
  return (a ?? null) === (b ?? null);
}

/** Whether everybody can see the resource. Pure. */
function isThere(kind: Kind, stored: Stored | undefined): stored is Stored {
  if (stored === undefined || stored.deletedAt !== null || numberOf(stored.fields.id) === null) return false;
  return !resourceOf(kind).events?.isHidden?.(stored.fields);
}

/** An aspect's value now; undefined: it is not known, or there is no such resource. Pure. */
export function aspectOf(kind: Kind, stored: Stored | undefined, aspect: string): Json | undefined {
  if (aspect === "exists") return isThere(kind, stored);
  const { events } = resourceOf(kind);
  if (!stored || !events) return undefined;
  const [name, id] = aspect.split(" ");
  for (const [list, { member }] of Object.entries(events.lists))
    if (member === name) return membersOf(stored.fields, list)?.includes(Number(id));
  return fieldValue(events, aspect, stored.fields[aspect]);
}

/** All aspects that the first event of a resource shows, with their values. Pure. */
export function shownAtFirst(kind: Kind, { fields }: Pick<Stored, "fields">): { aspect: string; value: Json }[] {
  const { events } = resourceOf(kind);
  if (!events) return [];
  const members = Object.entries(events.lists).flatMap(([list, { member }]) =>
    (membersOf(fields, list) ?? []).map((id) => ({ aspect: `${member} ${id}`, value: true })),
  );
  const values = Object.keys(events.fields).flatMap((aspect) => {
    const value = fieldValue(events, aspect, fields[aspect]);
    return value === undefined ? [] : [{ aspect, value }];
  });
  return [...values, ...members];
}

/**
 * The aspects in which two states of a resource differ, with their former values. An aspect that one state does not
 * show is left out. Pure.
 */
function changedAspects(kind: Kind, before: Stored | undefined, after: Stored): FieldChange[] {
  const { events } = resourceOf(kind);
  // A pull request has events of its own.
  if (!events || (kind === "issue" && (after.fields.pull_request ?? null) !== null)) return [];
  const is = isThere(kind, after);
  if (!isThere(kind, before)) return is ? [["exists", false], ...events.sinceBirth(after.fields)] : [];
  if (!is) return [["exists", true]];
  const changed: FieldChange[] = [];
  for (const key in events.fields) {
    const raw = before.fields[key];
    if (raw === after.fields[key]) continue;
    const [was, now] = [fieldValue(events, key, raw), fieldValue(events, key, after.fields[key])];
    if (was !== undefined && now !== undefined && !sameAspect(was, now)) changed.push([key, was]);
  }
  for (const [list, { member }] of Object.entries(events.lists)) {
    const [was, now] = [membersOf(before.fields, list), membersOf(after.fields, list)];
    if (!was || !now) continue;
    for (const id of was) if (!now.includes(id)) changed.push([`${member} ${id}`, true]);
    for (const id of now) if (!was.includes(id)) changed.push([`${member} ${id}`, false]);
  }
  return changed;
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
 * transferred issue brings along: upstream sends nothing of its comments. A change that was seen earlier than it is stored
 * counts as found once targets had heard the value before it, so that its event comes behind.
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
      on conflict (repository_id, kind, key, aspect) do update
        set found_at = coalesce(f.found_at, greatest(excluded.found_at, f.made_at, f.heard_at)),
        was = case when f.found_at is not null or f.heard_at > excluded.found_at - ${BELIEVED_WITHIN}
          then coalesce(f.was, excluded.was) else excluded.was end`);
}

/** Notes the comments of an issue that are older than the selection of its repository, so that events are made of them. */
export async function noteTakenAlong(tx: Transaction, to: { repositoryId: number; number: number }): Promise<void> {
  await tx.query(sql`
    insert into found_changes (repository_id, kind, key, aspect, was, found_at)
      select c.repository_id, 'issue_comment', c.id, 'exists', 'false', ${tx.now()}::timestamptz
        from issue_comments c join repository_syncs s using (repository_id)
        where c.repository_id = ${to.repositoryId} and c.issue_number = ${to.number} and c.deleted_at is null and ${MIRRORED}
          and s.backfilled_at >= s.added_at and c.created_at < s.added_at - ${SKEW}
        order by c.id on conflict do nothing`);
}

/** Kinds that `MIRROR` adds. They may be selected later than the repository. */
const OF_PARTS: readonly Kind[] = resources.filter(({ part }) => part !== null).map(({ kind }) => kind);

function foundIn(kind: Kind, { seen, stored, before }: RowWrite, told: LastSaid): FoundChange[] {
  const { events } = resourceOf(kind);
  if (!events) return [];
  const { key } = seen;
  const repositoryId = eventsRepositoryOf(seen);
  const foundAt = new Date(stored.deletedAt ?? stored.stamp.seenAt);
  const isNew = !isThere(kind, before?.stored);
  const issue = events.issueNumber?.(stored.fields, key) ?? null;
  const saidOf = (aspect: string): Json | undefined => {
    const said = told.get(aspectName({ kind, repositoryId, key, aspect }));
    return said?.isBeside && !isNew ? undefined : said?.value;
  };
  const changed = changedAspects(kind, before?.stored, stored);
  // The opening event may have other values than the resource has by now.
  if (isNew && isThere(kind, stored))
    for (const { aspect } of shownAtFirst(kind, stored)) {
      const said = saidOf(aspect);
      if (said !== undefined && changed.every(([name]) => name !== aspect)) changed.push([aspect, said]);
    }
  return changed.flatMap(([aspect, before]) => {
    const said = saidOf(aspect);
    if (said !== undefined && sameAspect(said, aspectOf(kind, stored, aspect))) return [];
    const was = said ?? before;
    const createdAt = textOf(events.madeAt(stored.fields));
    return [{ kind, repositoryId, key, aspect, was, foundAt, createdAt: isNew ? fittingTime(createdAt) : null, issue }];
  });
}
