import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { codeSpansOf, projectRoot, readPage } from "../docs/markdown.ts";
import { LONGEST } from "../support/longest-first.ts";
import { LONG, LONG_PARTS, longFilesOutside, QUICK } from "../tiers.ts";

test.each([...QUICK, ...LONG].flatMap(alternatives))("the tiers name %s, and there is such a file", (pattern) => {
  expect(globSync(pattern, { cwd: projectRoot })).not.toEqual([]);
});

test.each(LONGEST)("%s begins early, and is there", (path) => {
  expect(globSync(path, { cwd: projectRoot })).not.toEqual([]);
});

test("each long file is in one of the parts that CI runs", () => {
  const all = longFilesOutside(undefined);
  const parts = Array.from({ length: LONG_PARTS }, (_, at) => {
    const outside = new Set(longFilesOutside(String(at + 1)));
    return all.filter((file) => !outside.has(file));
  });
  expect(parts.flat().sort()).toEqual(all);
  for (const part of parts) expect(part.length).toBeGreaterThanOrEqual(Math.floor(all.length / LONG_PARTS));
  for (const wrong of ["0", String(LONG_PARTS + 1), "x"])
    expect(() => longFilesOutside(wrong)).toThrow("TAIN_LONG_PART");
  expect(readFileSync(join(projectRoot, ".ci/run"), "utf8")).toContain(`% ${LONG_PARTS} + 1`);
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
