import { isDeepStrictEqual } from "node:util";
import { type Fields, isObject, type Json, objectOf } from "../../json.ts";
import { reference } from "../../kinds/contract/placeholders.ts";

/**
 * The one merge rule. Pure.
 *
 * A stored resource is a map of keys, each with the stamp of its observation. An observation replaces the keys that it
 * knows better. Representations send different keys (a webhook's issue has no `closed_by`, a listed pull request no
 * `merged`). So the rule works key by key: a key that was not sent is kept.
 */
export interface Stamp {
  /** The resource's own `updated_at`, in ms; 0 where upstream sends none. */
  updatedAt: number;
  /** When it was seen, by our clock, in ms: the start of a read, the receipt of a delivery. */
  seenAt: number;
  /** Read from upstream, and so true at that time; not pushed by a webhook, which may come late. */
  read: boolean;
}

export interface Observation {
  fields: Fields;
  stamp: Stamp;
  /** The observation says that the resource is deleted. */
  deleted: boolean;
  /**
   * - whole: one of upstream's representations of the resource; each leaves some keys out.
   * - single: the fullest representation, the answer to a request for this resource alone. A missing key is gone.
   * - partial: seen through a related resource. Its stamp is that of the whole only if `updated_at` is among its fields.
   */
  extent: "whole" | "single" | "partial";
  /**
   * A read that was made to compare. It wins over everything that was seen longer ago than replicas lag, whatever its
   * `updated_at`. Otherwise a row with a later `updated_at` than upstream ever had would stay wrong.
   */
  overrules?: boolean;
  /** We computed it from our own rows, so no replica can lag. */
  isOurs?: boolean;
  /** It was pushed long after its event: `VOLATILE` keys may have changed since. */
  isLate?: boolean;
  /** The values before the change of which an event tells, by their keys. */
  before?: Fields;
  /** Of a part of a pull request that does not show its commits: the head at which upstream showed it. */
  head?: string;
  /** Its `updated_at` lies ahead or is no time, and so does not say when it was true. A push may come at any time. */
  isUndated?: boolean;
}

export interface Stored {
  fields: Fields;
  stamp: Stamp;
  /** The stamps of the keys whose stamp is not the row's. */
  keyStamps: Record<string, Stamp>;
  /** By our clock, in ms; null while it exists. */
  deletedAt: number | null;
}

/**
 * - merged: `next` holds something new and is to be stored.
 * - known: the stored row says the same or something newer.
 * - conflict: the two contradict each other in `keys` and only upstream can tell; `next` may still hold other new keys.
 */
export type Folded =
  | { outcome: "merged"; next: Stored }
  | { outcome: "known" }
  | { outcome: "conflict"; next: Stored | null; keys: readonly string[] };

/** Our clock and upstream's may differ by this much before a date of upstream's counts as one of the future. */
export const CLOCKS_APART_MS = 5 * 60_000;

/**
 * The time by which a resource is ordered. An `updated_at` of the future, as imports and servers with a wrong clock
 * leave it, orders nothing: no later change would ever count as newer. The earliest time at which the observation may
 * have been true takes its place, since a lagging replica may have shown it after the next change.
 */
export function orderedAt(updatedAt: number, seenAt: number): number {
  return updatedAt > seenAt + CLOCKS_APART_MS ? seenAt - REPLICA_LAG_MS : updatedAt;
}

/** The clocks of our own machines may differ by this much before a time that one of them stored counts as unknown. */
export const OUR_CLOCKS_APART_MS = 60_000;

/**
 * When something was seen, by our clock. A stored time that lies ahead was taken while a clock ran ahead, and is
 * unknown: it counts as before all others. Otherwise it would decide until that time has come.
 */
export function knownTime(storedMs: number, nowMs: number): number {
  return storedMs > nowMs + OUR_CLOCKS_APART_MS ? 0 : storedMs;
}

/** A read may be answered by a replica that is this much behind a delivery. GitHub's replicas were seen 1-10 s late. */
export const REPLICA_LAG_MS = 10_000;

/**
 * When the answer to a write counts as seen: later than it was. The answer comes from where the change was made. So a
 * read through a lagging replica cannot win within the same second, and neither can a delivery of an earlier state.
 */
export function writtenAt(answeredAt: Date): Date {
  return new Date(answeredAt.getTime() + REPLICA_LAG_MS);
}

