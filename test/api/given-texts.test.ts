import { parse } from "graphql";
import { expect, test } from "vitest";
import { textsGiven } from "../../src/api/graphql/forward/given.ts";

test("texts are found wherever they stand within arguments, with the name beside them", () => {
  const document = parse(`query($id: ID!, $in: In!, $more: [ID!] = ["d"], $gone: ID) {
    node(id: $id) { id } nodes(ids: ["a", $gone, "b"]) { id }
    do(input: { subjectId: "c", state: OPEN, count: 1, inner: { labelIds: $more } }) other(input: $in) { id } }`);
  expect(textsGiven(document, { id: "x", in: { pullId: "y", list: [{ labelId: "z" }] } })).toEqual([
    { name: "id", text: "x" },
    { name: "ids", text: "a" },
    { name: "ids", text: "b" },
    { name: "subjectId", text: "c" },
    { name: "state", text: "OPEN" },
    { name: "labelIds", text: "d" },
    { name: "pullId", text: "y" },
    { name: "labelId", text: "z" },
  ]);
});

test("a variable is looked into once for each name, however many arguments use it", () => {
  const aliases = Array.from(
    { length: 100 },
    (_, at) => `a${at}: nodes(ids: $ids) { id } b${at}: node(id: $ids) { id }`,
  );
  const ids = Array.from({ length: 50 }, (_, at) => `id ${at}`);
  expect(textsGiven(parse(`query($ids: [ID!]!) { ${aliases.join(" ")} }`), { ids })).toHaveLength(2 * ids.length);
});
