import type { Queries } from "../../../db/database.ts";
import { WHOLE_KINDS } from "../../../db/schema/states.ts";
import { sql } from "../../../db/sql.ts";
import type { Kind } from "../../kinds/contract/kind.ts";
import { resourceOf } from "../../kinds/registry.ts";
import { afterLag, type Mark, storeMarks } from "./marks.ts";

/** A list that is read if somebody asks for it. */
export interface WantedList {
  /** The kind of its rows. */
  kind: Kind;
  repositoryId: number;
  /** The resource that it is under; null: it is the repository's, and something has happened since it was read. */
  parentId: number | null;
}

/**
 * Has the list read, unless that is to be done already. A mark of the resource that it is under asks for it, or one of the
 * repository's part.
 * @param mayAsk takes the read out of the share of whoever asks; false: nothing is read for them
 */
export async function want(
  db: Queries,
  wanted: WantedList,
  { now, mayAsk }: { now: Date; mayAsk: () => Promise<boolean> },
): Promise<void> {
  const mark = wanted.parentId === null ? ofRepository(wanted, now) : ofParent(wanted, wanted.parentId, now);
  const [askedAs] = mark.keys ?? [];
  const asked = await db.prepared(sql`
    select from refresh_marks m where m.kind = ${mark.kind} and m.repository_id = ${mark.repositoryId}
      and m.key = ${mark.key} and ${askedAs === undefined ? sql`true` : sql`${askedAs} = any(m.keys)`}`);
  if (asked.length > 0 || !(await mayAsk())) return;
  const notBefore = wanted.parentId === null ? await nextRead(db, wanted, now) : now;
  await storeMarks(db, [{ ...mark, notBefore }]);
}

function ofParent({ kind, repositoryId }: WantedList, parentId: number, now: Date): Mark {
  const { listBelow, parent } = resourceOf(kind);
  if (!parent || listBelow?.askedAs === undefined) throw new Error(`No list of ${kind} is read on request`);
  return {
    ...{ kind: parent.kind, repositoryId, key: parentId },
    ...{ askedAt: now, notBefore: now, keys: [listBelow.askedAs] },
  };
}

function ofRepository({ kind, repositoryId }: WantedList, now: Date): Mark {
  const whole = WHOLE_KINDS.find((one) => one === resourceOf(kind).part);
  if (whole === undefined) throw new Error(`No mark stands for the list of ${kind}`);
  return { kind: whole, repositoryId, key: repositoryId, askedAt: now, notBefore: now };
}

/** When the repository's list may be read again: not too soon after the last time, and once no replica lags. */
async function nextRead(db: Queries, { kind, repositoryId }: WantedList, now: Date): Promise<Date> {
  const { list } = resourceOf(kind);
  if (list?.askedEveryMs === undefined) throw new Error(`The list of ${kind} is not read on request`);
  const [row] = await db.prepared<{ readAt: Date | null }>(sql`
    select l.read_at as "readAt" from ${list.table} l where l.repository_id = ${repositoryId}`);
  const next = (row?.readAt?.getTime() ?? 0) + list.askedEveryMs;
  return new Date(Math.max(next, afterLag(now).getTime()));
}
