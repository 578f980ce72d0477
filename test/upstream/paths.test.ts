import { expect, test } from "vitest";
import { isSafePath } from "../../src/upstream/protocol/paths.ts";

test.each([
  "/repos/o/r/labels/..",
  "/repos/o/r/labels/.",
  "/repos/o/r/labels/%2e%2e",
  "/repos/o/r/labels/%2E.",
  "/repos/o/r/labels/%252e%252e",
  "/repos/o/r/labels/%25252e%25252e",
  "/repos/o/r/labels/..%2F..%2F..%2Fuser",
  "/repos/o/r/labels/a%2F..%2Fb",
  "/repos/o/r/labels/a\\b",
  "/repos/o/r/labels/a%5C..%5Cb",
  "/repos/o/r/labels/a%00b",
  "/repos/o/r/labels/a%0D%0Ab",
  "/repos/o/r/labels/\u007f",
  "/repos/o/r/labels/%252525252525252e%252525252525252e",
  "/..",
  "..",
])("%s is not sent", (path) => {
  expect(isSafePath(path)).toBe(false);
  expect(isSafePath(`${path}?per_page=1`)).toBe(false);
});

test.each([
  "/",
  "/repos/o/r/issues",
  "/repos/o/.github/issues",
  "/repos/o/..r/labels/a..b",
  "/repos/o/r/labels/kind%2Fbug",
  "/repos/o/r/labels/50%25",
  "/repos/o/r/labels/a%5Cb",
  "/repos/o/r/labels/%7f",
  "/repos/o/r/labels/%F0%9F%92%A9",
  "/repos/o/r/compare/v1...v2",
  "/search/issues?q=..%2F..",
  "/repos/o/r/labels/%E0%A4",
])("%s is sent", (path) => {
  expect(isSafePath(path)).toBe(true);
});
