import { buildSchema } from "graphql";
import { expect, test } from "vitest";
import { Documents } from "../../src/api/graphql/run/documents.ts";

const documents = new Documents(
  buildSchema(`
    type Query { node: Node }
    union Node = Issue | PullRequest
    enum IssueState { OPEN }
    enum PullRequestState { OPEN }
    type Author { name(short: Boolean): String, kind: IssueState }
    type Robot { name(short: Boolean): String, kind: PullRequestState }
    type Issue { state: IssueState, title: String, body: String, author: Author }
    type PullRequest { state: PullRequestState, title: String, body: String, author: Robot }
  `),
);

function problemOf(issue: string, pull: string): string | null {
  const read = documents.read(`{ node { ... on Issue { ${issue} } ... on PullRequest { ${pull} } } }`);
  return "kind" in read ? null : read.map(({ message }) => message).join("\n");
}

test("fields of one name may differ in their types, also deeper down", () => {
  expect(problemOf("state", "state")).toBeNull();
  expect(problemOf("author { kind }", "author { kind }")).toBeNull();
});

test("fields of one name may not differ in what they ask for", () => {
  expect(problemOf("it: title", "it: body")).toContain("different fields");
  expect(problemOf("author { name(short: true) }", "author { name }")).toContain("differing arguments");
});

test("a difference of types hides no other one", () => {
  expect(problemOf("author { kind it: name }", "author { kind it: name(short: true) }")).toContain(
    "differing arguments",
  );
});
