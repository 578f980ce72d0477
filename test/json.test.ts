import fc from "fast-check";
import { expect, test } from "vitest";
import { digitsOf, isObject, type Json, numberOf, objectOf, parseExactly, textOf, wholeOf } from "../src/json.ts";
import { JsonBoundError, parseAnswer, parseSent } from "../src/sent-json.ts";

test("a whole number that a double would change keeps its digits, wherever it is", () => {
  const text = '[{"id":3804004623172239366,"guid":"g"},-9007199254740993,[9007199254740993]]';
  const [first, second] = rowsOrAll(parseExactly(text));
  expect(JSON.stringify(parseExactly(text))).toBe(text);
  expect([digitsOf(objectOf(first).id), digitsOf(second)]).toEqual(["3804004623172239366", "-9007199254740993"]);
  // Whoever looks for another type finds none.
  expect([isObject(second), textOf(second), numberOf(second), wholeOf(second)]).toEqual([false, null, null, null]);
});

function rowsOrAll(value: Json): Json[] {
  return Array.isArray(value) ? value : [];
}

test("fractions, powers, texts and exact numbers stay what they are, also beside a large one", () => {
  const beside = '"1234567890123456789",9007199254740991,-0,1.2345678901234567,1e300,null,true,{}';
  const [large, ...rest] = [parseExactly(`[9007199254740993,${beside}]`)].flat();
  expect(digitsOf(large)).toBe("9007199254740993");
  expect(rest).toEqual(JSON.parse(`[${beside}]`));
});

test("a fraction keeps digits that a double would change, and one that it holds is a number", () => {
  const text = "[3.14159265358979323846,-0.10000000000000000001,1.2345678901234567,0.5]";
  const [pi, , held, half] = rowsOrAll(parseExactly(text));
  expect(JSON.stringify(parseExactly(text))).toBe(text);
  expect([digitsOf(pi), numberOf(pi), held, half]).toEqual(["3.14159265358979323846", null, 1.2345678901234567, 0.5]);
});

test("of what upstream sent, a row beyond the bounds is null and concerns no other", () => {
  const odd = [
    `${"[".repeat(70)}${"]".repeat(70)}`,
    '{"a\\u0000":1}',
    '{"__proto__":1}',
    `{"${"k".repeat(2_000)}":1}`,
    "1e64",
  ];
  for (const row of odd) {
    expect(parseAnswer(`[{"id":1},${row},{"id":2}]`, parseExactly)).toEqual([{ id: 1 }, null, { id: 2 }]);
    expect(parseAnswer(`{"total_count":2,"rows":[${row},{"id":2}]}`, parseExactly)).toEqual({
      total_count: 2,
      rows: [null, { id: 2 }],
    });
    expect(() => parseAnswer(`{"id":1,"payload":${row}}`, parseExactly)).toThrow(JsonBoundError);
  }
});

test("any JSON without such a number is read as JSON.parse reads it, alone and beside one", () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      fc.pre(!/\d{16}/.test(text));
      expect(parseExactly(text)).toEqual(JSON.parse(text));
      const [large, other] = rowsOrAll(parseExactly(`[9007199254740993,${text}]`));
      expect([digitsOf(large), other]).toEqual(["9007199254740993", JSON.parse(text)]);
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
  expect(() => parseSent('{"a": "')).toThrow(SyntaxError);
});

test.each([
  ["a long list", `[${"0,".repeat(10_001)}0]`, "more than 10,000 values"],
  ["lists in a list", `[${"[],".repeat(10_001)}0]`, "more than 10,000 values"],
  ["keys", `{"\\\\":"\\"",${'"a":0,'.repeat(10_001)}"b":1}`, "more than 10,000 values"],
  ["brackets in brackets", "[".repeat(65) + "]".repeat(65), "more than 64 levels"],
  ["brackets that do not end", "[".repeat(10_000_000), "more than 64 levels"],
  ["objects in objects", `${'{"a":'.repeat(65)}1${"}".repeat(65)}`, "more than 64 levels"],
  ["objects behind what has ended", `[[[[]]],"]]]",${'{"a":'.repeat(64)}1${"}".repeat(64)}]`, "more than 64 levels"],
  ["a NUL in a key", '{"a":{"b\\u0000c":1}}', "U+0000"],
  ["a NUL in a key behind blanks", '{"a":{"\\\\\\u0000" \n :1}}', "U+0000"],
  ["what objects inherit from", '[{"__proto__":{"isAdmin":true}}]', "__proto__"],
  ["the same, escaped", '{"_\\u005fproto__":1}', "__proto__"],
  ["a long key", `{"${"k".repeat(1_025)}":1}`, "1,024 characters"],
  ["a number beyond doubles", '{"number":1e309}', "beyond 1e+64"],
  ["a number of very many digits", `[-${"9".repeat(65)}]`, "beyond 1e+64"],
])("JSON beyond a bound is refused: %s", (_, text, reason) => {
  expect(() => parseSent(text)).toThrow(
    expect.objectContaining({ name: "JsonBoundError", message: expect.stringContaining(reason) }),
  );
});

test.each([
  ["64 levels", `${"[".repeat(64)}${"]".repeat(64)}`],
  ["64 levels again and again", `[${Array.from({ length: 50 }, () => "[".repeat(63) + "]".repeat(63)).join()}]`],
  ["brackets in texts", JSON.stringify(["[".repeat(100), '\\"[{'.repeat(100), { a: "{".repeat(100) }])],
  ["NUL and __proto__ in texts", JSON.stringify({ a: ["__proto__", "\0", "\\u0000"], "\\u0000": "__proto__:" })],
  ["names that objects inherit", '{"constructor":{"prototype":1},"toString":0,"__proto":1,"hasOwnProperty":2}'],
  ["long texts", JSON.stringify([{ ["k".repeat(1_024)]: "x".repeat(100_000) }, "\n".repeat(100_000)])],
  ["numbers", "[1e63,-9.7976931348623157e63,12345678901234567890,0.1e-400,-0]"],
])("JSON within the bounds is read as it stands: %s", (_, text) => {
  expect(parseSent(text)).toEqual(JSON.parse(text));
});

test("any JSON that is beyond no bound is read as JSON.parse reads it, and what is none is refused by it", () => {
  const broken = fc.tuple(fc.json(), fc.nat(), fc.string({ maxLength: 2 })).map(([text, at, other]) => {
    const cut = at % (text.length + 1);
    return text.slice(0, cut) + other + text.slice(cut + 1);
  });
  const outcomeOf = (read: () => unknown) => {
    try {
      return { value: read() };
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      return { fault: error.name };
    }
  };
  fc.assert(
    fc.property(fc.oneof(fc.json(), broken), (text) => {
      const sent = outcomeOf(() => {
        try {
          return parseSent(text);
        } catch (error) {
          fc.pre(!(error instanceof JsonBoundError));
          throw error;
        }
      });
      expect(sent).toEqual(outcomeOf(() => JSON.parse(text)));
    }),
  );
});
