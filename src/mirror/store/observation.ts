import { createHash } from "node:crypto";
import { type Fields, isObject, type Json, objectOf, wholeOf } from "../../json.ts";
import { type Kind, numberInAddress, type ResourceKey } from "../../kinds/contract/kind.ts";
import { type SharedKind, withoutLogin } from "../../kinds/contract/placeholders.ts";
import { isPullRequest } from "../../kinds/issue/kind.ts";
import { resourceOf } from "../../kinds/registry.ts";
import { botLogin, withLogin } from "../documents/bots.ts";
import { fitting } from "./fitting.ts";
import { type Observation, orderedAt } from "./merge-rule.ts";
import { type DocumentHome, type ShapeIds, type SharedResource, strip } from "./template.ts";

/** One observation of one resource, ready to be merged. */
export interface Seen extends ResourceKey, Observation {}

/** Where and when a representation was seen. */
export interface Sighting {
  /** Upstream's REST address without a trailing slash. */
  api: string;
  /** The repository that it belongs to; absent for users. `htmlUrl` is the address of its page. */
  repository?: { id: number; fullName: string; htmlUrl: string | null };
  seenAt: Date;
  /** Read from upstream (true) or pushed by a webhook (false). */
  read: boolean;
  deleted?: boolean;
  /** The answer to a request for this resource alone. */
  isSingle?: boolean;
  /** Some of its fields, of which we made a representation: it may lack what all of upstream's have. */
  isPart?: boolean;
  /** Pushed long after its event. */
  isLate?: boolean;
  /** Of the resource itself, as in `Observation.before`. */
  before?: Fields;
  /** Those of all that is read together. Absent: each document is read alone. */
  shapeIds?: ShapeIds;
}

/** All observations in one representation: the resource itself, the resources embedded in it, and their shapes. */
export interface Observed {
  seen: Seen[];
  shapes: Map<string, string>;
}

const SHARED_KINDS: Readonly<Record<SharedKind, Kind>> = { u: "user", r: "repository", l: "label", m: "milestone" };

/**
 * Takes apart a resource as upstream's REST or a webhook sent it.
 * @throws InvalidRepresentationError when a key without which it cannot be stored is missing
 */
export function observe(kind: Kind, representation: Json, at: Sighting): Observed {
  const resource = resourceOf(kind).taken(requireObject(kind, representation));
  if (kind === "pull_request") requireBase(resource, at);
  const home: DocumentHome =
    kind === "repository"
      ? { api: at.api, fullName: requireString(kind, resource, "full_name") }
      : documentHome(resource, at);
  const stripped = strip(resource, home, at.shapeIds);
  const { shared, shapes } = stripped;
  const bot = kind === "user" && resource.type === "Bot" ? botLogin(resource) : null;
  const named = bot === null ? stripped.fields : withLogin(stripped.fields, bot);
  const fields = kind === "user" ? shownToOthers(named) : named;
  if (kind === "review") unifyReview(fields, at);
  // Webhooks show the whole suite of a check run, reads its id.
  if (kind === "check_run" && isObject(fields.check_suite)) fields.check_suite = { id: fields.check_suite.id ?? null };

  const seen = shared.map((found) => sharedSeen(found, at));
  const main: Seen = {
    kind,
    repositoryId: repositoryIdOf(kind, at),
    key: keyIn(kind, fields),
    fields,
    ...timedOf(kind, fields, at),
    deleted: at.deleted ?? false,
    extent: at.isPart ? "partial" : at.isSingle ? "single" : "whole",
    isLate: at.isLate ?? false,
    ...(at.before && { before: at.before }),
  };
  if (!at.isPart) requireColumns(main);
  seen.push(main, ...projections(main));
  return { seen, shapes };
}

/** A row of a list that is held whole, cut like a document, and the accounts embedded in it. */
export function observeListed(row: Fields, at: Sighting): { fields: Fields; embedded: Observed } {
  const { fields, shared, shapes } = strip(row, documentHome(row, at), at.shapeIds);
  return { fields, embedded: { seen: shared.map((found) => sharedSeen(found, at)), shapes } };
}

/**
 * A webhook names its repository. A read may show it under another name than ours: it was renamed and we have not
 * heard, or the replica lags behind. So the name comes from the URL in the answer.
 */
