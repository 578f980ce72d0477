import type { Database, Queries } from "../../../db/connection.ts";
import { issueTransfers } from "../../../db/schema/issues.ts";
import { Statement } from "../../../db/statement.ts";

/** An issue by its repository's id and its number there. */
export interface IssuePlace {
  repositoryId: number;
  number: number;
}

/** Remembers where an issue went that left its repository for another. */
export async function storeTransfer(db: Queries, from: IssuePlace, to: IssuePlace): Promise<void> {
  const target = { toRepositoryId: to.repositoryId, toNumber: to.number };
  await db
    .insert(issueTransfers)
    .values({ ...from, ...target })
    .onConflictDoUpdate({ target: [issueTransfers.repositoryId, issueTransfers.number], set: target });
}

/** Against a circle of transfers, which cannot be: an issue never comes back to a number that it had. */
const MOST_TRANSFERS = 100;

/** Where an issue that is gone has ended up, maybe by way of others; null: nowhere that we know of. */
export async function findTransfer(db: Database, { repositoryId, number }: IssuePlace): Promise<IssuePlace | null> {
  const statement = new Statement();
  const [row] = await statement.rows<{ repositoryId: string; number: number }>(
    db,
    `with recursive way as (
        select to_repository_id, to_number, 1 as step from issue_transfers
          where repository_id = ${statement.value(repositoryId)} and number = ${statement.value(number)}
        union all
        select t.to_repository_id, t.to_number, way.step + 1 from way
          join issue_transfers t on t.repository_id = way.to_repository_id and t.number = way.to_number
          where way.step < ${MOST_TRANSFERS})
      select to_repository_id as "repositoryId", to_number as number from way order by step desc limit 1`,
  );
  return row ? { repositoryId: Number(row.repositoryId), number: row.number } : null;
}

/** The place that a path below upstream's API names by the repository's id; null for any other. */
export function placeIn(path: string | null): IssuePlace | null {
  const [, repositoryId, number] = /^\/repositories\/(\d+)\/issues\/(\d+)$/.exec(path ?? "") ?? [];
  return number === undefined ? null : { repositoryId: Number(repositoryId), number: Number(number) };
}
