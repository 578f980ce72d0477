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
  ["so is one whose end is known already", at("b"), push("a", "b"), at("b", "contradicted")],
  ["unless a write told it", at("b", "told"), push("a", "b"), at("b")],
  ["one of what nobody knows is a contradiction", undefined, push("a", "b"), at("b", "contradicted")],
  ["a push makes a ref", undefined, push(null, "a"), { ...at("a"), isNew: true }],
  ["and makes it again", gone, push(null, "b"), { ...at("b"), isNew: true }],
  ["not where it is another one", at("a"), push(null, "b"), { ...at("b", "contradicted"), isNew: true }],
  ["a push deletes a ref", at("a"), push("a", null), { sha: null, isGone: true, doubt: null }],
  ["not one that moved meanwhile", at("b"), push("a", null), { sha: null, isGone: true, doubt: "contradicted" }],
  ["nor one that is not there", gone, push("a", null), { sha: null, isGone: true, doubt: "contradicted" }],
  ["what is told to be made points nowhere yet", undefined, made, { ...at(null, "told"), isNew: true }],
  ["which its push says", at(null, "told"), push(null, "a"), { ...at("a"), isNew: true }],
  ["and is nothing new after its push", at("a"), made, null],
  ["what is told to be deleted is in doubt", at("a"), deleted, at("a", "told")],
  ["until its push", at("a", "told"), push("a", null), { sha: null, isGone: true, doubt: null }],
  ["and is nothing new after it", gone, deleted, null],
] as const)("%s", (_, known, told, next) => {
  expect(foldRef(known, told)).toEqual(next);
});

test.each([
  ["there and back", ["a", "b", "a"]],
  ["deleted and restored", ["a", null, "a"]],
  ["made and deleted", [null, "a", null]],
  ["a way through all", ["a", "b", null, "b", "a"]],
])("pushes that arrive in any order end where upstream ended, or leave a doubt: %s", (_, places) => {
  const [first = null] = places;
  const pushes = places.slice(1).map((after, at) => push(places[at] ?? null, after));
  for (const order of ordersOf(pushes)) {
    let known: KnownRef | undefined = first === null ? undefined : at(first);
    for (const told of order) known = foldRef(known, told) ?? known;
    const ended = known === undefined || known.isGone ? null : known.sha;
    expect(ended === places.at(-1) || known?.doubt === "contradicted", JSON.stringify(order)).toBe(true);
  }
});

function ordersOf<One>(all: readonly One[]): One[][] {
  if (all.length <= 1) return [[...all]];
  return all.flatMap((one, at) => ordersOf(all.toSpliced(at, 1)).map((rest) => [one, ...rest]));
}

test("branches and tags are told from other refs", () => {
  expect(["refs/heads/a/b", "refs/tags/v1", "refs/pull/1/head", "heads/a", "refs/heads/"].map(refNameOf)).toEqual([
    { kind: "heads", name: "a/b" },
    { kind: "tags", name: "v1" },
    ...[null, null, null],
  ]);
});
