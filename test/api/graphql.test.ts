import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sql } from "../../db/sql.ts";
import { askAt } from "../support/asking.ts";
import { UPSTREAM_TOKEN } from "../support/config.ts";
import { countStatements } from "../support/statements.ts";
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

async function askUpstream(query: string, variables: object = {}): Promise<Body> {
  return (
    await askAt(world.upstream.url, "POST", "/graphql", {
      token: UPSTREAM_TOKEN,
      body: JSON.stringify({ query, variables }),
    })
  ).body;
}

const ACTOR = "author { login url avatarUrl resourcePath __typename }";
const COMMON = `id fullDatabaseId number title body state closed closedAt createdAt updatedAt locked activeLockReason ${ACTOR} authorAssociation url resourcePath
  labels(first: 20, orderBy: {field: NAME, direction: ASC}) { totalCount nodes { id name color description isDefault url } }
  assignees(first: 10) { totalCount nodes { login id } }
  milestone { id number title description state closed closedAt dueOn createdAt url creator { login } }
  comments(first: 3) { totalCount pageInfo { hasNextPage } nodes { id body ${ACTOR} createdAt updatedAt authorAssociation url fullDatabaseId } }`;
const REPOSITORY = `id databaseId name nameWithOwner owner { login id url } description homepageUrl url resourcePath sshUrl mirrorUrl visibility isPrivate isFork isArchived
  isDisabled isTemplate isMirror isInOrganization createdAt updatedAt pushedAt defaultBranchRef { name } primaryLanguage { name } licenseInfo { key }
  stargazerCount forkCount diskUsage hasIssuesEnabled hasProjectsEnabled hasWikiEnabled hasDiscussionsEnabled`;
const REPO = "repository(owner: $owner, name: $name)";
const V = "query($owner: String!, $name: String!)";

describe("an answer equals upstream's", () => {
  test.each([
    ["the repository", `${V} { ${REPO} { ${REPOSITORY} } }`],
    ["its name in other letters' case", `query { repository(owner: "%OWNER%", name: "%NAME%") { nameWithOwner } }`],
    [
      "issues",
      `${V} { ${REPO} { issues(first: 100) { totalCount nodes { ${COMMON} stateReason(enableDuplicate: true) } } } }`,
    ],
    [
      "issues by last change, from the end",
      `${V} { ${REPO} { issues(last: 20, orderBy: {field: UPDATED_AT, direction: DESC}, states: [CLOSED]) { totalCount pageInfo { hasNextPage hasPreviousPage } nodes { number stateReason } } } }`,
    ],
    [
      "issues by comments",
      `${V} { ${REPO} { issues(first: 30, orderBy: {field: COMMENTS, direction: DESC}) { nodes { comments { totalCount } } } } }`,
    ],
    [
      "issues by filter",
      `${V} { ${REPO} { a: issues(first: 50, filterBy: {since: "2025-06-01T00:00:00Z"}) { totalCount nodes { number } } b: issues(first: 50, filterBy: {assignee: "*", states: [OPEN]}) { totalCount } c: issues(first: 50, filterBy: {milestone: null}) { totalCount } d: issues(first: 50, filterBy: {milestoneNumber: "1"}) { nodes { number } } } }`,
    ],
    [
      "pull requests",
      `${V} { ${REPO} { pullRequests(first: 100) { totalCount nodes { ${COMMON} isDraft merged mergedAt mergedBy { login } maintainerCanModify additions deletions changedFiles baseRefName baseRefOid headRefName headRefOid isCrossRepository permalink headRepository { nameWithOwner isFork } reviews(first: 5) { totalCount nodes { id state body submittedAt ${ACTOR} url } } } } } }`,
    ],
    [
      "pull requests by state",
      `${V} { ${REPO} { a: pullRequests(states: [MERGED], first: 5) { totalCount nodes { state } } b: pullRequests(states: [CLOSED, OPEN], last: 5) { totalCount nodes { number state } } } }`,
    ],
    [
      "labels",
      `${V} { ${REPO} { labels(first: 100) { totalCount nodes { name } } one: label(name: "BUG") { name url } none: label(name: "no such label") { name } } }`,
    ],
    [
      "milestones",
      `${V} { ${REPO} { milestones(first: 10, orderBy: {field: DUE_DATE, direction: DESC}) { totalCount nodes { number title progress: closed } } milestone(number: 1) { title } missing: milestone(number: 9999) { title } } }`,
    ],
    [
      "the count alone, without bounds",
      `${V} { ${REPO} { issues { totalCount } pullRequests { totalCount } labels { totalCount } } }`,
    ],
  ])("%s", async (_what, query) => {
    const text = query.replace("%OWNER%", () => owner.toUpperCase()).replace("%NAME%", () => name.toUpperCase());
    const [ours, theirs] = [await world.query(text, { owner, name }), await askUpstream(text, { owner, name })];
    expect(theirs.errors).toBeUndefined();
    expect(ours.status).toBe(200);
    expect(ours.body).toEqual(theirs);
  });

  test("each issue and pull request by its number, through either field and by its id", async () => {
    const all = await askUpstream(
      `${V} { ${REPO} { issues(first: 20) { nodes { number id } } pullRequests(first: 20) { nodes { number id } } } }`,
      { owner, name },
    );
    const { issues, pullRequests } = all.data.repository;
    for (const { number, id } of [...issues.nodes, ...pullRequests.nodes]) {
      const query = `query($owner: String!, $name: String!, $number: Int!, $id: ID!) {
        ${REPO} { issueOrPullRequest(number: $number) { __typename ... on Issue { title state } ... on PullRequest { title state } } issue(number: $number) { title } pullRequest(number: $number) { title } }
        node(id: $id) { __typename id } }`;
      const variables = { owner, name, number, id };
      const [ours, theirs] = [await world.query(query, variables), await askUpstream(query, variables)];
      expect(ours.body.data).toEqual(theirs.data);
      expect(errorsOf(ours.body)).toEqual(errorsOf(theirs));
    }
  });
});