function documentHome({ url, pull_request_url: pullUrl }: Fields, { api, repository, read }: Sighting): DocumentHome {
  if (!repository) return { api };
  const { fullName } = repository;
  const htmlUrl = repository.htmlUrl ?? undefined;
  const address = typeof url === "string" ? url : pullUrl;
  const below = `${api}/repos/`;
  if (!read || typeof address !== "string" || !address.startsWith(below)) return { api, fullName, htmlUrl };
  const shownName = address.slice(below.length).split("/", 2).join("/");
  if (shownName === fullName || !htmlUrl?.endsWith(fullName)) return { api, fullName: shownName, htmlUrl };
  return { api, fullName: shownName, htmlUrl: htmlUrl.slice(0, -fullName.length) + shownName };
}

/** Observations that overrule what is stored: see `Observation.overrules`. With `which`, those alone do. */
export function overruling({ seen, shapes }: Observed, which: (one: Seen) => boolean = () => true): Observed {
  return { seen: seen.map((one) => (which(one) ? { ...one, overrules: true } : one)), shapes };
}

export function joinObserved(parts: Observed[]): Observed {
  return { seen: parts.flatMap((part) => part.seen), shapes: new Map(parts.flatMap((part) => [...part.shapes])) };
}

/** An account that reads itself is shown as its own. What is stored is shown to others. */
function shownToOthers(account: Fields): Fields {
  return account.user_view_type === undefined ? account : { ...account, user_view_type: "public" };
}

function sharedSeen({ kind, id, fields, isNamedElsewhere }: SharedResource, at: Sighting): Seen {
  const name = SHARED_KINDS[kind];
  // Such a bot is stored only if the mirror does not know it.
  const timed = isNamedElsewhere ? { stamp: { updatedAt: 0, seenAt: 0, read: false } } : timedOf(name, fields, at);
  return {
    kind: name,
    repositoryId: repositoryIdOf(name, at),
    key: id,
    fields: name === "user" ? shownToOthers(fields) : fields,
    ...timed,
    deleted: false,
    extent: "whole",
    isLate: at.isLate ?? false,
  };
}

/**
 * A pull request is seen from two sides; these keys mean the same on both. `updated_at` belongs to each side, and a
 * read shows it. A change moves both sides to the same second (in a recorded history, 106 of 109). So the time that a
 * webhook gives one side is used for the other.
 */
const COMMON_KEYS: readonly string[] = [
  "number",
  "title",
  "user",
  "state",
  "locked",
  "active_lock_reason",
  "body",
  "created_at",
  "closed_at",
  "assignee",
  "assignees",
  "labels",
  "milestone",
  "author_association",
  "draft",
  "comments",
];

function projections(main: Seen): Seen[] {
  if (main.deleted || main.extent === "partial") return [];
  const common = picked(main.fields, ...COMMON_KEYS, ...(main.stamp.read ? [] : ["updated_at"]));
  if (main.kind === "issue" && isPullRequest(main.fields))
    return [{ ...main, kind: "pull_request", fields: common, extent: "partial" }];
  if (main.kind !== "pull_request") return [];
  const pull_request = picked(main.fields, "url", "html_url", "diff_url", "patch_url", "merged_at");
  return [{ ...main, kind: "issue", fields: { ...common, pull_request }, extent: "partial" }];
}

/** The fields with these keys, as far as they are present. */
function picked(fields: Fields, ...keys: string[]): Fields {
  const found: Fields = {};
  for (const key of keys) {
    const value = fields[key];
    if (value !== undefined) found[key] = value;
  }
  return found;
}

/** @throws InvalidRepresentationError for a pull request that goes to another repository than it was asked of */
function requireBase({ base }: Fields, { repository }: Sighting): void {
  const { id } = objectOf(objectOf(base).repo);
  if (repository && typeof id === "number" && id !== repository.id)
    throw new InvalidRepresentationError(`This pull_request is of the repository ${id}, and not of ${repository.id}`);
}

/**
 * Webhooks spell the state of a review in lower case, and no text as null. Reads say "". Webhooks were seen to call a
 * bot by a bare name, where reads show a review's author by the name of its App.
 */
function unifyReview(fields: Fields, { read }: Sighting): void {
  if (!read && fields.body === null) fields.body = "";
  if (!read && typeof fields.user === "string") fields.user = withoutLogin(fields.user);
  if (typeof fields.state === "string") fields.state = fields.state.toUpperCase();
}

