import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ApiWorld, openApiWorld } from "./api-world.ts";
import { EACH_GIVEN, GIVEN, type Given, isGiven as has, mintTokens } from "./app-tokens.ts";
import { type Target, targetOf } from "./targets.ts";

// What a token sees of a private repository by GraphQL, by the permissions that it was given there.

// biome-ignore lint/suspicious/noExplicitAny: answers are picked from, not trusted
type Body = any;

let world: ApiWorld;
let tokens: Record<Given, string>;
let hidden: Target;
let owner: string;
let repository: string;
/** Of comments under an issue and under a pull request. */
let comments: { issue: string; pull: string };

beforeAll(async () => {
  world = await openApiWorld({
    repositories: 6,
    issues: 50,
    // What the mirror itself shows them: whole documents are upstream's otherwise, where it lacks something.
    env: { PASS_THROUGH: "off" },
  });
  const found = world.repositories.find((one) => one.private);
  if (!found) throw new Error("The world needs a private repository");
  hidden = await targetOf(world, found);
  [owner = "", repository = ""] = hidden.fullName.split("/");
  const listed = (await world.get(`/repos/${hidden.fullName}/issues/comments?per_page=100`)).body as Body[];
  const under = (kind: string) => listed.find((row) => row.html_url.includes(`/${kind}/`))?.node_id;
  comments = { issue: under("issues"), pull: under("pull") };
  tokens = mintTokens(world, hidden.fullName, GIVEN);
});
afterAll(() => world?.[Symbol.asyncDispose]());

async function graphql(token: string, query: string, variables: object = {}): Promise<Body> {
  const body = JSON.stringify({ query, variables });
  return (await world.send("POST", "/graphql", { token, body })).body;
}

/** The answer to a question that nobody has asked before, and again when others have. */
async function coldAndWarm(name: Given, query: string, variables: object = {}): Promise<Body[]> {
  const cold = await graphql(tokens[name], query, variables);
  for (let turn = 0; turn < 3; turn++) await graphql(world.token, query, variables);
  return [cold, await graphql(tokens[name], query, variables)];
}

const refusedAt = (...path: (string | number)[]) => ({
  type: "FORBIDDEN",
  path,
  extensions: { saml_failure: false },
  locations: expect.anything(),
  message: "Resource not accessible by integration",
});

/** Fields of a repository, and which permissions show them: any one of these. */
const FIELDS: [field: string, selection: string, accepted: string[]][] = [
  ["issues", "issues(first: 3, states: [OPEN, CLOSED]) { totalCount nodes { title } }", ["issues"]],
  ["issues", "issues { totalCount }", ["issues"]],
  ["issue", "issue(number: $issue) { title }", ["issues"]],
  ["issueOrPullRequest", "issueOrPullRequest(number: $issue) { ... on Issue { title } }", ["issues"]],
  ["pullRequests", "pullRequests(first: 3) { totalCount nodes { title } }", ["pull_requests"]],
  ["pullRequests", "pullRequests { totalCount }", ["pull_requests"]],
  ["pullRequest", "pullRequest(number: $pull) { title }", ["pull_requests"]],
  ["issueOrPullRequest", "issueOrPullRequest(number: $pull) { ... on PullRequest { title } }", ["pull_requests"]],
  ["labels", "labels(first: 3) { totalCount nodes { name } }", ["issues", "pull_requests"]],
  ["label", "label(name: $label) { name }", ["issues", "pull_requests"]],
  ["milestones", "milestones(first: 3) { totalCount nodes { title } }", ["issues", "pull_requests"]],
  ["milestone", "milestone(number: $milestone) { title }", ["issues", "pull_requests"]],
  ["assignableUsers", "assignableUsers(first: 3) { totalCount nodes { login } }", ["issues", "pull_requests"]],
  ["nameWithOwner", "nameWithOwner description stargazerCount", ["metadata"]],
];

/** In the service's schema. */
const NEVER_NULL = new Set(["issues", "pullRequests", "assignableUsers"]);