test("REST and GraphQL agree on every repository of the viewer", async () => {
  const rest = await world.get("/user/repos?sort=updated&per_page=100");
  const query =
    "query { viewer { login databaseId name url isViewer repositories(first: 10, orderBy: {field: UPDATED_AT, direction: DESC}) { totalCount nodes { name description stargazerCount nameWithOwner } } } }";
  const { body } = await world.query(query);
  const user = (await world.get("/user")).body;
  expect(body.data.viewer).toMatchObject({
    login: user.login,
    databaseId: user.id,
    name: user.name,
    url: user.html_url,
    isViewer: true,
  });
  expect(body.data.viewer.repositories.totalCount).toBe(rest.body.length);
  expect(body.data.viewer.repositories.nodes).toEqual(
    rest.body.slice(0, 10).map((row: Body) => ({
      name: row.name,
      description: row.description,
      stargazerCount: row.stargazers_count,
      nameWithOwner: row.full_name,
    })),
  );
  for (const field of ["CREATED_AT", "UPDATED_AT", "PUSHED_AT", "NAME", "STARGAZERS"]) {
    const orders = await world.query(
      `query { viewer { up: repositories(first: 50, orderBy: {field: ${field}, direction: ASC}) { nodes { id } } down: repositories(first: 50, orderBy: {field: ${field}, direction: DESC}) { nodes { id } } } }`,
    );
    const { up, down } = orders.body.data.viewer;
    expect(down.nodes).toEqual(up.nodes.toReversed());
    expect(up.nodes).toHaveLength(rest.body.length);
  }
});

