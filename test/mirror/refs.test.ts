import { expect, test } from "vitest";
import { foldRef, type KnownRef, refNameOf } from "../../src/mirror/store/refs.ts";

const at = (sha: string | null, doubt: KnownRef["doubt"] = null): KnownRef => ({ sha, isGone: false, doubt });
const gone: KnownRef = { sha: "a", isGone: true, doubt: null };
const push = (before: string | null, after: string | null) => ({ before, after });
const made = { before: null, after: undefined };
const deleted = { before: undefined, after: null };

test.each([
  ["a push moves what is where it began", at("a"), push("a", "b"), at("b")],
  ["one that began elsewhere is a contradiction", at("a"), push("x", "b"), at("b", "contradicted")],
  ["which later pushes do not solve", at("b", "contradicted"), push("b", "c"), at("c", "contradicted")],
  ["one whose end was read already says nothing", at("b"), push("a", "b"), null],
  ["one of what nobody knows is a contradiction", undefined, push("a", "b"), at("b", "contradicted")],
  ["a push makes a ref", undefined, push(null, "a"), { ...at("a"), isNew: true }],
  ["and makes it again", gone, push(null, "b"), { ...at("b"), isNew: true }],
  ["not where it is another one", at("a"), push(null, "b"), { ...at("b", "contradicted"), isNew: true }],
  ["a push deletes a ref", at("a"), push("a", null), { sha: null, isGone: true, doubt: null }],
  ["not one that moved meanwhile", at("b"), push("a", null), { sha: null, isGone: true, doubt: "contradicted" }],
  ["to delete what is not there says nothing", gone, push("a", null), null],
  ["what is told to be made points nowhere yet", undefined, made, { ...at(null, "told"), isNew: true }],
  ["which its push says", at(null, "told"), push(null, "a"), { ...at("a"), isNew: true }],
  ["and is nothing new after its push", at("a"), made, null],
  ["what is told to be deleted is in doubt", at("a"), deleted, at("a", "told")],
  ["until its push", at("a", "told"), push("a", null), { sha: null, isGone: true, doubt: null }],
  ["and is nothing new after it", gone, deleted, null],
] as const)("%s", (_, known, told, next) => {
  expect(foldRef(known, told)).toEqual(next);
});

test("branches and tags are told from other refs", () => {
  expect(["refs/heads/a/b", "refs/tags/v1", "refs/pull/1/head", "heads/a", "refs/heads/"].map(refNameOf)).toEqual([
    { kind: "heads", name: "a/b" },
    { kind: "tags", name: "v1" },
    ...[null, null, null],
  ]);
});
