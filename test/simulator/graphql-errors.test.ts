import { beforeEach, describe, expect, test } from "vitest";
import type { Repository } from "../../src/simulator/world/records.ts";
import { openGraphql, type Reply } from "./graphql-world.ts";

let at: ReturnType<typeof openGraphql>;
let repository: Repository;

beforeEach(() => {
  at = openGraphql();
  const owner = at.world.addUser({ login: "octo" });
  repository = at.world.addRepository({ ownerId: owner.id, name: "demo" });
  for (let number = 1; number <= 5; number++)
    at.world.addIssue({ repository, title: `Issue ${number}`, authorId: owner.id, body: null });
});

const inDemo = (fields: string) => `{ repository(owner: "octo", name: "demo") { ${fields} } }`;
const firstError = (reply: Reply) => reply.errors?.[0];

describe("who may ask", () => {
  test("without a credential: 401 with the service's words", async () => {
    const { status, body } = await at.answer("{ viewer { login } }", {}, "none");
    expect(status).toBe(401);
    expect(body).toMatchObject({
      message: "This endpoint requires you to be authenticated.",
      documentation_url: expect.stringContaining("authenticating-with-graphql"),
    });
  });
  test("an unknown credential: 401 Bad credentials", async () => {
    expect(await at.answer("{ viewer { login } }", {}, "bad")).toMatchObject({
      status: 401,
      body: { message: "Bad credentials" },
    });
  });
  test("a private repository does not exist for strangers", async () => {
    repository.visibility = "private";
    const reply = await at.ask(inDemo("name"));
    expect(reply.data).toEqual({ repository: null });
    expect(firstError(reply)).toMatchObject({
      type: "NOT_FOUND",
      path: ["repository"],
      message: "Could not resolve to a Repository with the name 'octo/demo'.",
    });
    const granted = at.tokens.create({ login: "insider", repositories: ["octo/demo"] });
    expect((await at.ask(inDemo("name"), {}, granted)).data.repository.name).toBe("demo");
  });
});

describe("what is asked", () => {
  test("no query, and a query that is no text", async () => {
    for (const body of ["{}", '{"query": 1}', '{"query": ""}']) {
      const answer = await at.graphql.answer({ token: at.token, view: undefined as never, body });
      expect(answer).toMatchObject({
        status: 200,
        body: { errors: [{ message: "A query attribute must be specified and must be a string." }] },
      });
    }
  });
  test("a body that is no JSON object: 400", async () => {
    const view = undefined as never;
    expect(await at.graphql.answer({ token: at.token, view, body: "{" })).toMatchObject({
      status: 400,
      body: { message: "Problems parsing JSON" },
    });
    expect(await at.graphql.answer({ token: at.token, view, body: "[]" })).toMatchObject({
      status: 400,
      body: { message: "Body should be a JSON object" },
    });
  });
  test("an unknown field: no data, extensions.code undefinedField", async () => {
    const reply = await at.ask("{ viewer { shoeSize } }");
    expect(reply).toEqual({
      errors: [
        {
          message: "Field 'shoeSize' doesn't exist on type 'User'",
          extensions: { code: "undefinedField" },
          locations: [{ line: 1, column: 12 }],
        },
      ],
    });
  });
  test("what does not parse, an unknown operation and a missing variable are errors without data", async () => {
    expect(firstError(await at.ask("{ viewer {"))?.message).toMatch(/^Parse error/);
    expect(firstError(await at.ask("query A { viewer { login } } query B { viewer { login } }"))?.message).toBe(
      "An operation name is required",
    );
    expect(firstError(await at.ask("query ($n: String!) { user(login: $n) { id } }"))?.message).toMatch(/\$n/);
  });
  test("a variable that is sent but not declared is ignored", async () => {
    expect((await at.ask("{ viewer { login } }", { stray: 1 })).data.viewer.login).toBe("mona");
  });
  test("enums that differ under one name are answered, as gh asks", async () => {
    const fields =
      "issueOrPullRequest(number: 1) { ... on Issue { number state } ... on PullRequest { number state } }";
    expect((await at.ask(inDemo(fields))).data.repository.issueOrPullRequest).toEqual({ number: 1, state: "OPEN" });
    const other = await at.ask(inDemo("a: issue(number: 1) { x: title } a: issue(number: 1) { x: number }"));
    expect(firstError(other)?.message).toMatch(/conflict/);
  });
  test("introspection is allowed", async () => {
    const reply = await at.ask(
      '{ a: __type(name: "Issue") { fields(includeDeprecated: true) { name } } b: __type(name: "Nothing") { name } }',
    );
    expect(reply.data.a.fields).toContainEqual({ name: "stateReason" });
    expect(reply.data.b).toBeNull();
  });
});

