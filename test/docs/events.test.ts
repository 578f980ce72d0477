import { expect, test } from "vitest";
import { hasTest, readPage } from "./markdown.ts";

interface Promised {
  section: string;
  number: number;
  /** The tests that it names, each in the file that stands before it, or else in that of its section. */
  tests: { file: string; title: string }[];
}

const FILE = /`(test\/[\w/.-]+\.test\.ts)`/;
/** A file, or a title. */
const NAMES = new RegExp(`${FILE.source}|"([^"]+)"`, "g");

function promisesOf(page: string): Promised[] {
  return page.split(/^## /m).flatMap((section) => {
    const [heading = ""] = section.split("\n", 1);
    const [above = "", ...items] = section.split(/^(?=\d+\. )/m);
    const [, default_ = ""] = FILE.exec(above) ?? [];
    return items.map((item) => {
      // What follows the list begins at the margin.
      const [text = ""] = item.split(/\n\n(?=\S)/);
      let file = default_;
      const tests: Promised["tests"] = [];
      for (const [, named, title] of text.replace(/\s+/g, " ").matchAll(NAMES)) {
        if (named) file = named;
        if (title) tests.push({ file, title });
      }
      return { section: heading, number: Number.parseInt(text, 10), tests };
    });
  });
}

const promises = promisesOf(readPage("docs/events.md"));
const named = promises.flatMap(({ section, number, tests }) => tests.map((one) => ({ section, number, ...one })));

test.each(named)("$section $number: $file has the test $title", ({ file, title }) =>
  expect(hasTest(file, title)).toBe(true),
);

test("each numbered promise names a test", () => {
  expect(promises.length).toBeGreaterThan(35);
  expect(promises.filter(({ tests }) => tests.length === 0)).toEqual([]);
});
