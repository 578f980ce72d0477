import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { openCopy } from "./copy.ts";
import { failureIn } from "./finding.ts";
import { planted } from "./plant.ts";
import { plants } from "./plants.ts";

const checkout = fileURLToPath(new URL("../../", import.meta.url));

test.each(plants)("$name can be planted into the sources as they are", (plant) => {
  const text = readFileSync(`${checkout}${plant.file}`, "utf8");
  expect(planted(text, plant)).not.toBe(text);
  for (const file of plant.tests) expect(readFileSync(`${checkout}${file}`, "utf8")).toContain("test");
});

test("there is a plant for each property that tests enforce", () => {
  const page = readFileSync(`${checkout}docs/architecture.md`, "utf8");
  const properties = page.slice(page.indexOf("\n## Properties")).matchAll(/^(\d+)\. \*\*/gm);
  const bare = [...properties].map(([, number]) => Number(number));
  expect(bare.filter((number) => !plants.some(({ property }) => property === number))).toEqual([]);
  expect(new Set(plants.map(({ name }) => name)).size).toBe(plants.length);
});

test("a plant whose place is gone, or is not the only one, says so", () => {
  const plant = { name: "gap", file: "src/a.ts", replaces: [["one", "two"]] } as const;
  expect(planted("it is one", plant)).toBe("it is two");
  expect(() => planted("it is three", plant)).toThrow("gap: src/a.ts holds 0 times what is to be replaced: one");
  expect(() => planted("one by one", plant)).toThrow("holds 2 times");
});

test("a bug is in the copy alone, and gone once it has been looked for; one that cannot be read is refused", () => {
  using copy = openCopy(checkout);
  const [plant] = plants;
  if (!plant) throw new Error("There is no plant");
  const here = readFileSync(`${checkout}${plant.file}`, "utf8");
  const there = () => readFileSync(`${copy.root}/${plant.file}`, "utf8");
  {
    using _bug = copy.plant(plant);
    expect(there()).toBe(planted(here, plant));
    expect(readFileSync(`${checkout}${plant.file}`, "utf8")).toBe(here);
  }
  expect(there()).toBe(here);
  const [[from] = [""]] = plant.replaces;
  expect(() => copy.plant({ ...plant, replaces: [[from, "}}} if ("]] })).toThrow(SyntaxError);
  expect(there()).toBe(here);
});

test("of a report the test that failed is told, or the file that could not be prepared", () => {
  const passed = { status: "passed", fullName: "first" };
  const failed = { status: "failed", fullName: "second", failureMessages: ["\u001b[31mexpected 1 to be 2\nat line"] };
  const file = { name: "/copy/test/a.test.ts", status: "failed", message: "", assertionResults: [passed, failed] };
  expect(failureIn({ testResults: [file] }, "/copy")).toEqual({
    file: "test/a.test.ts",
    test: "test/a.test.ts: second",
    message: "expected 1 to be 2",
  });
  const unprepared = { ...file, message: "no store\nat line", assertionResults: [] };
  expect(failureIn({ testResults: [unprepared] }, "/copy")).toEqual({
    file: "test/a.test.ts",
    test: "test/a.test.ts, before its tests",
    message: "no store",
  });
  expect(() => failureIn({ testResults: [] }, "/copy")).toThrow("names none");
});