describe("what is not there", () => {
  test.each([
    ["issue(number: 9) { id }", "Could not resolve to an Issue with the number of 9."],
    ["pullRequest(number: 1) { id }", "Could not resolve to a PullRequest with the number of 1."],
    [
      "issueOrPullRequest(number: 72) { __typename }",
      "Could not resolve to an issue or pull request with the number of 72.",
    ],
  ])("%s", async (field, message) => {
    const reply = await at.ask(inDemo(`name ${field}`));
    expect(reply.data.repository.name).toBe("demo"); // The other fields of the repository keep their data.
    expect(firstError(reply)).toMatchObject({ type: "NOT_FOUND", message });
  });
  test("a node that is not there is null in its place", async () => {
    const id = at.world.nodeId("Repository", repository);
    const reply = await at.ask("query ($ids: [ID!]!) { nodes(ids: $ids) { __typename } }", { ids: [id, "X", id] });
    expect(reply.data.nodes).toEqual([{ __typename: "Repository" }, null, { __typename: "Repository" }]);
    expect(reply.errors).toEqual([
      expect.objectContaining({
        type: "NOT_FOUND",
        path: ["nodes", 1],
        message: "Could not resolve to a node with the global id of 'X'",
      }),
    ]);
  });
  test("more than 100 node ids: ARGUMENT_LIMIT", async () => {
    const reply = await at.ask("query ($ids: [ID!]!) { nodes(ids: $ids) { id } }", { ids: Array(101).fill("X") });
    expect(firstError(reply)).toMatchObject({
      type: "ARGUMENT_LIMIT",
      message: "You may not provide more than 100 node ids; you provided 101.",
    });
  });
  test("a renamed repository is found unless renames are not to be followed", async () => {
    repository.name = "renamed";
    at.world.renamed(repository, "octo/demo");
    expect((await at.ask(inDemo("nameWithOwner"))).data.repository.nameWithOwner).toBe("octo/renamed");
    expect(
      firstError(await at.ask('{ repository(owner: "octo", name: "demo", followRenames: false) { id } }'))?.type,
    ).toBe("NOT_FOUND");
  });
});

describe("page bounds", () => {
  test("neither first nor last", async () => {
    const reply = await at.ask(inDemo("name issues { nodes { id } }"));
    expect(reply.data).toEqual({ repository: null });
    expect(firstError(reply)).toMatchObject({
      type: "MISSING_PAGINATION_BOUNDARIES",
      path: ["repository", "issues"],
      message: "You must provide a `first` or `last` value to properly paginate the `issues` connection.",
    });
  });
  test("counting needs no bounds", async () => {
    expect((await at.ask(inDemo("issues { totalCount }"))).data.repository.issues).toEqual({ totalCount: 5 });
  });
  test("more than 100", async () => {
    const message = "Requesting 101 records on the `issues` connection exceeds the `first` limit of 100 records.";
    expect(firstError(await at.ask(inDemo("issues(first: 101) { nodes { id } }")))).toMatchObject({
      type: "EXCESSIVE_PAGINATION",
      message,
    });
    expect(firstError(await at.ask(inDemo("issues(last: 200) { nodes { id } }")))?.message).toContain(
      "`last` limit of 100",
    );
  });
  test("a cursor that is none", async () => {
    expect(firstError(await at.ask(inDemo('issues(first: 1, after: "bm9uZQ==") { nodes { id } }')))).toMatchObject({
      type: "INVALID_CURSOR_ARGUMENTS",
      message: "`bm9uZQ==` does not appear to be a valid cursor.",
    });
  });
  test("too many possible nodes: no data, nothing charged", async () => {
    const reply = await at.answer(
      "{ viewer { repositories(first: 100) { nodes { issues(first: 100) { nodes { comments(first: 100) { totalCount } } } } } } }",
    );
    expect(reply.body).toEqual({
      errors: [
        {
          type: "MAX_NODE_LIMIT_EXCEEDED",
          message: "This query requests up to 1,010,100 possible nodes which exceeds the maximum limit of 500,000.",
        },
      ],
    });
    expect(reply.points).toBe(0);
  });
});

