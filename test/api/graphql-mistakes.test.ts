import { afterAll, beforeAll, expect, test } from "vitest";
import { askAt } from "../support/asking.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

let world: ApiWorld;
beforeAll(async () => {
  world = await openApiWorld({ issues: 4 });
});
afterAll(() => world?.[Symbol.asyncDispose]());

async function errorsOf(query: string, variables: object): Promise<unknown[]> {
  const { status, body } = await world.query(query, variables);
  expect(status).toBe(200);
  return body.errors;
}

/** What the simulated service says to the same question. */
async function errorsOfUpstream(query: string, variables: object): Promise<unknown[]> {
  const body = JSON.stringify({ query, variables });
  return (await askAt(world.upstream.url, "POST", "/graphql", { token: UPSTREAM_TOKEN, body })).body.errors;
}

const asked = 'repository(owner: "o", name: "n")';
const coerced = (value: unknown, type: string) => `Could not coerce value ${JSON.stringify(value)} to ${type}`;
const NOT_NULL = "Expected value to not be null";

test.each<[string, string, unknown, { path: (string | number)[]; explanation: string }[]]>([
  ["a text for a number", "Int!", "1", [{ path: [], explanation: coerced("1", "Int") }]],
  ["a fraction for a number", "Int", 1.5, [{ path: [], explanation: coerced(1.5, "Int") }]],
  ["an object for a text", "String", { a: 1 }, [{ path: [], explanation: coerced({ a: 1 }, "String") }]],
  ["nothing", "Int!", null, [{ path: [], explanation: NOT_NULL }]],
  ["no variable", "ID!", undefined, [{ path: [], explanation: NOT_NULL }]],
  [
    "members of a list",
    "[ID!]!",
    ["a", null, true],
    [
      { path: [1], explanation: NOT_NULL },
      { path: [2], explanation: coerced(true, "ID") },
    ],
  ],
  [
    "keys of an object",
    "CreateIssueInput!",
    { repositoryId: "R_1", title: null, body: 7 },
    [
      { path: ["body"], explanation: coerced(7, "String") },
      { path: ["title"], explanation: NOT_NULL },
    ],
  ],
  ["a missing key", "CreateIssueInput!", { title: "t" }, [{ path: ["repositoryId"], explanation: NOT_NULL }]],
  [
    "a word that no enum has",
    "[IssueState!]",
    ["OPEN", "SHUT"],
    [{ path: [1], explanation: 'Expected "SHUT" to be one of: CLOSED, OPEN' }],
  ],
  [
    "a text for an object",
    "IssueOrder",
    "newest",
    [{ path: [], explanation: 'Expected "newest" to be a key-value object.' }],
  ],
])("%s in a variable is told in the service's words", async (_, type, value, problems) => {
  const isMutation = type.startsWith("Create");
  const uses: Record<string, string> = {
    "Int!": `${asked} { issue(number: $v) { id } }`,
    Int: `${asked} { issues(first: $v) { totalCount } }`,
    String: `${asked} { issues(first: 1, after: $v) { totalCount } }`,
    "ID!": "node(id: $v) { id }",
    "[ID!]!": "nodes(ids: $v) { id }",
    "[IssueState!]": `${asked} { issues(first: 1, states: $v) { totalCount } }`,
    IssueOrder: `${asked} { issues(first: 1, orderBy: $v) { totalCount } }`,
    "CreateIssueInput!": "createIssue(input: $v) { issue { id } }",
  };
  const query = `${isMutation ? "mutation" : "query"}($v: ${type}) { ${uses[type]} }`;
  const errors = await errorsOf(query, { v: value });
  expect(await errorsOfUpstream(query, { v: value })).toEqual(errors);
  const inner = problems
    .filter(({ path }) => path.length > 0)
    .map((one) => `${one.path.join(".")} (${one.explanation})`);
  expect(errors).toEqual([
    {
      message: `Variable $v of type ${type} was provided invalid value${inner.length > 0 ? ` for ${inner.join(", ")}` : ""}`,
      locations: [{ line: 1, column: isMutation ? 10 : 7 }],
      extensions: { value: value ?? null, problems },
    },
  ]);
});

