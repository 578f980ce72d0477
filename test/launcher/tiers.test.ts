import { globSync } from "node:fs";
import { expect, test } from "vitest";
import { codeSpansOf, projectRoot, readPage } from "../docs/markdown.ts";
import { LONGEST } from "../support/longest-first.ts";
import { LONG, QUICK } from "../tiers.ts";

test.each([...QUICK, ...LONG].flatMap(alternatives))("the tiers name %s, and there is such a file", (pattern) => {
  expect(globSync(pattern, { cwd: projectRoot })).not.toEqual([]);
});

test.each(LONGEST)("%s begins early, and is there", (path) => {
  expect(globSync(path, { cwd: projectRoot })).not.toEqual([]);
});

const [, properties = ""] = readPage("docs/architecture.md").split("\n## Properties\n");
const numbered = [...properties.matchAll(/^(\d+)\. ([\s\S]*?)(?=^\d+\. |^#|(?![\s\S]))/gm)];

test("the architecture numbers its properties", () => {
  expect(numbered.map(([, number]) => Number(number))).toEqual(Array.from({ length: 15 }, (_, at) => at + 1));
});

test.each(numbered.map(([, number, text]) => [number, text] as const))(
  "property %s has a test in `npm test`",
  (_, text = "") => {
    const long = new Set(globSync(LONG, { cwd: projectRoot }));
    const files = globSync(
      codeSpansOf(text).filter((span) => span.startsWith("test/")),
      { cwd: projectRoot },
    );
    expect(files.filter((file) => !long.has(file))).not.toEqual([]);
  },
);

/** `a/{b,c}.ts` → `a/b.ts` and `a/c.ts`, since a glob says nothing of an alternative that fits no file. */
function alternatives(pattern: string): string[] {
  const [, before, names = "", after] = /^(.*)\{(.*)\}(.*)$/.exec(pattern) ?? [];
  return names === "" ? [pattern] : names.split(",").map((name) => `${before}${name}${after}`);
}
