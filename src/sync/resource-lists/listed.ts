import type { PgTable } from "drizzle-orm/pg-core";
import { WHOLE_KINDS, type WholeKind } from "../../../db/schema/states.ts";
import { type SQL, sql } from "../../../db/sql.ts";
import type { MirrorPart } from "../../config/parts.ts";
import type { Context } from "../../context.ts";
import type { Kind, ListBelow, Resource, ResourceList } from "../../kinds/contract/kind.ts";
import { resourceOf, resources } from "../../kinds/registry.ts";
import type { MirroredRepository } from "../../mirror/read/job-reads.ts";
import type { QuestionPace } from "../questions/paced.ts";
import { latestRelease } from "./latest-release.ts";

/** A kind whose resources the mirror holds as a whole list of each repository. */
export interface ListedKind {
  kind: Kind;
  part: ListedPart;
  resource: Resource;
  list: ResourceList;
  /** What upstream has to say of the list beside its rows. */
  further?: FurtherAnswer;
}

/** Something about the row `l` of a list that upstream alone knows. */
interface FurtherAnswer {
  /** Whether no row has changed since upstream said so. */
  isKnown: SQL;
  read: (ctx: Context, repository: MirroredRepository) => Promise<void>;
}

/** A part whose mark stands for the lists of its kinds. */
export type ListedPart = MirrorPart & WholeKind;

const FURTHER: Readonly<Partial<Record<Kind, FurtherAnswer>>> = { release: latestRelease };

const LISTED: readonly ListedKind[] = resources.flatMap((resource) => {
  const { kind, part, list } = resource;
  const further = FURTHER[kind];
  if (!list) return [];
  if (part === null || !isMarked(part)) throw new Error(`No mark stands for the list of ${kind}`);
  return [{ kind, part, resource, list, ...(further && { further }) }];
});

function isMarked(part: MirrorPart): part is ListedPart {
  const marked: readonly string[] = WHOLE_KINDS;
  return marked.includes(part);
}

export const LISTED_PARTS: readonly ListedPart[] = [...new Set(LISTED.map(({ part }) => part))];

/** The kinds of a part that are held as lists, in lock order. */
export function listedOf(part: string): readonly ListedKind[] {
  return LISTED.filter((one) => one.part === part);
}

/** Lists that are read only since somebody asks for them are read this often in all, however many callers pay for it. */
export const ASKED_LISTS: QuestionPace = { name: "asked lists", everyMs: 10_000 };

/**
 * Of a row `l` of the list's table: upstream has to be asked for the list again. Unchanged that costs nothing.
 * @param askedAt when somebody last asked for what is not here yet
 */
export function isListDue(
  { resource, list: { everyMs, moving, askedEveryMs } }: ListedKind,
  now: Date,
  askedAt: Date | null = null,
): SQL {
  const before = (ms: number) => new Date(now.getTime() - ms);
  const isMoving =
    moving &&
    sql`or (l.read_at <= ${before(moving.everyMs)} and (l.heard_at > ${before(everyMs)}
      or exists (select from ${resource.table} t where t.repository_id = l.repository_id and ${moving.rows} and t.deleted_at is null)))`;
  const isAsked =
    askedEveryMs !== undefined && askedAt && sql`or (l.read_at <= ${before(askedEveryMs)} and l.read_at < ${askedAt})`;
  return sql`(l.read_at is null or l.read_at <= ${before(everyMs)} ${isMoving || sql``} ${isAsked || sql``})`;
}

/** Of a row `l` of the list's table: it is here, and so is all that upstream says of it. */
export function isListWhole({ further }: ListedKind): SQL {
  return sql`(l.read_at is not null and ${further?.isKnown ?? sql`true`})`;
}

/** A kind of which the mirror holds the list under each resource of another kind. */
export interface KindBelow {
  kind: Kind;
  part: MirrorPart;
  list: ListBelow;
  parentKind: Kind;
  /** The table of that kind. */
  parents: PgTable;
}

export const BELOW: readonly KindBelow[] = resources.flatMap((resource) => {
  const { kind, part, listBelow: list, parent } = resource;
  if (!list || part === null || !parent) return [];
  return [{ kind, part, list, parentKind: parent.kind, parents: resourceOf(parent.kind).table }];
});

/** The kinds of a part that are held as lists under others, in lock order. */
export function belowOf(part: string): readonly KindBelow[] {
  return BELOW.filter((one) => one.part === part);
}

/** Of the resource `p` and the row `l` of its list, if there is one: the list is all here. */
export function isBelowWhole({ list: { isCurrent } }: KindBelow): SQL {
  return sql`(l.read_at is not null and ${isCurrent})`;
}