/**
 * A delivery that arrives this soon after its resource's `updated_at` is fresh: nothing newer is likely to be known.
 */
export const FRESH_MS = 5_000;

/**
 * Keys of a repository or milestone that move without its `updated_at`, in nearly every delivery. Asking upstream at
 * each conflict would cost a request a delivery. So the last seen value stands until the next catch-up reads it. Late
 * deliveries say nothing about these keys.
 */
export const VOLATILE: ReadonlySet<string> = new Set([
  "pushed_at",
  "open_issues_count",
  "open_issues",
  "closed_issues",
  "stargazers_count",
  "watchers_count",
  "watchers",
  "forks_count",
  "forks",
  "size",
]);

/** Keys that say who a repository is. Another repository may claim the same, so a push never changes them. */
const IDENTITY: ReadonlySet<string> = new Set(["id", "node_id", "name", "full_name", "owner"]);
/** Nothing ever changes these, so a push with another value is not worth a question. */
const LASTING: ReadonlySet<string> = new Set(["id", "node_id"]);

/** Keys that depend on who asks. A payload shows them as to a stranger, so it contradicts no read. */
const VIEWERS: ReadonlySet<string> = new Set(["user_view_type"]);

/**
 * Keys of a pull request that upstream works out only when it is asked. So two reads may differ though nothing has
 * changed.
 */
export const MERGEABILITY: ReadonlySet<string> = new Set([
  "mergeable",
  "rebaseable",
  "mergeable_state",
  "merge_commit_sha",
]);

/** Keys that every read shows if they have a value, even in lists. A missing key means no value. */
const SHOWN_IF_ANY: readonly string[] = ["parent_issue_url", "pinned_comment", "pin", "minimized", "in_reply_to_id"];

/** The stored keys that a read shows to be gone. */
export function goneKeys(
  stored: Pick<Stored, "fields">,
  { extent, stamp, fields }: Pick<Observation, "extent" | "stamp" | "fields">,
): string[] {
  if (extent === "partial" || !stamp.read) return [];
  return SHOWN_IF_ANY.filter((key) => key in stored.fields && !(key in fields));
}

/** A key that lists leave out, and the key that every representation shows when it changes. */
const CHANGES_WITH: readonly [key: string, shownBy: string][] = [["closed_by", "closed_at"]];

/**
 * The keys that still have the value from before a change that shows that they have a new one. Pull requests are left
 * out: the common question does not tell who closed one, so each would cost a read.
 */
export function outdatedKeys(before: Stored, now: Stored): string[] {
  if (isObject(now.fields.pull_request)) return [];
  return CHANGES_WITH.filter(
    ([key, shownBy]) =>
      key in before.fields &&
      typeof now.fields[shownBy] === "string" &&
      !sameValue(before.fields[shownBy], now.fields[shownBy]) &&
      isDeepStrictEqual(before.keyStamps[key] ?? before.stamp, now.keyStamps[key] ?? now.stamp),
  ).map(([key]) => key);
}

/**
 * Whether the observation is of something else under the same key, such as the issue with this number of a repository
 * that has the same name now.
 */
function contradicts(stored: Stored, seen: Observation): boolean {
  const [known, shown] = [stored.fields.id, seen.fields.id];
  if (typeof known !== "number" || typeof shown !== "number" || known === shown) return false;
  // A read that was made to compare asks by the repository's id, and a push may have invented the stored one.
  return !(seen.stamp.read && (seen.overrules || !(stored.keyStamps.id ?? stored.stamp).read));
}

/** Folds an observation into what is stored, never backwards. */
export function fold(stored: Stored | undefined, seen: Observation): Folded {
  if (!stored)
    return isBareTombstone(seen) || isTooLittle(seen)
      ? { outcome: "known" }
      : { outcome: "merged", next: firstSeen(seen) };
  if (contradicts(stored, seen))
    return seen.stamp.read ? { outcome: "conflict", next: null, keys: ["id"] } : { outcome: "known" };
  if (stored.deletedAt !== null) return foldIntoTombstone({ ...stored, deletedAt: stored.deletedAt }, seen);
  if (seen.deleted) return { outcome: "merged", next: { ...stored, deletedAt: seen.stamp.seenAt } };
  return foldKeys(stored, seen);
}

/** The deletion of an unseen resource leaves nothing to keep. */
function isBareTombstone({ deleted, fields }: Observation): boolean {
  return deleted && Object.keys(fields).length === 0;
}

