import type { Transaction } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import type { Told } from "../../events/log.ts";
import {
  type Fields,
  isObject,
  type Json,
  numberOf,
  objectOf,
  parseStored,
  rowsOf,
  textOf,
  wholeOf,
} from "../../json.ts";
import { fieldValue, type Report, type ResourceEvents } from "../../kinds/contract/kind.ts";
import { subjectOf } from "../../kinds/registry.ts";
import {
  type Aspect,
  aspectName,
  aspectOf,
  eventsRepositoryOf,
  type LastSaid,
  type Said,
  sameAspect,
} from "../../mirror/store/found.ts";
import type { Merged } from "../../mirror/store/merge.ts";
import type { Stored } from "../../mirror/store/merge-rule.ts";

/** The value that a webhook gives for one aspect of its subject. */
export interface ReportedChange extends Aspect {
  value: Json;
  /** The subject's `updated_at` in the payload; null: it has none. */
  updatedAt: Date | null;
  /** Whether the webhook's action is about another aspect, and its payload only shows this value as well. */
  isBeside: boolean;
}

/** The aspects that a webhook reports by its action. Other values in its payload have events of their own. Pure. */
export function reportedChangesOf(event: string, payload: Fields, repositoryId: number | null): ReportedChange[] {
  const about = subjectOf(event);
  const subject = about && payload[about.events.in];
  if (!about || !isObject(subject) || repositoryId === null) return [];
  const { kind, events } = about;
  const key = wholeOf(subject[events.by]);
  if (key === null) return [];
  const moved = Date.parse(textOf(subject.updated_at) ?? "");
  const updatedAt = Number.isNaN(moved) ? null : new Date(moved);
  const changeOf = ([aspect, value]: AspectValue, isBeside: boolean): ReportedChange => ({
    ...{ kind, repositoryId, key, aspect, value, updatedAt, isBeside },
  });
  const action = textOf(payload.action) ?? "";
  const report = Object.hasOwn(events.actions, action) ? events.actions[action] : undefined;
  if (!report) return [];
  const isFirst = "isFirst" in report || ("exists" in report && report.exists);
  return [
    ...reported(report, events, payload, subject).map((one) => changeOf(one, false)),
    ...(isFirst ? shownAtBirth(events, subject).map((one) => changeOf(one, true)) : []),
  ];
}

type AspectValue = [aspect: string, value: Json];

/** First values for which upstream sends change events too, such as the labels of a new issue. */
function shownAtBirth(events: ResourceEvents, subject: Fields): AspectValue[] {
  const members = Object.entries(events.lists).flatMap(([list, { member }]) =>
    rowsOf(subject[list]).map(({ id }): AspectValue => [`${member} ${id}`, true]),
  );
  return [...members, ...Object.keys(events.fields).flatMap((field) => shownNow(events, subject, field))];
}

function shownNow(events: ResourceEvents, subject: Fields, field: string): AspectValue[] {
  const value = fieldValue(events, field, Object.hasOwn(subject, field) ? subject[field] : undefined);
  return value === undefined ? [] : [[field, value]];
}

function reported(report: Report, events: ResourceEvents, payload: Fields, subject: Fields): AspectValue[] {
  if ("exists" in report) return [["exists", report.exists]];
  if ("isFirst" in report) return [];
  if ("changes" in report)
    return Object.keys(objectOf(payload.changes)).flatMap((field) => shownNow(events, subject, field));
  if ("member" in report) {
    const id = numberOf(objectOf(payload[report.member]).id);
    return id === null ? [] : [[`${report.member} ${id}`, report.isMember]];
  }
  if ("isShown" in report) return shownNow(events, subject, report.field);
  return [[report.field, "beside" in report ? numberOf(objectOf(payload[report.field]).id) : report.value]];
}

/** A delivery that may be sent to targets, with its reported changes. */
export interface HeardDelivery extends Told {
  reportedChanges: readonly ReportedChange[];
}

/**
 * The last value that these deliveries give each aspect. A value that is only shown beside the event's subject counts
 * if no delivery tells it outright.
 */
export function lastSaid(heard: readonly HeardDelivery[]): LastSaid {
  const said = new Map<string, Said>();
  for (const isBeside of [true, false])
    for (const each of heard.flatMap(({ reportedChanges }) => reportedChanges))
      if (each.isBeside === isBeside) said.set(aspectName(each), { value: each.value, isBeside });
  return said;
}

/** A row of `found_changes`. */
interface FoundChangeRow extends Aspect {
  foundAt: Date | null;
  heardAt: Date | null;
  made: Json[] | null;
  madeUntil: Date | null;
  overtaken: boolean;
}

/**
 * Compares deliveries with made events. No event is made of a change that a webhook reports, and a webhook that repeats
 * a made event is not sent to targets. Returns the deliveries to send. Call it after the merge: changes found earlier
 * are committed by then, and later ones see the merged rows.
 */
