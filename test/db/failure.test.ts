import { expect, test } from "vitest";
import { openDatabase } from "../../db/database.ts";
import { sql } from "../../db/sql.ts";
import { withoutContents } from "../../src/failure.ts";
import { openTestDatabase } from "../support/database.ts";

test("a statement that fails tells what went wrong, and nothing of what it was to store", async () => {
  await using database = await openTestDatabase();
  const db = openDatabase(database.url);
  const thrown = await db
    .query(sql`
    insert into users (id, login, document, seen_at, seen_by_read)
      values (1, ${"someone's words"}, ${"{broken"}::json, now(), true)`)
    .catch((error: unknown) => new Error("Storing failed", { cause: error }));
  await db.close();
  const error = withoutContents(thrown) as Error & { cause: Error & { code: string } };
  expect(error.message).toBe("Storing failed");
  expect(error.cause).toMatchObject({ code: "22P02", message: "invalid input syntax for type json" });
  const everything = JSON.stringify([error, error.cause, error.stack, error.cause.stack, Object.entries(error.cause)]);
  expect(everything).not.toContain("words");
  expect(everything).not.toContain("{broken");
});