/**
 * A partial observation of an unknown resource is ignored: the whole resource will come, and this part will be read
 * again.
 */
function isTooLittle({ extent, fields }: Observation): boolean {
  return extent === "partial" && !("title" in fields);
}

function firstSeen(seen: Observation): Stored {
  const { fields, stamp, deleted } = seen;
  const deletedAt = deleted ? stamp.seenAt : null;
  if (tellsTime(seen)) return { fields, stamp, keyStamps: {}, deletedAt };
  // Any observation of the whole resource is better than this partial one, but only key by key.
  const keyStamps = Object.fromEntries(Object.keys(fields).map((key) => [key, stamp]));
  return { fields, stamp: { ...stamp, updatedAt: 0 }, keyStamps, deletedAt };
}

/** Whether the observation carries the resource's own `updated_at`. */
function tellsTime({ extent, fields }: Observation): boolean {
  return extent !== "partial" || "updated_at" in fields;
}

/** A tombstone stands until a read that cannot be a stale replica's shows the resource alive. */
function foldIntoTombstone(stored: Stored & { deletedAt: number }, seen: Observation): Folded {
  const isAlive =
    !seen.deleted &&
    seen.extent !== "partial" &&
    seen.stamp.read &&
    seen.stamp.seenAt > stored.deletedAt + REPLICA_LAG_MS;
  if (!isAlive) return { outcome: "known" };
  const folded = foldKeys({ ...stored, deletedAt: null }, seen);
  return folded.outcome === "known" ? { outcome: "merged", next: { ...stored, deletedAt: null } } : folded;
}

function foldKeys(stored: Stored, seen: Observation): Folded {
  if (repeats(stored, seen)) return { outcome: "known" };
  const fields: Fields = { ...stored.fields };
  const keyStamps: Record<string, Stamp> = { ...stored.keyStamps };
  const isNewer = tellsTime(seen) && order(seen, stored.stamp) === "newer";
  const stamp = isNewer ? seen.stamp : stored.stamp;
  let hasChanged = false;
  const conflicting: string[] = [];
  const isAllThereIs = seen.extent === "single" || hasBecomePull(stored, seen);
  const isRepository = "full_name" in stored.fields;
  const isAccount = "login" in stored.fields;
  const gone = goneKeys(stored, seen);

  if (isNewer) {
    // Keys that this observation lacks keep the stamps under which they were seen.
    for (const key of Object.keys(stored.fields)) {
      if (key in seen.fields) continue;
      keyStamps[key] ??= stored.stamp;
      if (!(isAllThereIs || gone.includes(key)) || order(seen, keyStamps[key]) !== "newer") continue;
      delete fields[key];
      delete keyStamps[key];
      hasChanged = true;
    }
  }
  for (const [key, value] of Object.entries(seen.fields)) {
    const isSame = key in stored.fields && sameValue(stored.fields[key], value);
    const known = stored.keyStamps[key] ?? stored.stamp;
    const access = isSame ? null : accessChange(key, stored.fields[key], value);
    // Only of an id it counts who has shown the same one last: see `contradicts`.
    const isLasting = LASTING.has(key) && (key === "id" || !isSame);
    const isIdentity = isLasting || (isRepository && IDENTITY.has(key));
    // Anybody's deliveries show an account. Once a read has shown it, they bring nothing that reads do not.
    const isForeign = isAccount && stored.stamp.read && !(key in stored.fields);
    const isKept = !seen.stamp.read && (isForeign || (isIdentity && (key in stored.fields || isRepository)));
    const verdict = isIdentity
      ? identityOrder(seen, known, { key, isKnown: key in stored.fields })
      : key in stored.fields
        ? access
          ? accessOrder(seen, known, access)
          : order(seen, known)
        : "newer";
    const isLater = seen.stamp.seenAt > known.seenAt;
    // An event that changed just what is stored tells what came next, also of what carries no time.
    const isNext =
      !isSame && seen.before !== undefined && key in seen.before && sameValue(stored.fields[key], seen.before[key]);
    const isShown = access ? access === "closes" : VOLATILE.has(key) ? !seen.isLate : isNext || isFresh(seen.stamp);
    const isOfBefore = MERGEABILITY.has(key) && isUnknown(stored.fields[key]) && mayBeOfBefore(stored, seen, known);
    const wins =
      !isKept && !isOfBefore && (verdict === "newer" || (verdict === "conflict" && !isSame && isLater && isShown));
    const isInDoubt =
      verdict === "conflict" || (key in stored.fields && mayLagBehind(seen, known) && !MERGEABILITY.has(key));
    if (isInDoubt && !isSame && !VOLATILE.has(key) && !VIEWERS.has(key)) conflicting.push(key);
    // Webhooks embed shared resources with fewer keys than reads; the shape that upstream serves is that of a read.
    const isShapeKnown = wins || (verdict === "conflict" && !known.read);
    const isReshaped =
      isSame && seen.stamp.read && isShapeKnown && JSON.stringify(fields[key]) !== JSON.stringify(value);
    if (isReshaped) {
      fields[key] = value;
      hasChanged = true;
    }
    if (wins) {
      // An equal value of the same second is nothing new, and most values are equal when they are read again.
      const isLearnt = !isSame || (!LASTING.has(key) && seen.stamp.updatedAt > known.updatedAt);
      if (isNewer) delete keyStamps[key];
      else if (isLearnt) keyStamps[key] = seen.stamp;
      if (isLearnt) hasChanged = true;
      if (!isSame) fields[key] = seen.stamp.read ? value : withShapesOf(stored.fields[key], value);
    } else if (isNewer) {
      keyStamps[key] = known;
    }
  }

  const next: Stored = { fields: ordered(fields, stored.fields, seen), stamp, keyStamps, deletedAt: null };
  if (conflicting.length > 0) return { outcome: "conflict", next: hasChanged ? next : null, keys: conflicting };
  return hasChanged ? { outcome: "merged", next } : { outcome: "known" };
}

