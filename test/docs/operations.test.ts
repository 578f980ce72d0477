import { expect, test } from "vitest";
import { CHECKS } from "../../src/cli/doctor/finding.ts";
import { readPage } from "./markdown.ts";

/** The rows of the page's tables that say what the doctor finds. */
const rows = readPage("docs/operations.md")
  .split("\n\n")
  .filter((block) => block.startsWith("| what | check |"))
  .flatMap((table) => table.split("\n").slice(2))
  .map((row) => row.split(" | "));
const checksOf = (row: string[]) => [...(row[1] ?? "").matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name);
const tests = ["cli/doctor", "cli/app", "operator/health"].map((name) => readPage(`test/${name}.test.ts`)).join("\n");

test("each line of the page has checks of the doctor's, or says that there is none", () => {
  expect(rows.length).toBeGreaterThan(30);
  expect(rows.filter((row) => checksOf(row).length === 0 && row[1] !== "—")).toEqual([]);
  expect(rows.flatMap(checksOf).filter((name) => !(name in CHECKS))).toEqual([]);
});

test.each(Object.keys(CHECKS))("%s is on the page, and a test breaks what it looks at", (check) => {
  expect(rows.flatMap(checksOf)).toContain(check);
  expect(tests).toMatch(new RegExp(`"(warning|problem) ${check}"`));
});