export async function heardAnew(
  tx: Transaction,
  heard: readonly HeardDelivery[],
  merged: readonly Merged[],
  at: Date,
): Promise<readonly HeardDelivery[]> {
  const conflicting = new Set(merged.filter(({ outcome }) => outcome === "conflict").map((one) => resourceName(one)));
  const reportedChanges = heard.flatMap((one) => one.reportedChanges);
  if (reportedChanges.length === 0) return heard;
  const rows = await lockFound(tx, reportedChanges);
  const behind = await toldBehind(tx, heard);
  const stored = new Map(merged.map((one) => [resourceName(one), one.stored]));
  /** No target has heard of the resource yet, so each webhook about it counts. */
  const isFresh = (one: ReportedChange) =>
    (rows.get(aspectName({ ...one, aspect: "exists" }))?.foundAt ?? null) !== null;
  const isOtherwise = ({ aspect, value, ...one }: ReportedChange) => {
    const known = stored.get(resourceName(one));
    const now = known && aspectOf(one.kind, known, aspect);
    return now !== undefined && !sameAspect(now, value);
  };
  const said = new Map<string, NotedChange>();
  const anew: HeardDelivery[] = [];
  for (const one of heard) {
    const own = one.reportedChanges.filter(({ isBeside }) => !isBeside);
    if (own.length > 0 && own.every((each) => wasMade(rows.get(aspectName(each)), each))) continue;
    anew.push(one);
    for (const each of one.reportedChanges) {
      const name = aspectName(each);
      const row = rows.get(name);
      const later = behind.get(`${one.deliveryId} ${name}`);
      const last = later ? { ...each, value: later.value } : each;
      // What comes behind is older: who goes by times goes on with this one.
      const isLate =
        later !== undefined &&
        !sameAspect(later.value, each.value) &&
        Number(later.updatedAt) < Number(each.updatedAt ?? 0);
      const isNews = isOtherwise(last) || isLate;
      if (wasMade(row, each) && !isNews) continue;
      if (each.isBeside) {
        // Of a resource that targets know already, they have heard such values by events of their own.
        const isKnown = row?.heardAt !== null || !isFresh(each);
        if (said.has(name) || (!isNews && isKnown)) continue;
      } else if (!row && !isFresh(each) && !conflicting.has(resourceName(each)) && !isNews && !said.has(name)) continue;
      // What targets now know differs from what the mirror shows. It may stay so: the webhook was late.
      said.set(name, { ...last, foundAt: isNews ? at : null, isLate });
      if (row) row.overtaken = true;
    }
  }
  const older = [...said.values()].filter((one) => isOlder(one, stored.get(resourceName(one))));
  const newest = older.length > 0 ? await newestTold(tx, older, heard) : new Map<string, ReportedChange>();
  for (const one of older) {
    const { updatedAt, value } = newest.get(aspectName(one)) ?? one;
    one.isLate ||= !sameAspect(value, one.value) && Number(updatedAt) > Number(one.updatedAt);
  }
  await noteSaid(tx, [...said.values()], at);
  return anew;
}

/** Whether the resource has changed since the webhook told of it. */
function isOlder({ updatedAt }: ReportedChange, known: Stored | undefined): boolean {
  return updatedAt !== null && updatedAt.getTime() < Date.parse(textOf(known?.fields.updated_at) ?? "");
}

/** So many of a repository's last events are looked through for what was told of an issue or pull request. */
const LOOKED_THROUGH = 500;

/** What these deliveries and those before them have told of the same aspects, each with the latest `updated_at`. */
async function newestTold(
  tx: Transaction,
  older: readonly ReportedChange[],
  heard: readonly HeardDelivery[],
): Promise<Map<string, ReportedChange>> {
  const names = new Set(older.map(aspectName));
  const about = new Map(heard.map((one) => [`${one.repositoryId} ${one.about?.number}`, one]));
  const events = await Promise.all(
    [...about.values()]
      .filter(({ repositoryId, about }) => repositoryId !== null && about?.number != null)
      .map(({ repositoryId, about }) =>
        tx.prepared<{ event: string; payload: string; repositoryId: number }>(sql`
          with last as (
            (select * from events where repository_id = ${repositoryId} and id is not null order by id desc limit ${LOOKED_THROUGH})
            union all (select * from events where repository_id = ${repositoryId} and id is null limit ${LOOKED_THROUGH}))
          select e.event, e.repository_id as "repositoryId", convert_from(d.payload, 'UTF8') as payload
            from last e join deliveries d on d.id = e.delivery_id where e.number = ${about?.number ?? null}`),
      ),
  );
  const before = events
    .flat()
    .flatMap(({ event, payload, repositoryId }) =>
      reportedChangesOf(event, parseStored<Fields>(payload), repositoryId),
    );
  const newest = new Map<string, ReportedChange>();
  for (const one of [...before, ...heard.flatMap(({ reportedChanges }) => reportedChanges)]) {
    const known = newest.get(aspectName(one));
    if (one.isBeside || !names.has(aspectName(one)) || Number(one.updatedAt) <= Number(known?.updatedAt ?? 0)) continue;
    newest.set(aspectName(one), one);
  }
  return newest;
}

/**
 * The last values of the same aspects that later deliveries gave, by delivery and aspect. Batches are applied side by
 * side, so these may be applied already; their events wait for a place behind those of the earlier deliveries.
 */