/**
 * Fields in the order in which they are served. One of upstream's representations that brings a key orders all of its
 * keys; of a part, each new key stands behind the one that it follows there. So do stored keys that were not sent.
 */
function ordered(fields: Fields, stored: Fields, seen: Observation): Fields {
  if (Object.keys(fields).every((key) => key in stored)) return fields;
  const [leading, other] = seen.extent === "partial" ? [stored, seen.fields] : [seen.fields, stored];
  const keys = Object.keys(leading).filter((key) => key in fields);
  let next = keys.length;
  for (const key of Object.keys(other)) {
    const at = keys.indexOf(key);
    if (at >= 0) next = at + 1;
    else if (key in fields) keys.splice(next++, 0, key);
  }
  return Object.fromEntries(keys.map((key) => [key, fields[key] as Json]));
}

/**
 * Whether each key of the observation is stored already with the same value, by an observation with the same or a newer
 * `updated_at`. Then the order does not matter, and nothing is to be merged. Most observations are such repeats (each
 * payload shows its sender), and this check takes a fraction of the time.
 */
function repeats(stored: Stored, { fields, stamp, extent }: Observation): boolean {
  if (extent === "single") return false;
  for (const key in fields) {
    const value = fields[key];
    const known = stored.fields[key];
    if (known === undefined || (stored.keyStamps[key] ?? stored.stamp).updatedAt < stamp.updatedAt) return false;
    if (known !== value && (typeof value !== "object" || JSON.stringify(known) !== JSON.stringify(value))) return false;
  }
  const access = { extent, stamp, fields };
  return !hasBecomePull(stored, access) && goneKeys(stored, access).length === 0;
}

/**
 * Whether the issue was made a pull request. Upstream then no longer shows some of its keys. Lists leave out no other
 * keys.
 */
function hasBecomePull(
  stored: Stored,
  { extent, stamp, fields }: Pick<Observation, "extent" | "stamp" | "fields">,
): boolean {
  return extent === "whole" && stamp.read && "pull_request" in fields && !("pull_request" in stored.fields);
}

/** Two changes in one second: the later arrival is shown, and upstream is asked nevertheless. */
function isFresh({ read, updatedAt, seenAt }: Stamp): boolean {
  return !read && updatedAt > 0 && seenAt - updatedAt < FRESH_MS;
}

function order({ stamp, overrules, isUndated }: Observation, known: Stamp): "newer" | "older" | "conflict" {
  if (overrules && stamp.read && stamp.seenAt > known.seenAt + REPLICA_LAG_MS) return "newer";
  if (isUndated && !stamp.read) return "conflict";
  return compare(stamp, known);
}

/**
 * The order for what something is. A push shows it only of what is unknown. A read decides over what a push told,
 * whatever moment the push claimed.
 */
