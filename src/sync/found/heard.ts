import type { Transaction } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import type { Told } from "../../events/log.ts";
import type { Json } from "../../json.ts";
import { type Aspect, aspectName, aspectOf, eventsRepositoryOf, sameAspect } from "../../mirror/store/found.ts";
import type { Merged } from "../../mirror/store/merge.ts";
import type { Telling } from "./tellings.ts";

/** A delivery to tell to targets, with the aspects that it tells. */
export interface HeardDelivery extends Told {
  tellings: readonly Telling[];
}

/**
 * The last value that these deliveries give each aspect. A value that is only shown beside the event's subject counts
 * if no delivery tells it outright.
 */
export function lastSaid(heard: readonly HeardDelivery[]): Map<string, Json> {
  const said = new Map<string, Json>();
  for (const isBeside of [true, false])
    for (const each of heard.flatMap(({ tellings }) => tellings))
      if (each.isBeside === isBeside) said.set(aspectName(each), each.value);
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
 * Compares deliveries with made events. No event is made of a change that a webhook tells, and a webhook that repeats a
 * made event is not told to targets. Answers the deliveries to tell. Call it after the merge: changes found earlier are
 * committed by then, and later ones see the merged rows.
 */
export async function heardAnew(
  tx: Transaction,
  heard: readonly HeardDelivery[],
  merged: readonly Merged[],
  at: Date,
): Promise<readonly HeardDelivery[]> {
  const tied = new Set(merged.filter(({ outcome }) => outcome === "tied").map((one) => resourceName(one)));
  const tellings = heard.flatMap((one) => one.tellings);
  if (tellings.length === 0) return heard;
  const rows = await lockFound(tx, tellings);
  if (rows.size === 0 && tied.size === 0) return heard;
  const stored = new Map(merged.map((one) => [resourceName(one), one.stored]));
  /** No target has heard of the resource yet, so each telling of it counts. */
  const isFresh = (one: Telling) => (rows.get(aspectName({ ...one, aspect: "exists" }))?.foundAt ?? null) !== null;
  const isOtherwise = ({ aspect, value, ...one }: Telling) => {
    const now = aspectOf(one.kind, stored.get(resourceName(one)), aspect);
    return now !== undefined && !sameAspect(now, value);
  };
  const said = new Map<string, NotedTelling>();
  const anew: HeardDelivery[] = [];
  for (const one of heard) {
    const own = one.tellings.filter(({ isBeside }) => !isBeside);
    if (own.length > 0 && own.every((each) => wasMade(rows.get(aspectName(each)), each))) continue;
    anew.push(one);
    for (const each of one.tellings) {
      const name = aspectName(each);
      const row = rows.get(name);
      if (wasMade(row, each)) continue;
      if (each.isBeside) {
        if (said.has(name) || (row ? row.heardAt !== null : !(isFresh(each) && isOtherwise(each)))) continue;
      } else if (!row && !isFresh(each) && !tied.has(resourceName(each))) continue;
      said.set(name, { ...each, foundAt: each.isBeside && !row ? at : null });
      if (row) row.overtaken = true;
    }
  }
  await noteSaid(tx, [...said.values()], at);
  return anew;
}

function resourceName(one: Omit<Aspect, "aspect">): string {
  return `${one.kind} ${eventsRepositoryOf(one)}/${one.key}`;
}

/**
 * Whether a made event already says the same or something newer. After a webhook has told another value, the old value
 * may be news again.
 */
function wasMade(row: FoundChangeRow | undefined, { aspect, value, updatedAt }: Telling): boolean {
  if (!row) return false;
  const { made, madeUntil, overtaken } = row;
  if (made === null) return false;
  // A resource is created only once, so this telling is old. The times would not show it: a deletion need not move
  // `updated_at`.
  if (aspect === "exists" && value === true) return true;
  const laterMs = updatedAt !== null && madeUntil !== null ? updatedAt.getTime() - madeUntil.getTime() : null;
  if (laterMs !== null && laterMs < 0) return true;
  return (!overtaken || laterMs === 0) && made.some((one) => sameAspect(one, value));
}

/** Locks the found changes that these tellings are about. Mostly there are none. */
async function lockFound(tx: Transaction, tellings: readonly Telling[]): Promise<Map<string, FoundChangeRow>> {
  const x = table(tellings);
  const rows = await tx.prepared<FoundChangeRow>(sql`
    select f.kind, f.repository_id::float8 as "repositoryId", f.key::float8 as key, f.aspect, f.made, f.found_at as "foundAt", f.heard_at as "heardAt", f.made_until as "madeUntil", f.overtaken
      from (select r, kind, k, aspect from ${x} union select r, kind, k, 'exists' from ${x}) x
        join found_changes f on f.repository_id = x.r and f.kind = x.kind and f.key = x.k and f.aspect = x.aspect
      order by f.repository_id, f.kind, f.key, f.aspect for update of f`);
  return new Map(rows.map((row) => [aspectName(row), row]));
}

/** `foundAt`: when the mirror found another value; null: it did not. */
type NotedTelling = Telling & { foundAt: Date | null };

/** Stores the last values that webhooks tell. Waiting changes are compared with them. */
async function noteSaid(tx: Transaction, said: readonly NotedTelling[], at: Date): Promise<void> {
  if (said.length === 0) return;
  await tx.prepared(sql`
    insert into found_changes (repository_id, kind, key, aspect, was, found_at, heard_at)
      select r, kind, k, aspect, value::json, found_at, ${at} from ${table(said)} order by r, kind, k, aspect
      on conflict (repository_id, kind, key, aspect) do update set was = excluded.was, heard_at = excluded.heard_at,
        overtaken = found_changes.made is not null`);
}

function table(tellings: readonly (Telling & { foundAt?: Date | null })[]) {
  const of = <Key extends keyof Telling>(key: Key) => tellings.map((one) => one[key]);
  const foundAt = tellings.map((one) => one.foundAt ?? null);
  const values = of("value").map((value) => JSON.stringify(value));
  return sql`unnest(${sql.array(of("repositoryId"), "bigint")}, ${sql.array(of("kind"), "text")}, ${sql.array(of("key"), "bigint")},
    ${sql.array(of("aspect"), "text")}, ${sql.array(values, "text")},
    ${sql.array(foundAt, "timestamptz")}) as x(r, kind, k, aspect, value, found_at)`;
}
