import { globSync } from "node:fs";
import { expect, test } from "vitest";
import { projectRoot } from "../docs/markdown.ts";
import { QUICK } from "../quick.ts";
import { LONGEST } from "../support/longest-first.ts";

test.each(QUICK.flatMap(alternatives))("the quick tests name %s, and there is such a file", (pattern) => {
  expect(globSync(pattern, { cwd: projectRoot })).not.toEqual([]);
});

test.each(LONGEST)("%s begins early, and is there", (path) => {
  expect(globSync(path, { cwd: projectRoot })).not.toEqual([]);
});

/** `a/{b,c}.ts` → `a/b.ts` and `a/c.ts`, since a glob says nothing of an alternative that fits no file. */
function alternatives(pattern: string): string[] {
  const [, before, names = "", after] = /^(.*)\{(.*)\}(.*)$/.exec(pattern) ?? [];
  return names === "" ? [pattern] : names.split(",").map((name) => `${before}${name}${after}`);
}
