import { expect, test } from "vitest";
import { addedTo, type ReadCommit } from "../../src/mirror/store/history.ts";

const commit = (text: string): ReadCommit => {
  const [sha = "", ...parents] = text.split(" ");
  return { sha, parents, fields: {} };
};
const meet = (known: string[], read: string[]) => {
  const all = known.map(commit);
  const isKnown = (sha: string) => all.some((one) => one.sha === sha);
  const met = addedTo({ known: all.slice(0, read.length), head: all[0]?.sha ?? "", isKnown }, read.map(commit));
  return met && { added: met.added.map(({ sha }) => sha), next: met.next };
};

const LINE = ["c b", "b a", "a"];

test("a new head that stands on the known one adds what lies between", () => {
  expect(meet(LINE, ["e d", "d c"])).toEqual({ added: ["e", "d"], next: ["c"] });
  expect(meet(LINE, ["e d", "d c", "c b"])).toEqual({ added: ["e", "d"], next: ["b"] });
  expect(meet(LINE, ["d c", "c b", "b a", "a"])).toEqual({ added: ["d"], next: [] });
});

test("a merge meets the known history where nothing of its branch is left", () => {
  // `x` left at `b`, and was merged by `m`.
  expect(meet(LINE, ["m c x"])).toBeNull();
  expect(meet(LINE, ["m c x", "x b"])).toBeNull();
  expect(meet(LINE, ["m c x", "x b", "c b"])).toEqual({ added: ["m", "x"], next: ["b"] });
  // Its commit is older than some of the branch that it was merged to.
  expect(meet(LINE, ["m c x", "c b", "x b"])).toEqual({ added: ["m", "x"], next: ["b"] });
  expect(meet(LINE, ["m c x", "c b", "b a", "x a"])).toEqual({ added: ["m", "x"], next: ["a"] });
});

test("a head that has lost commits does not meet the known history", () => {
  expect(meet(LINE, ["d b"])).toBeNull();
  expect(meet(LINE, ["d b", "b a"])).toBeNull();
  expect(meet(LINE, ["d b", "b a", "a"])).toBeNull();
  expect(meet(LINE, ["b a", "a"])).toBeNull();
  expect(meet(LINE, ["y x", "x"])).toBeNull();
});

test("commits that have not come up yet may come in any place", () => {
  // `n` stands on `b` alone, and `c` may come later or never.
  expect(meet(["c b", "b a", "a"], ["m n c", "n b"])).toBeNull();
  expect(meet(["c b", "b a", "a"], ["m n c", "n b", "b a"])).toBeNull();
  expect(meet(["c b", "b a", "a"], ["m n c", "n b", "b a", "c b"])).toEqual({ added: ["m", "n"], next: ["a"] });
});
