import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectRoot, readPage } from "./markdown.ts";

const page = readPage("docs/security.md");
/** Up to where the page turns from claims to advice. */
const [claims = ""] = page.split("## Before others can reach it");

const shown = [...claims.replace(/\n {2}/g, " ").matchAll(/`(test\/[\w/.-]+\.test\.ts)`: "([^"]+)"/g)].map(
  ([, file = "", title = ""]) => ({ file, title }),
);

test.each(shown)("$file has the test $title", ({ file, title }) => {
  const path = join(projectRoot, file);
  expect(existsSync(path)).toBe(true);
  expect(readFileSync(path, "utf8")).toMatch(new RegExp(`(test|check)\\(\\s*"${RegExp.escape(title)}"`));
});

test("each claim names one", () => {
  expect(claims.match(/^- /gm)).toHaveLength(shown.length);
});