describe("points", () => {
  test("rateLimit tells exactly what the query cost and what is left", async () => {
    const query = `{ rateLimit { cost limit nodeCount remaining resetAt used } ${inDemo("issues(first: 100) { nodes { labels(first: 50) { totalCount } comments(first: 50) { totalCount } } }").slice(1)}`;
    const expected = {
      cost: 2,
      limit: 5_000,
      nodeCount: 10_100,
      remaining: 4_998,
      used: 2,
      resetAt: "2026-10-01T13:00:00Z",
    };
    expect((await at.ask(query)).data.rateLimit).toEqual(expected);
    expect((await at.ask("{ rateLimit { remaining } }")).data.rateLimit).toEqual({ remaining: 4_997 });
  });
  test("a dry run prices without running and without cost", async () => {
    const query =
      "query ($dry: Boolean) { rateLimit(dryRun: $dry) { cost remaining } viewer { repositories(first: 100) { nodes { issues(first: 100) { totalCount } } } } }";
    expect((await at.ask(query, { dry: true })).data).toEqual({ rateLimit: { cost: 1, remaining: 5_000 } });
    expect((await at.ask(query, { dry: false })).data).toHaveProperty("viewer");
  });
  test("nothing left: 200 with RATE_LIMIT, until the window ends", async () => {
    const poor = at.tokens.create({ login: "poor", limit: 2 });
    await at.ask("{ viewer { login } }", {}, poor);
    await at.ask("{ viewer { login } }", {}, poor);
    const { status, body, limited } = await at.answer("{ viewer { login } }", {}, poor);
    expect({ status, limited }).toEqual({ status: 200, limited: "primary" });
    expect(body).toEqual({
      errors: [
        {
          type: "RATE_LIMIT",
          code: "graphql_rate_limit",
          message: `API rate limit already exceeded for user ID ${poor.userId}.`,
        },
      ],
    });
    at.clock.advance(3_600_000);
    expect((await at.ask("{ viewer { login } }", {}, poor)).data.viewer.login).toBe("poor");
  });
  test("too many points a minute: refused with the seconds to wait", async () => {
    at = openGraphql({ limits: { graphqlPointsPerMinute: 3 } });
    for (let i = 0; i < 3; i++) await at.ask("{ viewer { login } }");
    expect(await at.answer("{ viewer { login } }")).toMatchObject({
      status: 403,
      limited: "secondary",
      retryAfterSeconds: 60,
      points: 0,
    });
  });
});

describe("faults", () => {
  const all = inDemo("issues(first: 100) { nodes { number } }");
  test("too much work: 502, and more points than the query's own are gone", async () => {
    at.graphql.faults = { timeoutAtWork: 4 };
    const { status, body, points } = await at.answer(all);
    expect(status).toBe(502);
    expect(body).toMatchObject({
      data: null,
      errors: [
        {
          message: expect.stringContaining(
            "Something went wrong while executing your query on 2026-10-01T12:00:00+00:00.",
          ),
        },
      ],
    });
    expect(points).toBe(11);
    expect((await at.ask("{ rateLimit { used } }")).data.rateLimit.used).toBe(12);
    expect((await at.ask(inDemo("issues(first: 4) { nodes { number } }"))).errors).toBeUndefined();
  });
  test("resource limits: 200, partial data", async () => {
    at.graphql.faults = { resourceLimitAtWork: 5 };
    const reply = await at.ask(inDemo("issues(first: 5) { nodes { number labels(first: 1) { totalCount } } }"));
    expect(reply.data.repository.issues.nodes.map((node: { labels: unknown }) => node.labels)).toEqual([
      null,
      null,
      null,
      null,
      null,
    ]);
    expect(firstError(reply)).toMatchObject({
      type: "RESOURCE_LIMITS_EXCEEDED",
      message: "Resource limits for this query exceeded.",
    });
  });
  test("too much work in a minute: refused for the rest of it, and answered after it", async () => {
    at.graphql.faults = { workPerMinute: 5 };
    const some = inDemo("issues(first: 3) { nodes { number } }");
    await at.ask(some);
    at.clock.advance(20_000);
    await at.ask(some);
    expect(await at.answer(some)).toMatchObject({
      status: 403,
      limited: "secondary",
      retryAfterSeconds: 40,
      points: 0,
    });
    at.clock.advance(40_000);
    expect((await at.ask(some)).errors).toBeUndefined();
  });
  test("silent truncation: fewer nodes, a smaller count, no error", async () => {
    for (const issue of repository.rows.issuesByCreated.ascending()) {
      for (let i = 0; i < 3; i++) at.world.addComment({ issue, authorId: null, body: `${i}` });
    }
    at.graphql.faults = { truncateNested: { parents: 3, keep: 1 } };
    const reply = await at.ask(
      inDemo(
        "issues(first: 5) { nodes { comments(first: 50) { totalCount nodes { body } pageInfo { hasNextPage } } } }",
      ),
    );
    expect(reply.errors).toBeUndefined();
    const counts = reply.data.repository.issues.nodes.map(
      (node: { comments: { totalCount: number } }) => node.comments.totalCount,
    );
    expect(counts).toEqual([3, 3, 1, 1, 1]);
    expect(reply.data.repository.issues.nodes[4].comments).toEqual({
      totalCount: 1,
      nodes: [{ body: "0" }],
      pageInfo: { hasNextPage: false },
    });
  });
});
