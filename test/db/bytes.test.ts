import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { queryWithBytes } from "../../db/bytes.ts";
import { openDatabase } from "../../db/connection.ts";
import { openTestDatabase } from "../support/database.ts";

test("pieces arrive as one parameter, among statements that share the connection, of which one is refused", async () => {
  await using database = await openTestDatabase();
  const { $client } = openDatabase(database.url, { maxConnections: 1 });
  try {
    const pieces = [[], [0], [1], [100_000, 0, 7], [3, 2_000_000]].map((sizes) =>
      sizes.map((size) => randomBytes(size)),
    );
    const ask = (divisor: number, some: Buffer[]) =>
      queryWithBytes<{ whole: number; bytes: Buffer }>(
        $client,
        {
          name: "quotient",
          text: "select 12 / $1::integer as whole, $2::bytea as bytes",
          values: [divisor],
          queryTimeoutMs: 10_000,
        },
        some,
      );
    for (const round of [1, 2]) {
      const refused = ask(0, [randomBytes(50_000)]);
      const asked = pieces.map((some, index) => ask(index + round, some));
      const beside = $client.query("select 'beside' as word");
      await expect(refused).rejects.toMatchObject({ code: "22012" });
      for (const [index, { rows }] of (await Promise.all(asked)).entries())
        expect(rows).toEqual([{ whole: Math.trunc(12 / (index + round)), bytes: Buffer.concat(pieces[index] ?? []) }]);
      expect((await beside).rows).toEqual([{ word: "beside" }]);
    }
  } finally {
    await $client.end();
  }
});

test("a statement that is not answered in time fails, and what waits behind it is not lost", async () => {
  await using database = await openTestDatabase();
  const { $client } = openDatabase(database.url, { maxConnections: 1 });
  try {
    const text = "select pg_sleep($1::float8), $2::bytea as bytes";
    const slow = queryWithBytes($client, { name: "slow", text, values: [2], queryTimeoutMs: 300 }, [randomBytes(10)]);
    await expect(slow).rejects.toThrow("timeout");
    const quick = await queryWithBytes<{ bytes: Buffer }>(
      $client,
      { name: "slow", text, values: [0], queryTimeoutMs: 10_000 },
      [Buffer.from("after it")],
    );
    expect(quick.rows[0]?.bytes.toString()).toBe("after it");
  } finally {
    await $client.end();
  }
});
