import { expect, test } from "vitest";
import { References } from "../../src/mirror/documents.ts";

test("people are the same in all repositories, and labels are each repository's own", () => {
  const references = new References();
  expect(references.of("u7:5f3a9c01", 1)).toBe(references.of("u7:5f3a9c01", 2));
  for (const repositoryId of [1, 2, 1])
    expect(references.of("l7:5f3a9c01", repositoryId)).toEqual({
      key: { kind: "l", repositoryId, id: 7 },
      name: `l${repositoryId}/7`,
      shape: "5f3a9c01",
      login: null,
    });
});

test("after more references than are kept, each still stands for its own row", () => {
  const references = new References();
  const ids = Array.from({ length: 50_000 }, (_, at) => at);
  for (const repositoryId of [1, 2])
    for (const id of ids) references.of(`${id % 2 === 0 ? "l" : "u"}${id}:00000000`, repositoryId);
  const names = (repositoryId: number) =>
    ["l20000", "u20001"].map((mark) => references.of(`${mark}:0`, repositoryId).name);
  expect(names(1)).toEqual(["l1/20000", "u20001"]);
  expect(names(2)).toEqual(["l2/20000", "u20001"]);
});
