import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { askAt } from "../support/asking.ts";
import { connectTo } from "../support/database.ts";
import { until } from "../support/patience.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

let world: ApiWorld;
let owner: string;
let name: string;
beforeAll(async () => {
  world = await openApiWorld();
  [owner, name] = (world.repositories[0]?.fullName ?? "/").split("/") as [string, string];
});
afterAll(() => world?.[Symbol.asyncDispose]());

// biome-ignore lint/suspicious/noExplicitAny: answers are picked from, not trusted
type Body = any;

const REPO = "repository(owner: $owner, name: $name)";
const TOO_DEEP = { message: "Query has fields nested deeper than 60 levels, which exceeds max depth." };
const nested = (times: number) =>
  `query { viewer { ${'repository(name: "x") { owner { '.repeat(times)} id ${"} }".repeat(times)} } }`;
const V = "query($owner: String!, $name: String!)";

describe("refusals", () => {
  const M = "mutation($input: CreateIssueInput!) { createIssue(input: $input) { issue { number } } }";
  test.each([
    [
      "a repository that does not exist",
      `query { repository(owner: "no", name: "body") { id } viewer { login } }`,
      {
        type: "NOT_FOUND",
        path: ["repository"],
        message: "Could not resolve to a Repository with the name 'no/body'.",
      },
    ],
    [
      "an issue that does not exist",
      `${V} { ${REPO} { issue(number: 99999) { id } } }`,
      {
        type: "NOT_FOUND",
        path: ["repository", "issue"],
        message: "Could not resolve to an Issue with the number of 99999.",
      },
    ],
    [
      "an id of nothing",
      `query { node(id: "I_kwDOHrjtpM5OBUf6") { id } }`,
      {
        type: "NOT_FOUND",
        path: ["node"],
        message: "Could not resolve to a node with the global id of 'I_kwDOHrjtpM5OBUf6'",
      },
    ],
    ["no id at all", `query { node(id: "??") { id } }`, { type: "NOT_FOUND", path: ["node"] }],
    ["one of several ids", `query { nodes(ids: ["x"]) { id } }`, { type: "NOT_FOUND", path: ["nodes", 0] }],
    [
      "too many ids",
      `query { nodes(ids: [${'"x",'.repeat(101)}]) { id } }`,
      { type: "ARGUMENT_LIMIT", message: "You may not provide more than 100 node ids; you provided 101." },
    ],
    [
      "a connection without bounds",
      `${V} { ${REPO} { issues { nodes { id } } } }`,
      {
        type: "MISSING_PAGINATION_BOUNDARIES",
        path: ["repository", "issues"],
        message: "You must provide a `first` or `last` value to properly paginate the `issues` connection.",
      },
    ],
    [
      "too large a page",
      `${V} { ${REPO} { issues(first: 101) { nodes { id } } } }`,
      {
        type: "EXCESSIVE_PAGINATION",
        path: ["repository", "issues"],
        message: "Requesting 101 records on the `issues` connection exceeds the `first` limit of 100 records.",
      },
    ],
    [
      "both bounds",
      `${V} { ${REPO} { issues(first: 1, last: 1) { nodes { id } } } }`,
      { type: "INVALID_PAGINATION_ARGUMENTS" },
    ],
    [
      "a cursor that is none",
      `${V} { ${REPO} { issues(first: 1, after: "nonsense") { nodes { id } } } }`,
      { type: "INVALID_CURSOR_ARGUMENTS", message: "`nonsense` does not appear to be a valid cursor." },
    ],
    [
      "a forged cursor",
      `${V} { ${REPO} { issues(first: 1, after: "${Buffer.concat([Buffer.from("cursor:v2:"), Buffer.from([0x92, 0xda, 0, 3]), Buffer.from("x'y"), Buffer.from([0xce, 0, 0, 0, 1])]).toString("base64")}") { nodes { id } } } }`,
      { type: "INVALID_CURSOR_ARGUMENTS" },
    ],
    [
      "too many nodes",
      `query { viewer { repositories(first: 100) { nodes { issues(first: 100) { nodes { comments(first: 100) { nodes { id } } } } } } } }`,
      {
        type: "MAX_NODE_LIMIT_EXCEEDED",
        message: "This query requests up to 1,010,100 possible nodes which exceeds the maximum limit of 500,000.",
      },
    ],
    [
      "a field that is not served",
      "query { viewer { shoeSize } }",
      {
        message: "Field 'shoeSize' doesn't exist on type 'User'",
        extensions: { code: "undefinedField", typeName: "User", fieldName: "shoeSize" },
      },
    ],
    ["fields that are nested without end", nested(70), TOO_DEEP],
    ["so many that the stack would overflow", nested(5_000), TOO_DEEP],
    [
      "the same by fragments",
      `query { viewer { ...f0 } } ${Array.from({ length: 70 }, (_, at) => `fragment f${at} on User { repository(name: "x") { owner { ...f${at + 1} } } }`).join(" ")} fragment f70 on User { id }`,
      TOO_DEEP,
    ],
    ["what is no GraphQL", "query {", { message: /^Expected NAME, actual: / }],
    ["a missing variable", `${V} { ${REPO} { id } }`, { message: /\$owner/ }, {}],
    ["no query", "", { message: "A query attribute must be specified and must be a string." }],
    [
      "a mutation of a repository that does not exist",
      M,
      { type: "NOT_FOUND" },
      { input: { repositoryId: "R_kgDOHrjtpA", title: "t" } },
    ],
  ] as [string, string, Body, object?][])("%s", async (_what, query, expected, variables = { owner, name }) => {
    const { status, body } = await world.query(query, variables);
    expect(status).toBe(200);
    const [error] = body.errors;
    const { message, ...rest } = expected;
    expect(error).toMatchObject(rest);
    if (message instanceof RegExp) expect(error.message).toMatch(message);
    else if (message) expect(error.message).toBe(message);
    if (_what === "a repository that does not exist")
      expect(body.data).toMatchObject({ repository: null, viewer: { login: "mirror-owner" } });
  });

  test("without a token, with a bad one, without JSON, without a User-Agent", async () => {
    const anonymous = await world.query("query { viewer { login } }", {}, { token: null });
    expect(anonymous.status).toBe(401);
    expect(anonymous.body).toMatchObject({
      message: "This endpoint requires you to be authenticated.",
      documentation_url:
        "https://docs.github.com/graphql/guides/forming-calls-with-graphql#authenticating-with-graphql",
    });
    const bad = await world.query("query { viewer { login } }", {}, { token: "tain_unknown" });
    expect([bad.status, bad.body.message]).toEqual([401, "Bad credentials"]);
    const noJson = await world.send("POST", "/graphql", { body: "{" });
    expect([noJson.status, noJson.body.message]).toEqual([400, "Problems parsing JSON"]);
    const noObject = await world.send("POST", "/graphql", { body: "[]" });
    expect([noObject.status, noObject.body.message]).toEqual([400, "Body should be a JSON object"]);
    const noAgent = await world.send("POST", "/graphql", { body: "{}", headers: { "user-agent": "" } });
    expect(noAgent.status).toBe(403);
    expect(noAgent.text).toMatch(/^Request forbidden by administrative rules/);
  });

  test("undeclared variables are tolerated, and so are states of two types side by side", async () => {
    const query = `${V} { ${REPO} { issueOrPullRequest(number: 1) { ... on Issue { state } ... on PullRequest { state } } } }`;
    const { body } = await world.send("POST", "/api/graphql", {
      body: JSON.stringify({ query, variables: { owner, name, unused: 1 } }),
    });
    expect(body.errors).toBeUndefined();
    expect(body.data.repository.issueOrPullRequest.state).toMatch(/OPEN|CLOSED|MERGED/);
  });

  test("when the points are spent, the answer is the service's and upstream is not asked", async () => {
    const url = await world.openSibling({ RATE_LIMIT_GRAPHQL: "2" });
    const results = [];
    for (let at = 0; at < 3; at++)
      results.push(
        await askAt(url, "POST", "/graphql", { token: world.token, body: '{"query":"{ viewer { login } }"}' }),
      );
    expect(results.at(-1)?.status).toBe(200);
    expect(results.at(-1)?.body).toEqual({
      errors: [
        {
          type: "RATE_LIMITED",
          message: `API rate limit exceeded for user ID ${world.userId}.`,
        },
      ],
    });
    expect(results.at(-1)?.headers.get("x-ratelimit-remaining")).toBe("0");
  });
});

test("a query that runs out of time: 502, as the service says it, and the next one is answered", async () => {
  const url = await world.openSibling({}, { graphqlTimeoutMs: 200 });
  const viewer = () => askAt(url, "POST", "/graphql", { token: world.token, body: '{"query":"{ viewer { login } }"}' });
  const blocker = await connectTo(world.ctx.config.databaseUrl);
  try {
    await blocker.query("begin");
    await blocker.query("lock table users in access exclusive mode");
    const late = await viewer();
    expect(late.status).toBe(502);
    expect(late.body).toMatchObject({
      data: null,
      errors: [{ message: expect.stringMatching(/^Something went wrong while executing your query on .* timeout/) }],
    });
  } finally {
    await blocker.end();
  }
  // Its time is short, and a machine that is busy may need more for one.
  await until("the next one is answered", async () => (await viewer()).body.data?.viewer.login === "mirror-owner");
});