describe.each(EACH_GIVEN)("a token for %s", (name) => {
  test.each(FIELDS)("Repository.%s: %s", async (field, selection, accepted) => {
    const { params } = hidden;
    const values = {
      issue: Number(params.number),
      pull: Number(params["pulls/number"]),
      milestone: Number(params["milestones/number"]),
      label: decodeURIComponent(params.name ?? ""),
    };
    const used = Object.entries(values).filter(([key]) => selection.includes(`$${key}`));
    const declared = used.map(([key]) => `, $${key}: ${key === "label" ? "String" : "Int"}!`).join("");
    const query = `query($owner: String!, $name: String!${declared}) { repository(owner: $owner, name: $name) { id ${selection} } }`;
    const variables = { owner, name: repository, ...Object.fromEntries(used) };
    for (const body of await coldAndWarm(name, query, variables)) {
      if (accepted.some((one) => has(name, one))) {
        expect(body.errors).toBeUndefined();
        expect(body).toEqual(await graphql(world.token, query, variables));
        continue;
      }
      // Without the list that it must show, the whole repository is null: that does not say that there is none.
      expect(body.errors).toEqual([refusedAt("repository", field)]);
      if (NEVER_NULL.has(field)) expect(body.data.repository).toBeNull();
      else expect(body.data.repository).toEqual({ id: hidden.nodes.repository, [field]: null });
    }
  });

  test("finds by id what it was given, and is refused the rest", async () => {
    const accepted: Record<string, string[]> = {
      repository: ["metadata"],
      issue: ["issues"],
      pull: ["pull_requests"],
      review: ["pull_requests"],
      reviewComment: ["pull_requests"],
      label: ["issues", "pull_requests"],
      milestone: ["issues", "pull_requests"],
      commentOnIssue: ["issues"],
      commentOnPull: ["pull_requests"],
    };
    const { comment: _, ...nodes } = hidden.nodes;
    const ids = { ...nodes, commentOnIssue: comments.issue, commentOnPull: comments.pull };
    const query = "query($id: ID!) { node(id: $id) { id } nodes(ids: [$id]) { id } }";
    for (const [kind, id] of Object.entries(ids)) {
      const isAllowed = accepted[kind]?.some((one) => has(name, one));
      for (const body of await coldAndWarm(name, query, { id })) {
        expect(body.data, kind).toEqual(isAllowed ? { node: { id }, nodes: [{ id }] } : { node: null, nodes: [null] });
        if (!isAllowed) expect(body.errors).toEqual([refusedAt("node"), refusedAt("nodes", 0)]);
      }
    }
  });

  test("finds by address what it was given, and is refused the rest", async () => {
    const query = "query($url: URI!) { resource(url: $url) { url } }";
    for (const url of hidden.pages) {
      const isAllowed = url.includes("/issues/")
        ? has(name, "issues")
        : url.includes("/pull/")
          ? has(name, "pull_requests")
          : !url.includes("/milestone/") || has(name, "issues") || has(name, "pull_requests");
      const { data, errors } = await graphql(tokens[name], query, { url });
      expect(data.resource, url).toEqual(isAllowed ? { url } : null);
      if (!isAllowed) expect(errors).toEqual([refusedAt("resource")]);
    }
  });

  test("sees under a label and a milestone what it was given", async () => {
    if (name === "metadata alone") return;
    const query = `query($label: ID!, $milestone: ID!) {
      label: node(id: $label) { ... on Label { LIST { totalCount } } }
      milestone: node(id: $milestone) { ... on Milestone { LIST { totalCount } } } }`;
    const variables = { label: hidden.nodes.label, milestone: hidden.nodes.milestone };
    for (const [list, permission] of [
      ["issues", "issues"],
      ["pullRequests", "pull_requests"],
    ] as const) {
      for (const { data, errors } of await coldAndWarm(name, query.replaceAll("LIST", list), variables)) {
        if (has(name, permission)) expect(data.label[list].totalCount).toBeGreaterThanOrEqual(0);
        else {
          expect(errors).toHaveLength(2);
          expect(errors).toEqual(expect.arrayContaining([refusedAt("label", list), refusedAt("milestone", list)]));
        }
      }
    }
  });

  test("finds and counts what it could read", async () => {
    const SEARCH = `query($q: String!) { search(type: ISSUE, query: $q, first: 100) {
      issueCount nodes { __typename ... on Issue { repository { id } } ... on PullRequest { repository { id } } } } }`;
    const q = `repo:${hidden.fullName}`;
    const theirs = (await graphql(world.token, SEARCH, { q })).data.search;
    const wanted = (node: Body) => has(name, node.__typename === "Issue" ? "issues" : "pull_requests");
    const { data } = await graphql(tokens[name], SEARCH, { q });
    expect(theirs.issueCount).toBeLessThanOrEqual(100);
    expect(data.search).toEqual({
      issueCount: theirs.nodes.filter(wanted).length,
      nodes: theirs.nodes.filter(wanted),
    });
  });

  test("may follow what it was given", async () => {
    const of = { issueChanged: "issues", pullRequestChanged: "pull_requests" };
    for (const [field, permission] of Object.entries(of)) {
      if (has(name, permission)) continue;
      const { headers, body } = await world.send("POST", "/graphql", {
        token: tokens[name],
        headers: { accept: "text/event-stream" },
        body: JSON.stringify({
          query: `subscription { ${field}(repositoryId: "${hidden.nodes.repository}") { number } }`,
        }),
      });
      expect(headers.get("content-type")).toMatch(/json/);
      expect(body.errors).toEqual([refusedAt(field)]);
    }
  });
});
