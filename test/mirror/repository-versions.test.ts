import pg from "pg";
import { expect, test } from "vitest";
import { type RepositoryVersions, RepositoryVersionsReader } from "../../src/mirror/unchanged/unchanged.ts";
import { AWAITED_LOCKS, openTestDatabase } from "../support/database.ts";

test("questions beside late answers wait for their turn over two connections", async () => {
  await using database = await openTestDatabase();
  const locker = new pg.Client({ connectionString: database.url });
  await locker.connect();
  const waiting = async () => {
    const { rows } = await locker.query(`select from ${AWAITED_LOCKS}`);
    return rows.length;
  };
  const reader = new RepositoryVersionsReader({ databaseUrl: database.url, databaseDirectUrl: null });
  await locker.query("begin; lock table repository_syncs in access exclusive mode");
  const asked: Promise<RepositoryVersions>[] = [];
  for (const late of [1, 2, 2, 2]) {
    asked.push(reader.now([asked.length]));
    await expect.poll(waiting, { timeout: 10_000 }).toBe(late);
  }
  await locker.query("rollback");
  await locker.end();
  expect((await Promise.all(asked)).map((repositoryVersions, at) => repositoryVersions.has(at))).toEqual([
    true,
    true,
    true,
    true,
  ]);
  await reader[Symbol.asyncDispose]();
});

test("closed while its first connection is being made, it leaves none behind and answers nothing more", async () => {
  const database = await openTestDatabase();
  for (let turn = 0; turn < 5; turn++) {
    const reader = new RepositoryVersionsReader({ databaseUrl: database.url, databaseDirectUrl: null });
    const asked = reader.now([1]).then(
      () => "answered",
      () => "refused",
    );
    await Promise.resolve();
    await reader[Symbol.asyncDispose]();
    expect(["answered", "refused"]).toContain(await asked);
    await expect(reader.now([1])).rejects.toThrow("calling end");
  }
  // This fails while a connection is open.
  await database.drop();
});
