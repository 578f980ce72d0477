import { type SQL, sql } from "./drizzle.ts";

/** What of the mirror a transaction changes, as far as readers have to know. */
interface Touched {
  repositoryIds: Set<number>;
  /** In lower case. Two repositories can bear one name for a moment, and a change of one may decide which of them is found. */
  names: Set<string>;
}

interface Queries {
  execute(statement: SQL): Promise<unknown>;
}

/** Stands for people, and for whatever else belongs to no repository. */
export const PEOPLE = 0;

const touched = new WeakMap<object, Touched>();

/**
 * Notes that the transaction changes what is shown of these repositories, or who may see them. Their revisions are raised
 * right before it commits, so that it is then, and only then, that writers of one repository wait for each other.
 */
export function touch(tx: object, repositoryIds: Iterable<number>, names: Iterable<string> = []): void {
  const noted = touched.get(tx) ?? { repositoryIds: new Set(), names: new Set() };
  touched.set(tx, noted);
  for (const id of repositoryIds) noted.repositoryIds.add(id);
  for (const name of names) noted.names.add(name.toLowerCase());
}

/** Raises what was noted; the last statement of a transaction. */
export async function raiseTouched(tx: Queries): Promise<void> {
  const noted = touched.get(tx);
  if (!noted) return;
  touched.delete(tx);
  const { repositoryIds, names } = noted;
  await tx.execute(
    sql`select raise_revisions(${sql.param([...repositoryIds])}::bigint[], ${sql.param([...names])}::text[])`,
  );
}
