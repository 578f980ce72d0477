import type { PgTable } from "drizzle-orm/pg-core";
import { type ColumnType, columnsOf } from "../../../db/schema/columns.ts";
import type { ResourceKind } from "../../../db/schema/states.ts";
import type { SQL } from "../../../db/sql.ts";
import type { MirrorPart } from "../../config/parts.ts";
import { type Fields, type Json, numberOf, objectOf } from "../../json.ts";
import { literalOf, referenceId } from "./placeholders.ts";
import type { Right } from "./rights.ts";

export type Kind = ResourceKind;

/** `key`: upstream's id, or the number of an issue or pull request. `repositoryId`: 0 outside repositories. */
export interface ResourceKey {
  kind: Kind;
  repositoryId: number;
  key: number;
}

/** What the mirror knows of one kind of resource. Each has a folder here, and `registry.ts` lists them. */
export interface Resource {
  kind: Kind;
  /** The right to see it. Null: everybody sees it. The key of an issue may be a pull request's. */
  right: Right | null;
  /** The part of a repository that it belongs to. Null: it is mirrored of every repository. */
  part: MirrorPart | null;
  /** Whether it lies outside of repositories, as accounts do. */
  isGlobal: boolean;
  table: PgTable;
  /** The table's columns, by their names in Postgres. */
  columnTypes: Readonly<Record<string, ColumnType>>;
  /** The last column of the primary key. In tables with a `repository_id`, that column comes first. */
  keyColumn: "id" | "number";
  /** The columns whose values are not simply the stripped field of the same name. */
  columns: (fields: Fields) => Record<string, Json>;
  /** The keys without which it cannot be stored. */
  needed: readonly string[];
  /** Keys that upstream sends only for a single resource; they are stored in the column `detail`. */
  detailKeys: ReadonlySet<string>;
  /** Whether the table has a column `body` for that text. */
  hasBody: boolean;
  /** Whether `updated_at` can order two observations of this kind. Embedded users and labels have no `updated_at`. */
  isVersioned: boolean;
  /** Orders two observations where upstream sends no `updated_at`; stored in the column `progress`. */
  progressOf?: (fields: Fields) => number;
  upstream: ResourceUpstream;
  /** The list of all of a repository's resources of this kind, where the mirror holds that whole. */
  list?: ResourceList;
  /** Its list under each of its parents, where the mirror holds that whole. */
  listBelow?: ListBelow;
  /** The resource that it stands under. */
  parent?: KindParent;
  /** What is taken of a document: what another row holds is left out. */
  taken: (document: Fields) => Fields;
  /** How webhooks show its document, which differs from reads. */
  inPayload: (document: Fields) => Fields;
  /**
   * The key that a document in a webhook lacks and without which nothing could ask for the resource again, or GraphQL
   * show it; null: none.
   */
  lackedIdentity: (document: Fields) => string | null;
  /** How upstream tells of its changes. Absent: by no event. */
  events?: ResourceEvents;
}

/** Where upstream shows resources of a kind. */
interface ResourceUpstream {
  /**
   * The path of a read that shows it, below `/repositories/{id}` or, for what lies outside of repositories, as a whole.
   * Absent: upstream does not show it by its key. `number`: the value of `numberColumn`.
   */
  path?: (key: number, number: number | null) => string;
  /** The column whose value the path needs beside the key. */
  numberColumn?: string;
  /**
   * Rows of another kind with the same `numberColumn` that upstream tells together with one of this kind. One that they
   * name in `column` and that the mirror lacks was told by a webhook that was lost.
   */
  namedBy?: { kind: Kind; table: PgTable; column: string };
  /** The phase of a first copy that reads it. A mirror upstream says by this name that it lacks the kind. */
  phase?: string;
  /** The key under which lists have their rows, beside a count. Absent: lists are arrays. */
  rows?: string;
  /** Whether upstream shows it only while the repository's pull requests are switched on. */
  isOfPulls?: boolean;
}