function identityOrder(
  seen: Observation,
  known: Stamp,
  { key, isKnown }: { key: string; isKnown: boolean },
): "newer" | "older" | "conflict" {
  if (!isKnown) return "newer";
  const verdict = order(seen, known);
  if (seen.stamp.read) return !known.read && seen.stamp.seenAt > known.seenAt ? "newer" : verdict;
  return verdict === "older" || LASTING.has(key) ? "older" : "conflict";
}

/**
 * Whether two reads of the same second of `updated_at` are so close that a lagging replica may have answered one of
 * them. The order of storing does not matter. The later read is shown. If the two contradict each other, upstream is
 * asked again.
 */
function mayLagBehind({ stamp, isOurs }: Observation, known: Stamp): boolean {
  const isClose = Math.abs(stamp.seenAt - known.seenAt) <= REPLICA_LAG_MS;
  return stamp.read && !isOurs && known.read && stamp.updatedAt === known.updatedAt && isClose;
}

function isUnknown(value: Json | undefined): boolean {
  return value === null || value === "unknown";
}

/**
 * Whether a lagging replica may have shown the mergeability of the commits before a push in the same second. Upstream forgets
 * it with each push, so what was unknown a moment ago is known again only for the same commits.
 */
function mayBeOfBefore(stored: Stored, seen: Observation, known: Stamp): boolean {
  const head = seen.head ?? objectOf(seen.fields.head).sha;
  return mayLagBehind(seen, known) && head !== undefined && head !== objectOf(stored.fields.head).sha;
}

/** Ordered from the fewest people who may see a repository to the most. */
const VISIBILITIES: readonly string[] = ["private", "internal", "public"];

/**
 * Whether a value opens a repository to more people than the known value, or closes it to some; null: it does neither.
 */
function accessChange(key: string, known: Json | undefined, value: Json): "opens" | "closes" | null {
  if (key === "private") return value === true ? "closes" : "opens";
  if (key !== "visibility") return null;
  return VISIBILITIES.indexOf(String(value)) < VISIBILITIES.indexOf(String(known)) ? "closes" : "opens";
}

/**
 * The order for who may see a repository. A push closes at once, and never opens: it is only signed, and may be late. A
 * read that began later decides, whatever `updated_at` says. A read opens a repository only if no replica's lag can
 * explain its answer.
 */
function accessOrder(seen: Observation, known: Stamp, change: "opens" | "closes"): "newer" | "older" | "conflict" {
  const verdict = order(seen, known);
  const { read, seenAt } = seen.stamp;
  if (!read)
    return change === "closes"
      ? verdict === "newer"
        ? "newer"
        : "conflict"
      : verdict === "older"
        ? "older"
        : "conflict";
  return seenAt > known.seenAt + (change === "opens" ? REPLICA_LAG_MS : 0) ? "newer" : verdict;
}

/** The newer of two stamps. "conflict": nothing shows which is newer. */
function compare(a: Stamp, b: Stamp): "newer" | "older" | "conflict" {
  if (a.updatedAt !== b.updatedAt) return a.updatedAt > b.updatedAt ? "newer" : "older";
  if (a.read && b.read) return a.seenAt === b.seenAt ? "conflict" : a.seenAt > b.seenAt ? "newer" : "older";
  if (a.read && a.seenAt > b.seenAt + REPLICA_LAG_MS) return "newer";
  if (b.read && b.seenAt > a.seenAt + REPLICA_LAG_MS) return "older";
  return "conflict";
}

/** Whether two stripped values mean the same. The shape in which a shared resource was sent does not count. */
export function sameValue(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (typeof a === "string" && typeof b === "string") {
    const [left, right] = [reference(a), reference(b)];
    return left !== null && right !== null && left.kind === right.kind && left.id === right.id;
  }
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    return (
      Array.isArray(a) &&
      Array.isArray(b) &&
      a.length === b.length &&
      a.every((element, index) => sameValue(element, b[index]))
    );
  }
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => key in b && sameValue(a[key], b[key]));
}

/** The new value, with the known shapes kept for resources that both values embed. */
function withShapesOf(known: Json | undefined, value: Json): Json {
  if (typeof value === "string") return known !== undefined && sameValue(known, value) ? known : value;
  if (!isObject(value) || !isObject(known)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, withShapesOf(known[key], part)]));
}
