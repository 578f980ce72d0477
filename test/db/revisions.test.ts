import { expect, test } from "vitest";
import { type Database, openDatabase } from "../../db/database.ts";
import { PEOPLE } from "../../db/revisions.ts";
import { sql } from "../../db/sql.ts";
import { RepositoryVersionsReader } from "../../src/mirror/unchanged/unchanged.ts";
import { openTestDatabase } from "../support/database.ts";

async function opened(): Promise<{ db: Database; revisions: RepositoryVersionsReader } & AsyncDisposable> {
  const resources = new AsyncDisposableStack();
  const { url: databaseUrl } = resources.use(await openTestDatabase());
  const db = openDatabase(databaseUrl);
  resources.defer(() => db.close());
  const revisions = resources.use(new RepositoryVersionsReader({ databaseUrl, databaseDirectUrl: null }));
  return { db, revisions, [Symbol.asyncDispose]: () => resources.disposeAsync() };
}

/** Without the history that it belongs to. 0: nothing was changed yet. */
const revisionOf = async (revisions: RepositoryVersionsReader, id: number) =>
  Number((await revisions.now([id])).get(id)?.revision?.split("/")[1]);

test("a revision is another one once the transaction that touched it is committed, and not before or without", async () => {
  await using mirror = await opened();
  const { db, revisions } = mirror;
  expect(await revisionOf(revisions, 5)).toBe(0);
  await db.transaction(async (tx) => {
    tx.touch([5]);
    await tx.query(sql`select 1`);
    expect(await revisionOf(revisions, 5)).toBe(0);
  });
  const first = await revisionOf(revisions, 5);
  expect(first).toBeGreaterThan(0);
  expect(await revisionOf(revisions, PEOPLE)).toBe(0);
  const undone = db.transaction(async (tx) => {
    tx.touch([5]);
    throw new Error("undone");
  });
  await expect(undone).rejects.toThrow("undone");
  await db.transaction(async (tx) => void (await tx.query(sql`select 1`)));
  expect(await revisionOf(revisions, 5)).toBe(first);
  await db.transaction(async (tx) => tx.touch([5, PEOPLE]));
  expect(await revisionOf(revisions, 5)).not.toBe(first);
  expect(await revisionOf(revisions, PEOPLE)).toBeGreaterThan(0);
});

test("transactions that touch the same in any order wait for each other and none fails", async () => {
  await using mirror = await opened();
  const { db, revisions } = mirror;
  const seen = new Set<string>();
  const ids = [1, 2, 3, 4, 5];
  await Promise.all(
    Array.from({ length: 60 }, (_, at) =>
      db.transaction(async (tx) => {
        tx.touch([ids[at % 5] as number]);
        await tx.query(sql`select pg_sleep(0.001)`);
        tx.touch(at % 2 === 0 ? ids : ids.toReversed());
      }),
    ),
  );
  for (const id of ids) seen.add(String(await revisionOf(revisions, id)));
  expect(seen.size).toBe(5);
  expect(seen).not.toContain("null");
});

test("a question during another's answer is told of what was committed before it was asked", async () => {
  await using mirror = await opened();
  const { db, revisions } = mirror;
  const stale: string[] = [];
  let committed = 0;
  let isOver = false;
  const ask = async () => {
    while (!isOver) {
      const least = committed;
      const revision = await revisionOf(revisions, 9);
      if (revision < least) stale.push(`${revision} < ${least}`);
    }
  };
  const asking = Array.from({ length: 8 }, ask);
  for (let time = 0; time < 100; time++) {
    await db.transaction(async (tx) => tx.touch([9]));
    const [row] = await db.query<{ revision: number }>(sql`select revision from revisions where repository_id = 9`);
    committed = row?.revision ?? 0;
  }
  isOver = true;
  await Promise.all(asking);
  expect(stale).toEqual([]);
});

test("a transaction whose revisions cannot be raised leaves nothing, and says why", async () => {
  await using mirror = await opened();
  const { db, revisions } = mirror;
  const refused = db.transaction(async (tx) => {
    await tx.query(sql`insert into former_names (full_name, repository_id) values ('octo/left', 1)`);
    tx.touch([5, 0.5]);
  });
  await expect(refused).rejects.toThrow("0.5");
  expect(await db.count(sql`select from former_names`)).toBe(0);
  expect(await revisionOf(revisions, 5)).toBe(0);
  // The connection goes back as it was.
  await db.transaction(async (tx) => tx.touch([5]));
  expect(await revisionOf(revisions, 5)).toBeGreaterThan(0);
});