test.each<[string, string, string, (string | number)[], object]>([
  [
    "a missing argument",
    '{ repository(owner: "x") { name } }',
    "Field 'repository' is missing required arguments: name",
    ["query", "repository"],
    { code: "missingRequiredArguments", className: "Field", name: "repository", arguments: "name" },
  ],
  [
    "all that are missing",
    "{ repository { name } }",
    "Field 'repository' is missing required arguments: name, owner",
    ["query", "repository"],
    { code: "missingRequiredArguments", className: "Field", name: "repository", arguments: "name, owner" },
  ],
  [
    "a value of another type",
    `query Q { a: ${asked} { issues(first: "1") { totalCount } } }`,
    `Argument 'first' on Field 'issues' has an invalid value ("1"). Expected type 'Int'.`,
    ["query Q", "a", "issues", "first"],
    { code: "argumentLiteralsIncompatible", typeName: "Field", argumentName: "first" },
  ],
  [
    "a variable that is not used",
    "query($x: Int) { viewer { login } }",
    "Variable $x is declared by anonymous query but not used",
    ["query"],
    { code: "variableNotUsed", variableName: "x" },
  ],
  [
    "a variable that is not declared",
    `query Q { ${asked} { issue(number: $n) { id } } }`,
    "Variable $n is used by Q but not declared",
    ["query Q", "repository", "issue", "number"],
    { code: "variableNotDefined", variableName: "n" },
  ],
  [
    "a variable of another type",
    `query($n: String!) { ${asked} { issue(number: $n) { id } } }`,
    "Type mismatch on variable $n and argument number (String! / Int!)",
    ["query", "repository", "issue", "number"],
    {
      code: "variableMismatch",
      variableName: "n",
      typeName: "String!",
      argumentName: "number",
      errorMessage: "Type mismatch",
    },
  ],
  [
    "a variable that may be null",
    `query($n: Int) { ${asked} { issue(number: $n) { id } } }`,
    "Nullability mismatch on variable $n and argument number (Int / Int!)",
    ["query", "repository", "issue", "number"],
    {
      code: "variableMismatch",
      variableName: "n",
      typeName: "Int",
      argumentName: "number",
      errorMessage: "Nullability mismatch",
    },
  ],
  [
    "an object without fields",
    "{ viewer }",
    "Field must have selections (field 'viewer' returns User but has no selections. Did you mean 'viewer { ... }'?)",
    ["query", "viewer"],
    { code: "selectionMismatch", nodeName: "field 'viewer'", typeName: "User" },
  ],
  [
    "fields of a scalar",
    "{ viewer { login { x } } }",
    `Selections can't be made on scalars (field 'login' returns String but has selections ["x"])`,
    ["query", "viewer", "login"],
    { code: "selectionMismatch", nodeName: "field 'login'", typeName: "String" },
  ],
  [
    "a fragment that is not there",
    "{ viewer { ...F } }",
    "Fragment F was used, but not defined",
    ["query", "viewer", "... F"],
    { code: "useAndDefineFragment", fragmentName: "F" },
  ],
  [
    "a fragment that is not used",
    "fragment F on User { login } { viewer { login } }",
    "Fragment F was defined, but not used",
    ["fragment F"],
    { code: "useAndDefineFragment", fragmentName: "F" },
  ],
  [
    "a text that is no time",
    `{ ${asked} { issues(first: 1, filterBy: { since: "nope" }) { totalCount } } }`,
    `Argument 'since' on InputObject 'IssueFilters' has an invalid value ("nope"). Expected type 'DateTime'.`,
    ["query", "repository", "issues", "filterBy", "since"],
    { code: "argumentLiteralsIncompatible", typeName: "InputObject", argumentName: "since" },
  ],
  [
    "a query of nothing",
    "{}",
    "Field must have selections (anonymous query returns Query but has no selections. Did you mean ' { ... }'?)",
    ["query"],
    { code: "selectionMismatch", nodeName: "anonymous query", typeName: "Query" },
  ],
  [
    "a named query of nothing",
    "query Q {}",
    "Field must have selections (query 'Q' returns Query but has no selections. Did you mean 'Q { ... }'?)",
    ["query Q"],
    { code: "selectionMismatch", nodeName: "query 'Q'", typeName: "Query" },
  ],
  [
    "an object in empty brackets",
    "{ viewer {} }",
    "Field must have selections (field 'viewer' returns User but has no selections. Did you mean 'viewer { ... }'?)",
    ["query", "viewer"],
    { code: "selectionMismatch", nodeName: "field 'viewer'", typeName: "User" },
  ],
  [
    "a fragment on a scalar",
    "{ viewer { ... on String { id } } }",
    "Invalid fragment on type String (must be Union, Interface or Object)",
    ["query", "viewer", "... on String"],
    { code: "fragmentOnNonCompositeType", typeName: "String" },
  ],
  [
    "a directive where it cannot stand",
    "query @skip(if: true) { viewer { login } }",
    "'@skip' can't be applied to queries (allowed: fields, fragment spreads, inline fragments)",
    ["query"],
    { code: "directiveCannotBeApplied", targetName: "queries", name: "skip" },
  ],
  [
    "a value that its enum has not",
    `{ ${asked} { issues(first: 1, orderBy: { field: AGE, direction: ASC }) { totalCount } } }`,
    "Argument 'field' on InputObject 'IssueOrder' has an invalid value (AGE). Expected type 'IssueOrderField!'.",
    ["query", "repository", "issues", "orderBy", "field"],
    { code: "argumentLiteralsIncompatible", typeName: "InputObject", argumentName: "field" },
  ],
])("%s is the caller's mistake, and no lack of the mirror", async (_, query, message, path, extensions) => {
  expect(await errorsOf(query, {})).toEqual([{ message, path, extensions, locations: [expect.any(Object)] }]);
});

