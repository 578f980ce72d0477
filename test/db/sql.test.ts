import { expect, test } from "vitest";
import { sql } from "../../db/sql.ts";

test("values become parameters, in the order in which they stand, and parts bring their own", () => {
  const owner = sql`owner_id = ${7}`;
  const statement = sql`select ${"a"} from issues where ${owner} and number = ${5} and ${owner}`;
  expect(statement.text).toBe("select $1 from issues where owner_id = $2 and number = $3 and owner_id = $4");
  expect(statement.values).toEqual(["a", 7, 5, 7]);
  expect(owner.text).toBe("owner_id = $1");
});

test("no value becomes part of the text, whatever it holds", () => {
  const hostile = "'; drop table issues; --";
  for (const statement of [sql`select ${hostile}`, sql.join([hostile]), sql.array([hostile], "text")]) {
    expect(statement.text).not.toContain("drop");
  }
  expect(() => sql.identifier(hostile)).toThrow("Not a name of a table or column");
});

test("parts are joined, also none and one", () => {
  expect(sql`in (${sql.join([1, 2, 3])})`.text).toBe("in ($1, $2, $3)");
  expect(sql.join([]).text).toBe("");
  expect(sql.join([sql`a = ${1}`, sql`b = ${2}`], ", ")).toMatchObject({ text: "a = $1, b = $2", values: [1, 2] });
  expect(sql.and([]).text).toBe("true");
  expect(sql.or([]).text).toBe("false");
  expect(sql.and([sql`a = ${1}`, sql.or([sql`b = ${2}`, sql`c = ${3}`])])).toMatchObject({
    text: "a = $1 and (b = $2 or c = $3)",
    values: [1, 2, 3],
  });
});

test("names of tables and columns stand in the text", () => {
  expect(sql`select ${sql.identifier("i.number")} from ${sql.identifier("issues")} i`.text).toBe(
    "select i.number from issues i",
  );
});

test("an array is one parameter, which the planner does not look into", () => {
  const statement = sql`select from issues where number = any (${sql.array([1, 2], "integer")})`;
  expect(statement).toMatchObject({
    text: "select from issues where number = any ((select $1::integer[]))",
    values: [[1, 2]],
  });
});
