import type { Database, Transaction } from "../../../db/database.ts";
import { sql } from "../../../db/sql.ts";
import { noteTakenAlong } from "./found.ts";

/** An issue by its repository's id and its number there. */
export interface IssuePlace {
  repositoryId: number;
  number: number;
}

/**
 * Stores the new place of an issue that left for another repository. Comments that it took along may have been stored
 * before anybody knew of the transfer: those are noted as found now, as `noteFound` notes the others.
 */
export async function storeTransfer(tx: Transaction, from: IssuePlace, to: IssuePlace): Promise<void> {
  tx.touch([from.repositoryId]);
  const changed = await tx.count(sql`
    insert into issue_transfers as t (repository_id, number, to_repository_id, to_number)
      values (${from.repositoryId}, ${from.number}, ${to.repositoryId}, ${to.number})
      on conflict (repository_id, number) do update
        set to_repository_id = excluded.to_repository_id, to_number = excluded.to_number
        where (t.to_repository_id, t.to_number) <> (excluded.to_repository_id, excluded.to_number)`);
  if (changed > 0) await noteTakenAlong(tx, to);
}

/** A guard against circles, which should not exist: an issue never returns to an old number. */
const MOST_TRANSFERS = 100;

/** The present place of a transferred issue, through several transfers if need be; null: we know of none. */
export async function findTransfer(db: Database, { repositoryId, number }: IssuePlace): Promise<IssuePlace | null> {
  const [row] = await db.prepared<IssuePlace>(sql`
    with recursive way as (
        select to_repository_id, to_number, 1 as step from issue_transfers
          where repository_id = ${repositoryId} and number = ${number}
        union all
        select t.to_repository_id, t.to_number, way.step + 1 from way
          join issue_transfers t on t.repository_id = way.to_repository_id and t.number = way.to_number
          where way.step < ${MOST_TRANSFERS})
      select to_repository_id as "repositoryId", to_number as number from way order by step desc limit 1`);
  return row ?? null;
}

/** The place that a path below upstream's API names by the repository's id; null for any other. */
export function placeIn(path: string | null): IssuePlace | null {
  const [, repositoryId, number] = /^\/repositories\/(\d+)\/issues\/(\d+)$/.exec(path ?? "") ?? [];
  return number === undefined ? null : { repositoryId: Number(repositoryId), number: Number(number) };
}