/** A list that the mirror reads to its end when it is due. It serves the list once it has read it. */
export interface ResourceList {
  /** One row is the list of one repository: when it was told of and read, and whether a read of it was cut off. */
  table: PgTable;
  /** Below `/repositories/{id}`. */
  path: string;
  /** How often upstream is asked for it in any case, in ms. Unchanged that costs nothing. */
  everyMs: number;
  /**
   * How often in the hour after an event, and while the list has such a row `t`, since upstream then changes more than it
   * tells.
   */
  moving?: { everyMs: number; rows: SQL };
  /** How often it is read at most because somebody asked for what has changed since it was last read. Absent: it is not. */
  askedEveryMs?: number;
  /** Rows `t` that upstream shows only to those who may push; the table's column says whether it shows them to us. */
  hidden?: { rows: SQL; column: string };
  /**
   * The list begins with the newest row and is long. It is read up to a page that shows nothing new, and this often, in ms,
   * to its end. The table's column `walked_at` says when it was.
   */
  newestFirst?: {
    wholeEveryMs: number;
    /**
     * Upstream may list no more than so many pages. The table's column `begins_at` says from when on all rows are here.
     */
    mostPages?: number;
  };
}

/** A list under a resource, such as the statuses of a deployment. The table has one row for each such list. */
export interface ListBelow {
  /** `parent_id` says under which resource it is, `read_at` when it was read. */
  table: PgTable;
  /** Below `/repositories/{id}`. */
  path: (parent: number) => string;
  /** Further parameters of the path. */
  query?: string;
  /** Under how many of the newest resources it is read. */
  most: number;
  /**
   * It is read only once somebody asks for it, and kept up from then on. Among the keys of a mark of the resource, this one
   * asks for the list. Absent: it is read anyway.
   */
  askedAs?: string;
  /** Whether the resource had no rows yet when a webhook showed it so. All that come afterwards are told. */
  isNew: (parent: Fields) => boolean;
  /** Of the resource `p` and the list `l`: nothing was added since the list was read that was not told. */
  isCurrent: SQL;
}

interface KindParent {
  kind: Kind;
  /** The key of the parent's address, which ends in its number or id. */
  address: string;
  /** The column that holds that. */
  column: string;
  /** The kind under the same key that takes it along when upstream deletes it. Null: it stays. */
  buriedWith: Kind | null;
}

const NO_KEYS: ReadonlySet<string> = new Set();

export function resource(
  kind: Kind,
  table: PgTable,
  own: Partial<Omit<Resource, "kind" | "table" | "columnTypes">> = {},
): Resource {
  const columnTypes = columnsOf(table);
  return {
    ...{
      kind,
      table,
      columnTypes,
      right: null,
      part: null,
      isGlobal: false,
      keyColumn: "id",
      columns: () => ({}),
      needed: [],
    },
    ...{
      detailKeys: NO_KEYS,
      hasBody: "body" in columnTypes,
      isVersioned: true,
      upstream: {},
      taken: (document) => document,
      inPayload: (document) => document,
      lackedIdentity: () => null,
    },
    ...own,
  };
}

/** Some webhooks leave out the state, which then follows from `closed_at`. */
export function stateOf(fields: Fields): Json {
  return fields.state ?? (fields.closed_at ? "closed" : "open");
}

/** `…/issues/5` → 5: upstream names the parent of a comment or review by address alone. */
export function numberInAddress(address: Json | undefined): number | null {
  const match = typeof address === "string" ? /\/(\d+)$/.exec(address) : null;
  return match ? Number(match[1]) : null;
}

// How upstream tells of changes.

/**
 * The webhook event of a kind, and which of its actions reports which change. The table is used both ways: to read what
 * a webhook tells, and to make the event of a change that no webhook told.
 */
