import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { indented, mapElements } from "../../src/api/dialect/elements.ts";
import { Pace } from "../../src/work/pace.ts";

/** The forms of answers: a list, the results of a search, or one resource. */
const answers = fc.oneof(
  fc.array(fc.jsonValue()),
  fc.record({
    total_count: fc.nat(),
    incomplete_results: fc.boolean(),
    items: fc.array(fc.oneof(fc.jsonValue(), fc.string({ unit: fc.constantFrom('"', "\\", ",", "]", "}", "💩") }))),
  }),
  fc.dictionary(fc.string(), fc.jsonValue()),
);

/** With and without a turn of the event loop before each element. */
const paces = [new Pace(), new Pace(0)];

describe.each(["an answer", "an answer, with others between"].map((what, at) => [what, paces[at] as Pace]))(
  "%s",
  (_, pace) => {
    test("is the same when its elements are read and written one by one", async () => {
      await fc.assert(
        fc.asyncProperty(answers, async (answer) => {
          const json = Buffer.from(JSON.stringify(answer));
          const mapped = await mapElements(json, pace, (element) => JSON.stringify(element));
          expect(mapped.toString()).toBe(json.toString());
        }),
      );
    });

    test("is laid out as it would be as a whole", async () => {
      await fc.assert(
        fc.asyncProperty(answers, async (answer) => {
          const laidOut = await indented(Buffer.from(JSON.stringify(answer)), pace);
          expect(laidOut.toString()).toBe(`${JSON.stringify(JSON.parse(JSON.stringify(answer)), null, 2)}\n`);
        }),
      );
    });
  },
);

test("each element of a list is mapped, and a resource as a whole", async () => {
  const map = async (text: string) => {
    const seen: unknown[] = [];
    await mapElements(Buffer.from(text), new Pace(), (element) => {
      seen.push(element);
      return "0";
    });
    return seen;
  };
  expect(await map('[{"a":[1,2]},"x"]')).toEqual([{ a: [1, 2] }, "x"]);
  expect(await map('{"total_count":2,"incomplete_results":false,"items":[1,[2]]}')).toEqual([1, [2]]);
  expect(await map("[]")).toEqual([[]]);
  expect(await map('{"items":[1]}')).toEqual([{ items: [1] }]);
});
