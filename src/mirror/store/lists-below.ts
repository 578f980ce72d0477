import type { Queries } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import type { Kind, ResourceKey } from "../../kinds/contract/kind.ts";
import { resourceOf } from "../../kinds/registry.ts";
import { storeMarks } from "./marks.ts";

/** A list under a resource that is read only if somebody asks for it. */
export interface WantedList {
  /** The kind of its rows. */
  kind: Kind;
  repositoryId: number;
  /** The resource that it is under. */
  parentId: number;
}

/**
 * Has the list read, unless that is to be done already. It is asked for by a mark of the resource that it is under.
 * @param mayAsk whether the mirror may spend a request for it
 */
export async function want(
  db: Queries,
  { kind, repositoryId, parentId }: WantedList,
  { now, mayAsk }: { now: Date; mayAsk: () => Promise<boolean> },
): Promise<void> {
  const { listBelow, parent } = resourceOf(kind);
  const askedAs = listBelow?.askedAs;
  if (!parent || askedAs === undefined) throw new Error(`No list of ${kind} is read on request`);
  const key: ResourceKey = { kind: parent.kind, repositoryId, key: parentId };
  const asked = await db.prepared(sql`
    select from refresh_marks m where m.kind = ${key.kind} and m.repository_id = ${repositoryId} and m.key = ${parentId}
      and ${askedAs} = any(m.keys)`);
  if (asked.length > 0 || !(await mayAsk())) return;
  await storeMarks(db, [{ ...key, askedAt: now, notBefore: now, keys: [askedAs] }]);
}
