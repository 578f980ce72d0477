import type { Database, Queries } from "../../db/connection.ts";
import { and, eq } from "../../db/drizzle.ts";
import { issueTransfers } from "../../db/schema/issues.ts";

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

/** Where an issue that is gone went; null: nowhere that we know of. */
export async function findTransfer(db: Database, { repositoryId, number }: IssuePlace): Promise<IssuePlace | null> {
  const [row] = await db
    .select({ repositoryId: issueTransfers.toRepositoryId, number: issueTransfers.toNumber })
    .from(issueTransfers)
    .where(and(eq(issueTransfers.repositoryId, repositoryId), eq(issueTransfers.number, number)));
  return row ?? null;
}

/** The place that a path below upstream's API names by the repository's id; null for any other. */
export function placeIn(path: string | null): IssuePlace | null {
  const [, repositoryId, number] = /^\/repositories\/(\d+)\/issues\/(\d+)$/.exec(path ?? "") ?? [];
  return number === undefined ? null : { repositoryId: Number(repositoryId), number: Number(number) };
}
