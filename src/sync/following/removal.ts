import { and, eq, like } from "drizzle-orm";
import type { PgTable } from "drizzle-orm/pg-core";
import type { Database, Transaction } from "../../../db/database.ts";
import { columnsOf } from "../../../db/schema/columns.ts";
import { IS_MIRRORED } from "../../../db/schema/mirrored.ts";
import { escapeLike, sql } from "../../../db/sql.ts";
import { exceptionIn } from "../../config/values.ts";
import * as schema from "../../schema.ts";
import { forgetValidatorsLike } from "../../upstream/conditional/validators.ts";
import { forgetProblems } from "../problems/problems.ts";
import { forgetRemovals, remove } from "./state.ts";

/**
 * Deletes a selection and stops mirroring the repositories that it names. Their rows are kept but no longer served;
 * `purge` deletes them in batches. Returns the repositories' full names. Empty: nothing of that name is mirrored. Without
 * an exception, `owner/*` brings the repository back.
 */
export async function removeSelection(
  { db }: { db: Database },
  pattern: string,
  { purge }: { purge: boolean },
): Promise<string[]> {
  const name = pattern.toLowerCase();
  const excepted = exceptionIn(name);
  if (excepted !== null) {
    await db.transaction((tx) => endException(tx, excepted));
    return [];
  }
  const names = name.endsWith("/*") ? `${escapeLike(name.slice(0, -1))}%` : escapeLike(name);
  const removed = await db.transaction(async (tx) => {
    // The selection is deleted first. So the query below also finds a repository that is just being begun for it: see
    // `holdSelection`.
    await tx.delete(schema.selections).where(eq(schema.selections.pattern, name));
    await forgetProblems(tx, { task: "select", keys: [name] });
    const found = await tx
      .select({ id: schema.repositories.id, fullName: schema.repositories.fullName })
      .from(schema.repositories)
      .innerJoin(schema.repositorySyncs, eq(schema.repositorySyncs.repositoryId, schema.repositories.id))
      .where(and(like(sql`folded(${schema.repositories.fullName})`, names), purge ? undefined : IS_MIRRORED))
      .orderBy(schema.repositories.id);
    const ids = found.map(({ id }) => id);
    await remove(tx, ids);
    return found;
  });
  if (purge) for (const { id } of removed) await purgeRepository(db, id);
  return removed.map(({ fullName }) => fullName);
}

async function endException(tx: Transaction, fullName: string): Promise<void> {
  await tx.delete(schema.selections).where(eq(schema.selections.pattern, `!${fullName}`));
  await forgetRemovals(tx, escapeLike(fullName));
  // The owner's list is asked for unconditionally once more: on an unchanged one the repository would not be seen.
  const all = `${fullName.split("/")[0]}/*`;
  await tx.update(schema.selections).set({ resolvedAt: null }).where(eq(schema.selections.pattern, all));
}

/** Of a repository that is purged these rows stay: what was heard, told and done, and where the repository is found. */
const KEPT: readonly PgTable[] = [
  ...[schema.deliveries, schema.events, schema.foundChanges, schema.writes],
  ...[schema.targetAsks, schema.targetCursors, schema.targetDeliveries, schema.hookSubscriptions],
  ...[schema.formerNames, schema.issueTransfers, schema.installationRepositories, schema.revisions],
];
/** All other tables with rows of repositories. That a repository is mirrored is forgotten last. */
const PURGED: readonly PgTable[] = [
  ...Object.values(schema).filter(
    (table) => "repository_id" in columnsOf(table) && ![...KEPT, schema.repositorySyncs].includes(table),
  ),
  schema.repositorySyncs,
];
const PURGE_BATCH = 5_000;

async function purgeRepository(db: Database, repositoryId: number): Promise<void> {
  for (const table of PURGED) {
    // In batches, since one statement over millions of rows would hold its locks for minutes. A `ctid` is unique only
    // within its partition: without the repository's id, rows of other repositories would be deleted.
    for (let deleted = PURGE_BATCH; deleted === PURGE_BATCH; )
      deleted = await db.count(sql`delete from ${table}
        where repository_id = ${repositoryId} and ctid = any(array(select ctid from ${table} where repository_id = ${repositoryId} limit ${PURGE_BATCH}))`);
  }
  // A validator says that its page is stored, and these pages are deleted.
  const path = `/repositories/${repositoryId}`;
  await forgetValidatorsLike(db, [path, `${path}/%`]);
  // Forks may show this repository as their parent, so its revision is raised.
  await db.transaction(async (tx) => {
    await tx.delete(schema.repositories).where(eq(schema.repositories.id, repositoryId));
    tx.touch([repositoryId]);
  });
}
