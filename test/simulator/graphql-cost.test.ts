import { type OperationDefinitionNode, parse } from "graphql";
import { expect, test } from "vitest";
import { priceOperation } from "../../src/simulator/graphql/cost.ts";
import { buildSimulatorSchema } from "../../src/simulator/graphql/schema.ts";

const schema = buildSimulatorSchema();

function price(query: string, variables: Record<string, unknown> = {}, options?: { chargeCounts?: boolean }) {
  const document = parse(query);
  const operation = document.definitions[0] as OperationDefinitionNode;
  return priceOperation(schema, document, operation, variables, options);
}

test("the documentation's example of repositories, issues and labels costs 51 points", () => {
  const query =
    "{ viewer { repositories(first: 100) { nodes { issues(first: 50) { nodes { labels(first: 60) { nodes { name } } } } } } } }";
  expect(price(query)).toEqual({ requests: 5_101, points: 51, nodeCount: 100 + 5_000 + 300_000 });
});

test("the documentation's example of 50 repositories with 10 issues asks for 550 nodes", () => {
  const query =
    "{ viewer { repositories(first: 50) { edges { repository: node { name issues(first: 10) { edges { node { title } } } } } } } }";
  expect(price(query)).toMatchObject({ nodeCount: 550, points: 1 });
});

test("the documentation's larger example asks for 22,060 nodes", () => {
  const query = `{ viewer {
    repositories(first: 50) { nodes {
      pullRequests(first: 20) { nodes { comments(first: 10) { nodes { body } } } }
      issues(first: 20) { nodes { comments(first: 10) { nodes { body } } } }
    } }
    more: repositories(first: 10) { nodes { name } }
  } }`;
  expect(price(query).nodeCount).toBe(50 + 50 * 20 + 50 * 20 * 10 + 50 * 20 + 50 * 20 * 10 + 10);
});

test("100 issues with six nested connections cost 6 points and 52,100 nodes, as was measured", () => {
  const nested = ["assignees", "labels", "participants: comments", "reacted: assignees", "more: labels"].map(
    (name) => `${name}(first: 100) { totalCount }`,
  );
  const query = `{ repository(owner: "o", name: "r") { issues(first: 100) { nodes { ${nested.join(" ")} last: comments(last: 20) { totalCount } } } } }`;
  expect(price(query)).toEqual({ requests: 601, points: 6, nodeCount: 52_100 });
});

test.each([
  [24, 1],
  [25, 2],
])("%i single issues with six connections each cost %i", (count, points) => {
  const connections = [1, 2, 3, 4, 5, 6].map((one) => `c${one}: comments(first: 5) { totalCount }`).join(" ");
  const issues = Array.from({ length: count }, (_, at) => `i${at}: issue(number: ${at + 1}) { ${connections} }`).join(
    " ",
  );
  expect(price(`{ repository(owner: "o", name: "r") { ${issues} } }`).points).toBe(points);
});

test("three searches, scalars and rateLimit alone cost 1", () => {
  const search = 'search(query: "x", type: ISSUE, first: 50) { issueCount }';
  expect(price(`{ a: ${search} b: ${search} c: ${search} }`)).toMatchObject({ requests: 3, points: 1 });
  expect(price("{ rateLimit { cost } }")).toEqual({ requests: 0, points: 1, nodeCount: 0 });
});

test("page sizes come from variables and their defaults; what is skipped costs nothing", () => {
  const query =
    'query ($n: Int = 50, $with: Boolean!) { repository(owner: "o", name: "r") { issues(first: $n) { nodes { labels(first: 10) @include(if: $with) { totalCount } } } } }';
  expect(price(query, { n: 20, with: true })).toMatchObject({ requests: 21, nodeCount: 220 });
  expect(price(query, { n: 20, with: false })).toMatchObject({ requests: 1, nodeCount: 20 });
});

test("a fragment that is spread twice is one selection, aliases are several", () => {
  const query = `{ repository(owner: "o", name: "r") { ...f ...f again: issues(first: 10) { totalCount } } }
    fragment f on Repository { issues(first: 10) { nodes { id } } }`;
  expect(price(query)).toMatchObject({ requests: 2, nodeCount: 20 });
});

test("nodes(ids:) multiplies what is below it", () => {
  const query = "query ($ids: [ID!]!) { nodes(ids: $ids) { ... on Issue { comments(first: 10) { totalCount } } } }";
  expect(price(query, { ids: ["a", "b", "c"] })).toMatchObject({ requests: 3, nodeCount: 30 });
});

const PULLS = `query ($n: Int!, $last: Int) { repository(owner: "o", name: "r") { pullRequests(first: $n) { nodes {
  reviews(first: 100) { nodes { id } } commits(last: $last) { totalCount } } } } }`;

test.each([
  { pulls: 100, chargeCounts: undefined, requests: 1 + 100, points: 1 },
  { pulls: 100, chargeCounts: false, requests: 1 + 100, points: 1 },
  { pulls: 74, chargeCounts: true, requests: 1 + 2 * 74, points: 1 },
  { pulls: 75, chargeCounts: true, requests: 1 + 2 * 75, points: 2 },
  { pulls: 100, chargeCounts: true, requests: 1 + 2 * 100, points: 2 },
])(
  "$pulls pull requests with their reviews and counts of commits cost $points (charged for counts: $chargeCounts)",
  ({ pulls, chargeCounts, requests, points }) => {
    // A connection without bounds adds no nodes, whatever it costs.
    const nodeCount = pulls + pulls * 100;
    expect(price(PULLS, { n: pulls }, chargeCounts === undefined ? {} : { chargeCounts })).toEqual({
      requests,
      points,
      nodeCount,
    });
  },
);

test("a count with bounds is paged, and is charged whatever the reading", () => {
  for (const chargeCounts of [false, true])
    expect(price(PULLS, { n: 100, last: 1 }, { chargeCounts })).toMatchObject({ requests: 201, nodeCount: 10_200 });
});
