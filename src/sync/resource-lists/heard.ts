import type { Transaction } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import { afterLag, type Mark, repositoryMark } from "../../mirror/store/marks.ts";
import type { MergedDeliveries } from "../events/read.ts";
import { findLapsed, noteNew } from "./below.ts";
import { belowOf, type ListedPart, listedOf } from "./listed.ts";

/**
 * Notes when deliveries told of rows of the lists of a part. The merge keeps a list up to date. What only upstream can say of it, it
 * says once no replica lags. Answers a mark for each repository to ask about.
 */
export async function hearResourceLists(
  tx: Transaction,
  part: ListedPart,
  { seen, parts, askedAt }: MergedDeliveries,
): Promise<Mark[]> {
  const marks: Mark[] = [];
  for (const { kind, list, further } of listedOf(part)) {
    const told = seen.filter((one) => one.kind === kind && parts.get(one.repositoryId)?.includes(part));
    const ids = [...new Set(told.map(({ repositoryId }) => repositoryId))];
    if (ids.length === 0) continue;
    await tx.query(sql`
      insert into ${list.table} (repository_id, heard_at) select id, ${askedAt}::timestamptz
          from unnest(${sql.array(ids, "bigint")}::bigint[]) as id order by id
        on conflict (repository_id) do update set heard_at = excluded.heard_at`);
    const below = belowOf(part);
    for (const one of below) if (one.parentKind === kind) await noteNew(tx, one, told, askedAt);
    const asked: number[] = [];
    for (const one of below.filter(({ parentKind }) => parentKind === kind))
      if (one.list.askedAs !== undefined) asked.push(...(await findLapsed(tx, one, told)));
    const isAnyEager = below.some(({ list: { askedAs } }) => askedAs === undefined);
    const due = further || isAnyEager ? ids : [...new Set(asked)];
    marks.push(...due.map((id) => ({ ...repositoryMark(part, id, askedAt), notBefore: afterLag(askedAt) })));
  }
  return marks;
}