test("walking a connection forwards and backwards meets every node once", async () => {
  const query = (field: string, page: string) =>
    `query($owner: String!, $name: String!, $cursor: String) { ${REPO} { ${field}(${page}) { totalCount pageInfo { startCursor endCursor hasNextPage hasPreviousPage } edges { cursor node { id } } } } }`;
  for (const field of ["issues", "pullRequests", "labels", "milestones"]) {
    const forwards: string[] = [];
    let cursor: string | null = null;
    let total = 0;
    for (let hasNext = true; hasNext; ) {
      const { body } = await world.query(query(field, "first: 7, after: $cursor"), { owner, name, cursor });
      const connection: Body = body.data.repository[field];
      expect(connection.pageInfo.hasPreviousPage).toBe(cursor !== null);
      forwards.push(...connection.edges.map((edge: Body) => edge.node.id));
      ({ endCursor: cursor, hasNextPage: hasNext } = connection.pageInfo);
      total = connection.totalCount;
    }
    expect(new Set(forwards).size).toBe(total);
    expect(forwards).toHaveLength(total);
    const backwards: string[] = [];
    cursor = null;
    for (let hasPrevious = true; hasPrevious; ) {
      const { body } = await world.query(query(field, "last: 6, before: $cursor"), { owner, name, cursor });
      const connection: Body = body.data.repository[field];
      backwards.unshift(...connection.edges.map((edge: Body) => edge.node.id));
      ({ startCursor: cursor, hasPreviousPage: hasPrevious } = connection.pageInfo);
    }
    expect(backwards).toEqual(forwards);
  }
});

test("the number of statements does not grow with the number of rows", async () => {
  const count = async (first: number) => {
    using statements = countStatements();
    const { body } = await world.query(
      `query { viewer { repositories(first: 5) { nodes { name issues(first: ${first}) { totalCount nodes { ${COMMON} repository { name owner { login } } } } pullRequests(first: ${first}) { nodes { reviews(first: 3) { nodes { state author { login ... on User { name } } } } } } } } } }`,
    );
    expect(body.errors).toBeUndefined();
    return statements.count();
  };
  await count(2);
  const [few, many] = [await count(3), await count(40)];
  // More rows bring rarer kinds of references. Each kind is one more statement, for any number of rows. On a busy machine
  // the work gives way in the middle of a level, and the rest of the level asks by itself. One for each row were 37 more.
  expect(many).toBeLessThanOrEqual(few + 20);
  expect(many).toBeLessThan(45);
});

describe("price", () => {
  test.each([
    ["query { viewer { login } rateLimit { cost nodeCount } }", 1, 0],
    [
      "query { viewer { repositories(first: 100) { nodes { issues(first: 50) { nodes { labels(first: 60) { totalCount } } } } } } rateLimit(dryRun: true) { cost nodeCount } }",
      51,
      100 + 5_000 + 300_000,
    ],
    [
      `query { rateLimit(dryRun: true) { cost nodeCount } repository(owner: "o", name: "n") { issues(first: 100) { nodes { a: labels(first: 100) { totalCount } b: comments(first: 100) { totalCount } c: assignees(first: 100) { totalCount } d: labels(first: 100) { totalCount } e: comments(first: 100) { totalCount } f: assignees(first: 20) { totalCount } } } } }`,
      6,
      52_100,
    ],
  ])("%s", async (query, cost, nodeCount) => {
    expect((await world.query(query)).body.data.rateLimit).toEqual({ cost, nodeCount });
  });

  test("is taken from the caller's points, shown in headers and by rateLimit, and a dry run costs nothing", async () => {
    const read = async (query: string) => {
      const { body, headers } = await world.query(query);
      return {
        ...body.data.rateLimit,
        header: Number(headers.get("x-ratelimit-remaining")),
        resource: headers.get("x-ratelimit-resource"),
      };
    };
    const fields = "{ limit cost remaining used resetAt }";
    const before = await read(`query { rateLimit ${fields} }`);
    expect(before).toMatchObject({
      limit: 5000,
      cost: 1,
      remaining: 5000 - before.used,
      header: before.remaining,
      resource: "graphql",
    });
    // An hour, up to the next whole second.
    expect(Date.parse(before.resetAt) - Date.now()).toBeLessThanOrEqual(3_601_000);
    const dry = await read(
      `query { viewer { repositories(first: 100) { nodes { issues(first: 100) { totalCount nodes { labels(first: 3) { totalCount } } } } } } rateLimit(dryRun: true) ${fields} }`,
    );
    expect(dry).toMatchObject({ cost: 101, remaining: before.remaining });
    const after = await read(`query { rateLimit ${fields} }`);
    expect(after.remaining).toBe(before.remaining - 1);
  });
});