export interface ResourceEvents {
  /** The name of the event. */
  event: string;
  /** The key of its subject in the payload. */
  in: string;
  /** The key that the subject is known by. */
  by: "id" | "number";
  /** The resources that each payload shows beside its subject, by their keys. */
  beside: Readonly<Record<string, Kind>>;
  /** Further keys of its payload that not every event has, by GitHub's OpenAPI description of webhooks. */
  ownKeys: readonly string[];
  /** The fields for which upstream sends change events, with how a stored value is read. Undefined: not known. */
  fields: Readonly<Record<string, FieldValue>>;
  /** The lists for whose members upstream sends such events. */
  lists: Readonly<Record<string, MemberList>>;
  /** By action. Actions that are not here report nothing that the mirror compares. */
  actions: Readonly<Record<string, Report>>;
  /** Whether nobody but its maker can see it yet. */
  isHidden?: (fields: Fields) => boolean;
  /** When it was made, by upstream's word. */
  madeAt: (fields: Fields) => Json | undefined;
  /** Who made it. */
  maker: (fields: Fields) => Json | undefined;
  /** The issue that it is, or stands under, and that a transfer takes along. */
  issueNumber?: (fields: Fields, key: number) => number | null;
  /** What it gets only after its first event, with the value before. Upstream sends a change event for each. */
  sinceBirth: (fields: Fields) => FieldChange[];
  /** What of that is told of one that is found late: each change, only that it was closed, or nothing. */
  toldSinceBirth: "each" | "closing" | "nothing";
  /** A former value in the payload's `changes`. */
  former: (field: string, was: Json) => Json;
  /** Further keys of the payload that tells a change. */
  more?: (action: string, was: Json, now: Json) => Fields;
  /** Further keys of each payload. */
  extra?: (key: number) => Fields;
  /** A resource of which the payload shows more than the document: its kind, its id, and the form in which it stands. */
  embedded?: { kind: Kind; key: string; id: (fields: Fields) => number | null; shown: (document: Fields) => Fields };
}

/** A stored value as events compare it: text, number, boolean or null. */
export type FieldValue = (value: Json) => Json | undefined;

/** A field, or a member of a list such as `label 7`, with its value before a change. */
export type FieldChange = [field: string, was: Json];

/** A member of a list: the word for one, which is its key in the payload, and its kind. */
interface MemberList {
  member: string;
  kind: Kind;
}

/** What an action reports of its subject. */
export type Report =
  /** It is there from now on, or no more. */
  | { exists: boolean }
  /** It is shown for the first time, though nobody is told that it was made. */
  | { isFirst: true }
  /** The texts that the payload's `changes` name. */
  | { changes: true }
  /** A field's new value, which is always this one, */
  | { field: string; value: Json }
  /** or which the subject shows, */
  | { field: string; isShown: true }
  /** or which is the id of a resource of this kind under the same key of the payload. */
  | { field: string; beside: Kind }
  | { member: string; isMember: boolean };

/** A field's value as events compare it; undefined: not known. Pure. */
export function fieldValue({ fields }: ResourceEvents, field: string, value: Json | undefined): Json | undefined {
  // Payloads name fields as they like.
  const read = Object.hasOwn(fields, field) ? fields[field] : undefined;
  return value === undefined ? undefined : (read ?? asShown)(value);
}

export const exists = (is: boolean): Report => ({ exists: is });
export const sets = (field: string, value: Json): Report => ({ field, value });
export const shows = (field: string): Report => ({ field, isShown: true });
export const refers = (field: string, beside: Kind): Report => ({ field, beside });
export const adds = (member: string): Report => ({ member, isMember: true });
export const removes = (member: string): Report => ({ member, isMember: false });
export const CHANGES: Report = { changes: true };

/** A kind's events, with what most kinds have in common. */
export function resourceEvents(
  own: Pick<ResourceEvents, "event" | "in" | "fields" | "actions"> & Partial<ResourceEvents>,
): ResourceEvents {
  return {
    by: "id",
    beside: {},
    ownKeys: [],
    lists: {},
    madeAt: ({ created_at }) => created_at,
    maker: ({ user }) => user,
    sinceBirth: () => [],
    toldSinceBirth: "nothing",
    former: (_field, was) => ({ from: was === "" ? null : was }),
    ...own,
  };
}

/** A value that is compared as upstream sent it. */
export const asShown: FieldValue = (value) => (typeof value === "string" ? literalOf(value) : value);
/** A text for which both null and "" mean "no text". */
export const mayBeEmpty: FieldValue = (value) => (typeof value === "string" ? literalOf(value) : "");
/** The id of the resource that a field refers to, in a stored document or a payload; null: it refers to none. */
export const referredId: FieldValue = (value) => referenceId(value) ?? numberOf(objectOf(value).id);
/** What a check is at: upstream sends an event when it has ended. */
export const isCompleted: FieldValue = (value) => value === "completed";

/** The ids of a list's members; undefined: the list is not known. */
export function membersOf(fields: Fields, list: string): readonly number[] | undefined {
  const members = fields[list];
  return Array.isArray(members) ? members.flatMap((one) => referenceId(one) ?? []) : undefined;
}