function timedOf(kind: Kind, fields: Fields, at: Sighting): Pick<Observation, "stamp" | "isUndated"> {
  const { isVersioned, progressOf } = resourceOf(kind);
  const seenAt = at.seenAt.getTime();
  if (progressOf) return { stamp: { updatedAt: progressOf(fields), seenAt, read: at.read } };
  const { updated_at: sent } = fields;
  if (!isVersioned || sent === undefined) return { stamp: { updatedAt: 0, seenAt, read: at.read } };
  const shown = typeof sent === "string" ? Date.parse(sent) : Number.NaN;
  const updatedAt = Number.isNaN(shown) ? 0 : orderedAt(shown, seenAt);
  return { stamp: { updatedAt, seenAt, read: at.read }, isUndated: updatedAt !== shown };
}

function repositoryIdOf(kind: Kind, at: Sighting): number {
  if (resourceOf(kind).isGlobal) return 0;
  if (!at.repository) throw new InvalidRepresentationError(`This ${kind} came without its repository`);
  return at.repository.id;
}

/** A time may be null, as any value may be that no column holds. An issue or pull request without an id is not served. */
function requireColumns({ kind, fields, stamp }: Seen): void {
  const { needed, parent, keyColumn, columnTypes } = resourceOf(kind);
  for (const key of needed) {
    const isLacking = fields[key] === null ? columnTypes[key]?.type !== "timestamptz" : fields[key] === undefined;
    if (isLacking) throw new InvalidRepresentationError(`This ${kind} came without ${key}`);
  }
  // Payloads say so themselves: see `lackedIdentity`.
  const { id } = columnTypes;
  if (keyColumn === "number" && stamp.read && id && fitting(fields.id ?? null, id) === null)
    throw new InvalidRepresentationError(`This ${kind} came without id`);
  if (parent) requireNumberIn(kind, fields, parent.address);
}

/** Upstream sent JSON that lacks what such a resource must have. */
export class InvalidRepresentationError extends Error {
  override name = "InvalidRepresentationError";
}

/** @throws InvalidRepresentationError, as does every reader here */
export function requireList(path: string, value: Json | undefined): Json[] {
  if (Array.isArray(value)) return value;
  throw new InvalidRepresentationError(`Upstream answers ${path} with something that is not a list`);
}

export function requireObject(kind: Kind, value: Json | undefined): Fields {
  if (isObject(value)) return value;
  throw new InvalidRepresentationError(`This ${kind} is not an object`);
}

export function requireString(kind: Kind, fields: Fields, key: string): string {
  const value = fields[key];
  if (typeof value !== "string") throw new InvalidRepresentationError(`This ${kind} came without ${key}`);
  return value;
}

export function requireRepository(value: Json | undefined): { id: number; fullName: string } {
  const fields = requireObject("repository", value);
  return { id: keyIn("repository", fields), fullName: requireString("repository", fields, "full_name") };
}

/** The largest number of an issue or pull request that Postgres' `integer` holds. */
export const MOST_NUMBER = 2 ** 31 - 1;

/** The key of a resource: the number of an issue or pull request, otherwise upstream's id. */
export function keyIn(kind: Kind, representation: Json | undefined): number {
  const fields = requireObject(kind, representation);
  if (kind === "label" && (fields.id ?? null) === null) return keyOfName(requireString(kind, fields, "name"));
  const key = findKeyIn(kind, fields);
  if (key !== null) return key;
  throw new InvalidRepresentationError(`This ${kind} came without ${resourceOf(kind).keyColumn}`);
}

/** The same. Null: it has no such key. Pure. */
export function findKeyIn(kind: Kind, representation: Json | undefined): number | null {
  const value = wholeOf(objectOf(representation)[resourceOf(kind).keyColumn]);
  // A number is half of a primary key, which no other number can stand for.
  return value !== null && resourceOf(kind).keyColumn === "number" && value > MOST_NUMBER ? null : value;
}

/** The number or id at the end of an address, as its column takes it. Resources name their parent only by its address. */
export function requireNumberIn(kind: Kind, fields: Fields, key: string): number {
  const number = numberInAddress(fields[key]);
  const { parent, columnTypes } = resourceOf(kind);
  const most = parent && columnTypes[parent.column]?.type === "bigint" ? Number.MAX_SAFE_INTEGER : MOST_NUMBER;
  if (number === null || number > most) throw new InvalidRepresentationError(`This ${kind} came without ${key}`);
  return number;
}

/**
 * A key made of a label's name. Labels had no id before 2017, and those of an old enterprise server still have none.
 */
function keyOfName(name: string): number {
  return -createHash("sha256").update(name.toLowerCase()).digest().readUIntBE(0, 6);
}