test("lists by label: any of the argument's, all of the filter's; labels and milestones by their text", async () => {
  const all = await world.query(
    `${V} { ${REPO} { issues(first: 100) { nodes { number labels(first: 20) { nodes { name } } } } } }`,
    { owner, name },
  );
  const issues: { number: number; labels: string[] }[] = all.body.data.repository.issues.nodes.map((node: Body) => ({
    number: node.number,
    labels: node.labels.nodes.map((label: Body) => label.name),
  }));
  const [one, two] = issues.find(({ labels }) => labels.length > 1)?.labels ?? [];
  const query = `query($owner: String!, $name: String!, $labels: [String!]) { ${REPO} {
    any: issues(first: 100, labels: $labels) { nodes { number } } all: issues(first: 100, filterBy: {labels: $labels}) { nodes { number } }
    pulls: pullRequests(first: 100, labels: $labels) { nodes { labels(first: 20) { nodes { name } } } }
    some: labels(first: 50, query: "BU") { nodes { name } } none: milestones(first: 5, query: "no such milestone") { totalCount } } }`;
  const { body } = await world.query(query, { owner, name, labels: [one?.toUpperCase(), two] });
  const { any, all: every, pulls, some, none } = body.data.repository;
  const numbers = (rows: { number: number }[]) => rows.map(({ number }) => number);
  expect(numbers(any.nodes)).toEqual(
    numbers(issues.filter(({ labels }) => labels.includes(one as string) || labels.includes(two as string))),
  );
  expect(numbers(every.nodes)).toEqual(
    numbers(issues.filter(({ labels }) => labels.includes(one as string) && labels.includes(two as string))),
  );
  for (const node of pulls.nodes)
    expect([one, two]).toContain(
      node.labels.nodes.map((label: Body) => label.name).find((label: string) => label === one || label === two),
    );
  expect(some.nodes.map((label: Body) => label.name)).toContain("bug");
  expect(none.totalCount).toBe(0);
});

test("introspection is answered", async () => {
  const { body } = await world.query(
    'query { __schema { queryType { name } types { name } } __type(name: "Issue") { fields { name } } }',
  );
  expect(body.data.__schema.queryType.name).toBe("Query");
  expect(body.data.__type.fields.map((field: Body) => field.name)).toContain("stateReason");
});

test("a GET answers the schema: as an introspection's result, or as text", async () => {
  for (const path of ["/graphql", "/api/graphql"]) {
    const asked = await world.get(path);
    expect([asked.status, asked.headers.get("x-github-media-type")]).toEqual([200, "github.v4; format=json"]);
    expect(asked.body.data.__schema.queryType.name).toBe("Query");
  }
  const { body } = await world.get("/graphql", { headers: { accept: "application/vnd.github.v4.idl" } });
  expect(body.data).toContain("type Issue implements");
  expect(await world.send("HEAD", "/graphql")).toMatchObject({ status: 200, text: "" });
  expect((await world.get("/graphql", { token: null })).status).toBe(401);
});

test("an answer says how long ago upstream confirmed the repositories that it shows", async () => {
  const query =
    "query($owner: String!, $name: String!) { repository(owner: $owner, name: $name) { issues(first: 1) { nodes { title } } } }";
  await world.ctx.db.query(sql`update repository_syncs set confirmed_at = now() - interval '90 seconds'`);
  const recent = await world.query(query, { owner, name });
  expect(Number(recent.headers.get("age"))).toBeGreaterThanOrEqual(90);
  expect(recent.headers.get("x-tain-confirmed-at")).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  expect(recent.headers.get("warning")).toBeNull();
  await world.ctx.db.query(sql`update repository_syncs set confirmed_at = now() - interval '1 day'`);
  expect((await world.query(query, { owner, name })).headers.get("warning")).toMatch(/^110 /);
  // An answer that shows no repository has no time of confirmation.
  expect((await world.query("{ viewer { login } }")).headers.get("x-tain-confirmed-at")).toBeNull();
});

function errorsOf(body: Body): unknown {
  return body.errors?.map(({ type, path, message }: Body) => ({ type, path, message }));
}
