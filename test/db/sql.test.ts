import { expect, test } from "vitest";
import { type Sql, sql } from "../../db/sql.ts";

test("values become parameters, in the order in which they stand, and parts bring their own", () => {
  const open = sql`state = ${"open"}`;
  const statement = sql`select ${"a"} from issues where ${open} and number = ${5}`;
  expect(statement.compiled()).toEqual({
    text: "select $1 from issues where state = $2 and number = $3",
    values: ["a", "open", 5],
  });
  expect(open.compiled()).toEqual({ text: "state = $1", values: ["open"] });
});

test("what stands several times is sent once", () => {
  const id = sql.value(7);
  const name = sql`name = ${"x"}`;
  expect(sql`a = ${id} and ${name} and b = ${id} or ${name} or c = ${7}`.compiled()).toEqual({
    text: "a = $1 and name = $2 and b = $1 or name = $2 or c = $3",
    values: [7, "x", 7],
  });
});

test("no value becomes part of the text, whatever it holds", () => {
  const hostile = "'; drop table issues; --";
  for (const statement of [
    sql`select ${hostile}`,
    sql.value(hostile),
    sql.join([hostile]),
    sql.array([hostile], "text"),
  ]) {
    expect(statement.compiled().text).not.toContain("drop");
  }
  expect(() => sql.identifier(hostile)).toThrow("Not a name of a table or column");
});

test("parts are joined, also none and one", () => {
  const text = (statement: Sql) => statement.compiled().text;
  expect(text(sql`in (${sql.join([1, 2, 3])})`)).toBe("in ($1, $2, $3)");
  expect(text(sql.join([]))).toBe("");
  expect(text(sql.and([]))).toBe("true");
  expect(text(sql.or([]))).toBe("false");
  expect(sql.and([sql`a = ${1}`, sql.or([sql`b = ${2}`, sql`c = ${3}`])]).compiled()).toEqual({
    text: "a = $1 and (b = $2 or c = $3)",
    values: [1, 2, 3],
  });
});

test("names of tables and columns stand in the text", () => {
  expect(sql`select ${sql.identifier("i.number")} from ${sql.identifier("issues")} i`.compiled()).toEqual({
    text: 'select "i"."number" from "issues" i',
    values: [],
  });
});

test("rows of JSON are one parameter, whose texts Postgres can take out", () => {
  const rows = [{ ref: "a\0b", half: "\ud800", whole: "\u{1f600} \\u0000", nested: [{ t: "\udc00" }] }];
  expect(sql`from json_to_recordset(${sql.json(rows)}) as x(ref text)`.compiled()).toEqual({
    text: "from json_to_recordset($1::json) as x(ref text)",
    values: ['[{"ref":"a\ufffdb","half":"\ufffd","whole":"\u{1f600} \\\\u0000","nested":[{"t":"\ufffd"}]}]'],
  });
  expect(sql.json([{ at: new Date(0), none: null, n: 1 }]).compiled().values).toEqual([
    '[{"at":"1970-01-01T00:00:00.000Z","none":null,"n":1}]',
  ]);
});

test("an array is one parameter, which the planner does not look into", () => {
  expect(sql`select from issues where number = any (${sql.array([1, 2], "integer")})`.compiled()).toEqual({
    text: "select from issues where number = any ((select $1::integer[]))",
    values: [[1, 2]],
  });
});
