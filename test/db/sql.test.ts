import { expect, test } from "vitest";
import { compiled, type SQL, sql } from "../../db/sql.ts";

test("values become parameters, in the order in which they stand, and parts bring their own", () => {
  const open = sql`state = ${"open"}`;
  const statement = sql`select ${"a"} from issues where ${open} and number = ${5}`;
  expect(compiled(statement)).toEqual({
    text: "select $1 from issues where state = $2 and number = $3",
    values: ["a", "open", 5],
  });
  expect(compiled(open)).toEqual({ text: "state = $1", values: ["open"] });
});

test("no value becomes part of the text, whatever it holds", () => {
  const hostile = "'; drop table issues; --";
  for (const statement of [sql`select ${hostile}`, sql.join([hostile]), sql.array([hostile], "text")]) {
    expect(compiled(statement).text).not.toContain("drop");
  }
  expect(() => sql.identifier(hostile)).toThrow("Not a name of a table or column");
});

test("parts are joined, also none and one", () => {
  const text = (statement: SQL) => compiled(statement).text;
  expect(text(sql`in (${sql.join([1, 2, 3])})`)).toBe("in ($1, $2, $3)");
  expect(text(sql.join([]))).toBe("");
  expect(text(sql.and([]))).toBe("true");
  expect(text(sql.or([]))).toBe("false");
  expect(compiled(sql.and([sql`a = ${1}`, sql.or([sql`b = ${2}`, sql`c = ${3}`])]))).toEqual({
    text: "a = $1 and (b = $2 or c = $3)",
    values: [1, 2, 3],
  });
});

test("names of tables and columns stand in the text", () => {
  expect(compiled(sql`select ${sql.identifier("i.number")} from ${sql.identifier("issues")} i`)).toEqual({
    text: 'select "i"."number" from "issues" i',
    values: [],
  });
});

test("rows of JSON are one parameter, whose texts Postgres can take out", () => {
  const rows = [{ ref: "a\0b", half: "\ud800", whole: "\u{1f600} \\u0000", nested: [{ t: "\udc00" }] }];
  expect(compiled(sql`from json_to_recordset(${sql.json(rows)}) as x(ref text)`)).toEqual({
    text: "from json_to_recordset($1::json) as x(ref text)",
    values: ['[{"ref":"a\ufffdb","half":"\ufffd","whole":"\u{1f600} \\\\u0000","nested":[{"t":"\ufffd"}]}]'],
  });
  expect(compiled(sql.json([{ at: new Date(0), none: null, n: 1 }])).values).toEqual([
    '[{"at":"1970-01-01T00:00:00.000Z","none":null,"n":1}]',
  ]);
});

test("an array is one parameter, which the planner does not look into", () => {
  expect(compiled(sql`select from issues where number = any (${sql.array([1, 2], "integer")})`)).toEqual({
    text: "select from issues where number = any ((select $1::integer[]))",
    values: [[1, 2]],
  });
});
