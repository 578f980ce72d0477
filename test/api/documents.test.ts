import { buildSchema, getVariableValues, type OperationDefinitionNode, parse } from "graphql";
import { expect, test } from "vitest";
import { Documents } from "../../src/api/graphql/documents/documents.ts";
import { Plans } from "../../src/api/graphql/run/plans.ts";

const schema = buildSchema(`
  type Query { node: Node }
  union Node = Issue | PullRequest
  enum IssueState { OPEN }
  enum PullRequestState { OPEN }
  type Author { name(short: Boolean): String, kind: IssueState }
  type Robot { name(short: Boolean): String, kind: PullRequestState }
  type Issue { state: IssueState, title: String, author: Author }
  type PullRequest { state: PullRequestState, title: String, author: Robot }
`);
const documents = new Documents(schema);

async function problemOf(text: string): Promise<string> {
  const read = await documents.read(text, "somebody");
  return "kind" in read ? "none" : read.map(({ message }) => message).join("\n");
}

test("fields of an issue and of a pull request may have one name and different types", async () => {
  const both = (fields: string) => `{ node { ... on Issue { ${fields} } ... on PullRequest { ${fields} } } }`;
  expect(await problemOf(both("state"))).toBe("none");
  expect(await problemOf(both("author { kind }"))).toBe("none");
  expect(await problemOf("{ node { ... on Issue { it: title } ... on PullRequest { it: state } } }")).toBe("none");
});

test("fields of one object may not have one name and ask for different things", async () => {
  expect(await problemOf("{ node { ... on Issue { it: title it: state } } }")).toContain(
    "field conflict: title or state",
  );
  expect(await problemOf("{ node { ... on Issue { author { name name(short: true) } } } }")).toContain(
    'argument conflict: {} or {short:"true"}',
  );
});

test("a difference of types hides no other one", async () => {
  const one = "it: author { name } its: author { kind }";
  const other = "it: author { name(short: true) } its: state";
  expect(await problemOf(`{ node { ... on Issue { ${one} } } node { ... on Issue { ${other} } } }`)).toContain(
    'argument conflict: {} or {short:"true"}',
  );
});

test("what is remembered of documents is bounded by the length of all their texts", async () => {
  const textOf = (one: number, length: number) =>
    `{ node { ... on Issue { ${Array.from({ length: length / 15 }, (_, at) => `a${one}_${String(at).padStart(5, "0")}: title `).join("")}} } }`;
  const short = textOf(0, 100);
  const first = await documents.read(short, "somebody");
  expect(await documents.read(short, "somebody")).toBe(first);
  for (let one = 1; one < 20; one++) await documents.read(textOf(one, 20_000), "somebody");
  expect(await documents.read(short, "somebody")).not.toBe(first);
  const long = textOf(1, 100_000);
  const again = await documents.read(textOf(2, 100), "somebody");
  await documents.read(long, "somebody");
  expect(await documents.read(textOf(2, 100), "somebody")).toBe(again);
});

test("plans are forgotten before all of them together have too many fields", () => {
  const plans = new Plans(schema);
  const { variableValues } = getVariableValues(schema, [], {});
  const planOf = (operation: OperationDefinitionNode) =>
    variableValues && plans.of([operation], operation, variableValues);
  const operationOf = (fields: number) => {
    const [operation] = parse(
      `{ ${Array.from({ length: fields }, (_, at) => `a${at}: __typename`).join(" ")} }`,
    ).definitions;
    if (operation?.kind !== "OperationDefinition") throw new Error("It was read as something else");
    return operation;
  };
  const first = operationOf(10);
  const plan = planOf(first);
  expect(planOf(first)).toBe(plan);
  for (let one = 0; one < 6; one++) planOf(operationOf(20_000));
  expect(planOf(first)).not.toBe(plan);
});