async function toldBehind(
  tx: Transaction,
  heard: readonly HeardDelivery[],
): Promise<Map<string, Pick<ReportedChange, "value" | "updatedAt">>> {
  const own = heard.filter(({ repositoryId, reportedChanges }) => repositoryId !== null && reportedChanges.length > 0);
  const rows = await tx.prepared<{ before: string; repositoryId: number; event: string; payload: string }>(sql`
    select x.id as before, x.r as "repositoryId", e.event, convert_from(d.payload, 'UTF8') as payload
      from unnest(${sql.array(
        own.map(({ deliveryId }) => deliveryId),
        "uuid",
      )}, ${sql.array(
        own.map(({ repositoryId }) => repositoryId),
        "bigint",
      )}, ${sql.array(
        own.map(({ about }) => about?.number ?? null),
        "integer",
      )}) as x(id, r, number)
      join events e on e.repository_id = x.r and e.id is null and e.number is not distinct from x.number
      join deliveries m on m.id = x.id
      join deliveries d on d.id = e.delivery_id and (d.received_at, d.id) > (m.received_at, m.id)
      order by d.received_at, d.id`);
  return new Map(
    rows.flatMap(({ before, repositoryId, event, payload }) =>
      reportedChangesOf(event, parseStored<Fields>(payload), repositoryId)
        .filter(({ isBeside }) => !isBeside)
        .map((each): [string, ReportedChange] => [`${before} ${aspectName(each)}`, each]),
    ),
  );
}

function resourceName(one: Omit<Aspect, "aspect">): string {
  return `${one.kind} ${eventsRepositoryOf(one)}/${one.key}`;
}

/**
 * Whether a made event already says the same or something newer. After a webhook has told another value, the old value
 * may be news again.
 */
function wasMade(row: FoundChangeRow | undefined, { aspect, value, updatedAt }: ReportedChange): boolean {
  if (!row) return false;
  const { made, madeUntil, overtaken } = row;
  if (made === null) return false;
  // A resource is created only once, so this webhook is old. The times would not show it: a deletion need not move
  // `updated_at`.
  if (aspect === "exists" && value === true) return true;
  const laterMs = updatedAt !== null && madeUntil !== null ? updatedAt.getTime() - madeUntil.getTime() : null;
  if (laterMs !== null && laterMs < 0) return true;
  return (!overtaken || laterMs === 0) && made.some((one) => sameAspect(one, value));
}

/** Locks the found changes that these reported changes are about. Mostly there are none. */
async function lockFound(
  tx: Transaction,
  reportedChanges: readonly ReportedChange[],
): Promise<Map<string, FoundChangeRow>> {
  const x = changesTable(reportedChanges);
  const rows = await tx.prepared<FoundChangeRow>(sql`
    select f.kind, f.repository_id as "repositoryId", f.key, f.aspect, f.made, f.found_at as "foundAt", f.heard_at as "heardAt", f.made_until as "madeUntil", f.overtaken
      from (select r, kind, k, aspect from ${x} union select r, kind, k, 'exists' from ${x}) x
        join found_changes f on f.repository_id = x.r and f.kind = x.kind and f.key = x.k and f.aspect = x.aspect
      order by f.repository_id, f.kind, f.key, f.aspect for update of f`);
  return new Map(rows.map((row) => [aspectName(row), row]));
}

/** `foundAt`: when the mirror found another value; null: it did not. `isLate`: a newer webhook had told another. */
type NotedChange = ReportedChange & { foundAt: Date | null; isLate: boolean };

/** Stores the last values that webhooks gave. Waiting changes are compared with them. */
async function noteSaid(tx: Transaction, said: readonly NotedChange[], at: Date): Promise<void> {
  if (said.length === 0) return;
  await tx.prepared(sql`
    insert into found_changes (repository_id, kind, key, aspect, was, found_at, heard_at, is_late)
      select r, kind, k, aspect, value::json, found_at, ${at}, is_late from ${changesTable(said)} order by r, kind, k, aspect
      on conflict (repository_id, kind, key, aspect) do update set was = excluded.was, heard_at = excluded.heard_at, is_late = excluded.is_late,
        found_at = case when excluded.found_at is null then found_changes.found_at
          else greatest(found_changes.found_at, excluded.found_at) end, overtaken = found_changes.made is not null`);
}

function changesTable(reportedChanges: readonly (ReportedChange & Partial<NotedChange>)[]) {
  const of = <Key extends keyof ReportedChange>(key: Key) => reportedChanges.map((one) => one[key]);
  const foundAt = reportedChanges.map((one) => one.foundAt ?? null);
  const values = of("value").map((value) => JSON.stringify(value));
  return sql`unnest(${sql.array(of("repositoryId"), "bigint")}, ${sql.array(of("kind"), "text")}, ${sql.array(of("key"), "bigint")},
    ${sql.array(of("aspect"), "text")}, ${sql.array(values, "text")},
    ${sql.array(foundAt, "timestamptz")}, ${reportedChanges.map((one) => one.isLate ?? false)}::boolean[])
    as x(r, kind, k, aspect, value, found_at, is_late)`;
}