// graphql-ruby's own tests and answers of the service in public threads show these words, codes and places.
test.each<[string, string, string, number[], string[], object]>([
  [
    "operations without a name",
    "{ viewer { login } } query B { viewer { id } } { viewer { id } }",
    "Operation name is required when multiple operations are present",
    [1, 48],
    [],
    { code: "uniquelyNamedOperations" },
  ],
  [
    "operations of one name",
    "query A { viewer { login } } query A { viewer { id } } query A { viewer { id } }",
    'Operation name "A" must be unique',
    [1, 30, 56],
    [],
    { code: "uniquelyNamedOperations", operationName: "A" },
  ],
  [
    "fragments of one name",
    "{ viewer { ...A } } fragment A on User { login } fragment A on User { id }",
    'Fragment name "A" must be unique',
    [21, 50],
    [],
    { code: "fragmentNotUnique", fragmentName: "A" },
  ],
  [
    "arguments of one name",
    '{ repository(owner: "a", owner: "b", name: "c") { id } }',
    'There can be only one argument named "owner"',
    [14, 26],
    ["query", "repository"],
    { code: "argumentNotUnique", name: "owner" },
  ],
  [
    "variables of one name",
    `query($n: Int!, $n: Int!) { ${asked} { issue(number: $n) { id } } }`,
    'There can only be one variable named "n"',
    [7, 17],
    ["query"],
    { code: "variableNotUnique", variableName: "n" },
  ],
  [
    "directives of one name",
    "{ viewer { login @skip(if: false) @skip(if: false) } }",
    'The directive "skip" can only be used once at this location.',
    [18, 35],
    ["query", "viewer", "login"],
    { code: "directiveNotUniqueForLocation", directiveName: "skip" },
  ],
  [
    "two fields under one name",
    "{ viewer { x: login x: id } }",
    "Field 'x' has a field conflict: login or id?",
    [12, 21],
    [],
    { code: "fieldConflict", fieldName: "x", conflicts: "login or id" },
  ],
  [
    "one field with several arguments",
    `{ ${asked} { issue(number: 1) { id } issue(number: 2) { id } issue(number: 3) { id } } }`,
    `Field 'issue' has an argument conflict: {number:"1"} or {number:"2"} or {number:"3"}?`,
    [39, 63, 87],
    [],
    { code: "fieldConflict", fieldName: "issue", conflicts: '{number:"1"} or {number:"2"} or {number:"3"}' },
  ],
  [
    "texts among the arguments",
    '{ repository(owner: "o", name: "n") { id } repository(owner: "o", name: "m") { id } }',
    String.raw`Field 'repository' has an argument conflict: {owner:"\"o\"",name:"\"n\""} or {owner:"\"o\"",name:"\"m\""}?`,
    [3, 44],
    [],
    {
      code: "fieldConflict",
      fieldName: "repository",
      conflicts: String.raw`{owner:"\"o\"",name:"\"n\""} or {owner:"\"o\"",name:"\"m\""}`,
    },
  ],
])("%s are told once, with all their places", async (_, query, message, columns, path, extensions) => {
  const locations = columns.map((column) => ({ line: 1, column }));
  expect(await errorsOf(query, {})).toEqual([{ message, path, extensions, locations }]);
});

