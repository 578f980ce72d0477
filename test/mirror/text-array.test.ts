import pg from "pg";
import { expect, test } from "vitest";
import { textArray } from "../../db/text-array.ts";
import { openTestDatabase } from "../support/database.ts";

const TEXTS = [
  "plain",
  "",
  null,
  "NULL",
  '"quoted", {braced} \\ and \n more',
  "größer 🎉 \u{10ffff}",
  "x".repeat(100_000),
];

test.each([[TEXTS], [[null]], [["one"]], [[]]])("texts arrive as they are: %#", async (texts) => {
  await using database = await openTestDatabase();
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    const { rows } = await client.query("select $1::text[] as texts", [textArray("text", texts)]);
    expect(rows).toEqual([{ texts }]);
  } finally {
    await client.end();
  }
});

test("documents arrive letter by letter, their order of keys and their escapes as they were", async () => {
  await using database = await openTestDatabase();
  const documents = ['{"b": "\\u0000 and \\ud800",  "a":[1,"\\"", null]}', null, '"ü"'];
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    const { rows } = await client.query("select x.document::text from unnest($1::json[]) as x(document)", [
      textArray("json", documents),
    ]);
    expect(rows.map(({ document }) => document)).toEqual(documents);
    await expect(client.query("select $1::json[]", [textArray("json", ["{"])])).rejects.toThrow("invalid input syntax");
  } finally {
    await client.end();
  }
});

test("what is no text is left to others", () => {
  expect(textArray("bigint", ["1"])).toBeNull();
});
