/** Documents of which the mirror has a part: how much work it takes to find that part, and on which thread. */
import { type FieldNode, print } from "graphql";
import { afterAll, expect, test } from "vitest";
import { Documents, openValidation, type Reduced } from "../../src/api/graphql/documents/documents.ts";
import { apiSchema } from "../../src/api/graphql/schema.ts";
import { TooMuchWorkError } from "../../src/work/thread.ts";
import { ENDLESS_DOCUMENTS } from "../corpus/known-attacks.ts";
import { clientDocuments } from "../documents/all.ts";

const schema = apiSchema();
const thread = openValidation();
afterAll(() => thread.close());

const asked = { caller: "somebody", help: "Ask the service." };
/** Long enough for the thread. */
const lengthened = (text: string) => `${text}\n#${"x".repeat(5_000)}`;

/** Documents whose long texts the thread reads, and what it was given to do. */
function watched() {
  const tasks: string[] = [];
  const documents = new Documents(schema, {
    run: (task) => {
      tasks.push(task.of);
      return thread.run(task);
    },
  });
  return { documents, tasks };
}

/** What each error says of which field, and where that stands. */
function lacksIn({ unheld }: Reduced) {
  const places = ({ alias, loc }: FieldNode) => [alias?.value, loc?.startToken.line, loc?.startToken.column];
  return [...unheld].map(([node, { error, isRequired }]) => [...places(node), error.message, isRequired]);
}

test.each(ENDLESS_DOCUMENTS)("what is made anew at each of its places is bounded: $name", async ({ query }) => {
  const { documents } = watched();
  for (const text of [query, lengthened(query)]) {
    expect("kind" in (await documents.read(text, "somebody"))).toBe(false);
    expect(await documents.reduced(text, asked)).toBeNull();
  }
});

test("the thread leaves the same of a document as this one", async () => {
  const { documents, tasks } = watched();
  const here = new Documents(schema);
  let compared = 0;
  for (const { query } of clientDocuments) {
    const left = query.startsWith("mutation") ? null : await here.reduced(query, asked);
    if (!left) continue;
    const other = await documents.reduced(lengthened(query), asked);
    expect(other && print(other.document)).toBe(print(left.document));
    expect(other && lacksIn(other)).toEqual(lacksIn(left));
    compared += lacksIn(left).length;
  }
  expect(compared).toBeGreaterThan(35);
  expect(new Set(tasks)).toEqual(new Set(["reduced"]));
});

test("a short text that is long once it is reduced is the thread's", async () => {
  const { documents, tasks } = watched();
  const one = "{ viewer { login nope: isHireable } }";
  expect(await documents.reduced(one, asked)).not.toBeNull();
  expect(tasks).toEqual([]);
  const fields = Array.from({ length: 200 }, (_, at) => `a${at}: id`).join(" ");
  const many = `query($id: ID!) { node(id: $id) { ... on Subscribable { ... on Node { ... on Subscribable { ... on Node { ${fields} } } } } } }`;
  expect(await documents.reduced(many, asked)).not.toBeNull();
  expect(tasks).toEqual(["reduced"]);
});

test("what was too much for the thread is not tried again", async () => {
  let tried = 0;
  const tooMuch = async () => {
    tried += 1;
    throw new TooMuchWorkError("It took too long");
  };
  const documents = new Documents(schema, { run: tooMuch });
  for (const _ of [1, 2]) {
    expect(await documents.reduced(lengthened("{ viewer { login isHireable } }"), asked)).toBeNull();
    expect(tried).toBe(1);
  }
});

test("nesting is bounded, whatever is nested", async () => {
  const documents = new Documents(schema);
  const nested = (levels: number) => `{ viewer { ${"... { ".repeat(levels)} login ${"}".repeat(levels)} } }`;
  expect("kind" in (await documents.read(nested(500), "somebody"))).toBe(true);
  for (const levels of [700, 6_000])
    expect(await documents.read(nested(levels), "somebody")).toMatchObject([
      { message: expect.stringContaining("nested deeper") },
    ]);
});

test("operations count together, and so do fragments that none of them spreads", async () => {
  const documents = new Documents(schema);
  const doubling = (from: number) =>
    Array.from({ length: 14 - from }, (_, at) => {
      const inner = from + at === 13 ? "login" : `... F${from + at + 1}`;
      const fields = ["a", "b"].map((name) => `${name}: repository(name: "x") { owner { ${inner} } }`).join(" ");
      return `fragment F${from + at} on User { ${fields} }`;
    }).join(" ");
  const operations = (...names: string[]) => names.map((name) => `query ${name} { viewer { ... F3 } }`).join(" ");
  expect("kind" in (await documents.read(`${operations("A")} ${doubling(3)}`, "somebody"))).toBe(true);
  for (const text of [`${operations("A", "B")} ${doubling(3)}`, `{ viewer { login } } ${doubling(1)}`])
    expect(await documents.read(text, "somebody")).toMatchObject([
      { extensions: { type: "RESOURCE_LIMITS_EXCEEDED" } },
    ]);
});