test("a loop of fragments is told for each of them", async () => {
  const query = "{ viewer { ...A } } fragment A on User { ...B } fragment B on User { ...A }";
  expect(await errorsOf(query, {})).toEqual(
    [
      ["A", 21],
      ["B", 49],
    ].map(([fragmentName, column]) => ({
      message: `Fragment ${fragmentName} contains an infinite loop`,
      path: [`fragment ${fragmentName}`],
      extensions: { code: "infiniteLoop", fragmentName },
      locations: [{ line: 1, column }],
    })),
  );
});

test.each([
  [
    "a field",
    "{ viewer { shoeSize } }",
    "Field 'shoeSize' doesn't exist on type 'User'",
    ["query", "viewer", "shoeSize"],
    { code: "undefinedField", typeName: "User", fieldName: "shoeSize" },
  ],
  [
    "an argument",
    "{ viewer(size: 1) { login } }",
    "Field 'viewer' doesn't accept argument 'size'",
    ["query", "viewer", "size"],
    { code: "argumentNotAccepted", name: "viewer", typeName: "Field", argumentName: "size" },
  ],
  [
    "a type",
    "{ viewer { ... on Shoe { size } } }",
    "No such type Shoe, so it can't be a fragment condition",
    ["query", "viewer", "... on Shoe"],
    { code: "undefinedType", typeName: "Shoe" },
  ],
])("%s that the mirror does not know may be a lack of the mirror", async (_, query, message, path, extensions) => {
  const { body } = await world.query(query);
  expect(body.errors).toEqual([
    { message, path, extensions, locations: [expect.any(Object)] },
    { type: "FORBIDDEN", message: expect.stringContaining("This mirror does not have all") },
  ]);
});

test.each<[string, string, number, number?]>([
  ["{ viewer {{ login } }", 'Expected NAME, actual: LCURLY ("{") at [1, 11]', 11],
  [
    "{ viewer { login } } }",
    'Expected one of SCHEMA, SCALAR, TYPE, ENUM, INPUT, UNION, INTERFACE, actual: RCURLY ("}") at [1, 22]',
    22,
  ],
  [
    "quory Q { a }",
    'Expected one of SCHEMA, SCALAR, TYPE, ENUM, INPUT, UNION, INTERFACE, actual: IDENTIFIER ("quory") at [1, 1]',
    1,
  ],
  ["{ repository(owner: 01) { id } }", "Invalid number", 22],
  ["{ repository(owner: ) { id } }", 'Expected NAME, actual: RPAREN (")") at [1, 21]', 21],
  ["query(id: ID!) { viewer { id } }", 'Expected VAR_SIGN, actual: IDENTIFIER ("id") at [1, 7]', 7],
  ["{ viewer", 'Expected NAME, actual: (none) ("") at [1, 9]', 9],
  ["{ viewer % }", 'Expected NAME, actual: UNKNOWN_CHAR ("%") at [1, 10]', 10],
  [
    "@query.graphql",
    'Expected one of SCHEMA, SCALAR, TYPE, ENUM, INPUT, UNION, INTERFACE, actual: DIR_SIGN ("@") at [1, 1]',
    1,
  ],
  ["# nothing", "Unexpected end of document", 10],
  ['{ viewer # "\n{ x(y: "a', "Expected string or block string, but it was malformed", 8, 2],
  [String.raw`{ x(y: "a\q") }`, "Expected string or block string, but it was malformed", 8],
])("%s cannot be parsed, which is told in the service's words", async (query, message, column, line = 1) => {
  expect(await errorsOf(query, {})).toEqual([
    { message: expect.stringContaining(message), locations: [{ line, column }] },
  ]);
});
