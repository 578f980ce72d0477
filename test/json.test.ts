import fc from "fast-check";
import { expect, test } from "vitest";
import { parseExactly, parseSent, TooManyValuesError } from "../src/json.ts";

test("a whole number that a double would change stands as its digits, wherever it is", () => {
  expect(parseExactly('[{"id":3804004623172239366,"guid":"g"},-9007199254740993,[9007199254740993]]')).toEqual([
    { id: "3804004623172239366", guid: "g" },
    "-9007199254740993",
    ["9007199254740993"],
  ]);
});

test("fractions, powers, texts and exact numbers stay what they are, also beside a large one", () => {
  const beside = '"1234567890123456789",9007199254740991,-0,1.2345678901234567,1e300,null,true,{}';
  const [large, ...rest] = [parseExactly(`[9007199254740993,${beside}]`)].flat();
  expect(large).toBe("9007199254740993");
  expect(rest).toEqual(JSON.parse(`[${beside}]`));
});

test("any JSON without such a number is read as JSON.parse reads it, alone and beside one", () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      fc.pre(!/\d{16}/.test(text));
      expect(parseExactly(text)).toEqual(JSON.parse(text));
      expect(parseExactly(`[9007199254740993,${text}]`)).toEqual(["9007199254740993", JSON.parse(text)]);
    }),
  );
});

test("no JSON is a SyntaxError, with and without a large number", () => {
  for (const text of ["", "{", "[9007199254740993", "9007199254740993,"])
    expect(() => parseExactly(text)).toThrow(SyntaxError);
});

test("of a caller's JSON as much is read as anybody needs, and texts count as one value whatever is in them", () => {
  const texts = Array.from({ length: 9_000 }, () => '",[{\\"\\\\');
  expect(parseSent(JSON.stringify(texts))).toEqual(texts);
  fc.assert(fc.property(fc.json(), (text) => void expect(parseSent(text)).toEqual(JSON.parse(text))));
  expect(() => parseSent('{"a": "')).toThrow(SyntaxError);
});

test.each([
  ["brackets in brackets", "[".repeat(10_001) + "]".repeat(10_001)],
  ["objects in objects", `${'{"a":'.repeat(10_001)}1${"}".repeat(10_001)}`],
  ["a long list", `[${"0,".repeat(10_001)}0]`],
  ["keys", `{"\\\\":"\\"",${'"a":0,'.repeat(10_001)}"b":1}`],
])("JSON with too many values is refused before it is read: %s", (_, text) => {
  expect(() => parseSent(text)).toThrow(TooManyValuesError);
});
