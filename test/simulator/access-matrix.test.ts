import { expect, test } from "vitest";
import type { Access, Reach } from "../../src/simulator/world/access.ts";
import { type AccessWorld, openAccessWorld, PLACES, type Place, type PlaceName } from "./access-world.ts";

const UNSEEN = "unseen";
const FREE = "read/read";

/** For each caller its token, and its access to issues and pull requests in each of `PLACES`. */
const CALLERS: readonly (readonly [
  what: string,
  token: (it: AccessWorld) => Promise<string> | string | null,
  reach: readonly string[],
])[] = [
  ["nobody", () => null, [FREE, UNSEEN, UNSEEN, FREE, UNSEEN]],
  ["a classic token without a scope", (it) => it.token({ scopes: [] }), [FREE, UNSEEN, UNSEEN, FREE, UNSEEN]],
  [
    "a classic token for statuses",
    (it) => it.token({ scopes: ["repo:status", "read:org"] }),
    [FREE, UNSEEN, UNSEEN, FREE, UNSEEN],
  ],
  [
    "a classic token with public_repo",
    (it) => it.token({ scopes: ["public_repo"] }),
    ["write/write", UNSEEN, UNSEEN, "write/write", UNSEEN],
  ],
  [
    "a classic token with repo",
    (it) => it.token({ scopes: ["repo"] }),
    ["write/write", "write/write", "write/write", "write/write", UNSEEN],
  ],
  [
    "a stranger's OAuth token with repo",
    (it) => it.token({ kind: "oauth", login: "stranger", scopes: ["repo"] }),
    ["write/write", UNSEEN, UNSEEN, "write/write", UNSEEN],
  ],
  [
    "a stranger's OAuth token without a scope",
    (it) => it.token({ kind: "oauth", login: "stranger", scopes: [] }),
    [FREE, UNSEEN, UNSEEN, FREE, UNSEEN],
  ],
  [
    "a fine-grained token without permissions of its own",
    (it) => it.token({ kind: "fine-grained" }),
    ["write/write", "write/write", "write/write", "write/write", UNSEEN],
  ],
  [
    "a fine-grained token for metadata",
    (it) => it.token({ kind: "fine-grained", permissions: {}, repositories: ["acme/closed", "acme/inner"] }),
    [FREE, "none/none", "none/none", FREE, UNSEEN],
  ],
  [
    "a fine-grained token for issues of one repository",
    (it) => it.token({ kind: "fine-grained", permissions: { issues: "read" }, repositories: ["acme/closed"] }),
    [FREE, "read/none", UNSEEN, FREE, UNSEEN],
  ],
  [
    "a fine-grained token for pull requests of all that acme has",
    (it) =>
      it.token({
        kind: "fine-grained",
        owner: "acme",
        permissions: { pull_requests: "read" },
        repositories: "all",
      }),
    [FREE, "none/read", "none/read", FREE, UNSEEN],
  ],
  [
    "a fine-grained token to write issues of acme",
    (it) => it.token({ kind: "fine-grained", owner: "acme", permissions: { issues: "write" } }),
    ["write/read", "write/none", "write/none", FREE, UNSEEN],
  ],
  [
    "a fine-grained token for contents of acme",
    (it) => it.token({ kind: "fine-grained", owner: "acme", permissions: { contents: "write" } }),
    [FREE, "none/none", "none/none", FREE, UNSEEN],
  ],
  [
    "a fine-grained token whose account sees nothing of acme",
    (it) =>
      it.token({
        kind: "fine-grained",
        login: "stranger",
        owner: "acme",
        permissions: { issues: "write", pull_requests: "write" },
      }),
    [FREE, UNSEEN, UNSEEN, FREE, UNSEEN],
  ],
  [
    "a fine-grained token for the account's own repositories",
    (it) => it.token({ kind: "fine-grained", permissions: { issues: "read", pull_requests: "read" } }),
    [FREE, UNSEEN, UNSEEN, FREE, UNSEEN],
  ],
  [
    "an Actions token for issues",
    (it) =>
      it.token({
        kind: "actions",
        login: "github-actions[bot]",
        permissions: { issues: "read" },
        repositories: ["acme/closed"],
      }),
    [FREE, "read/none", UNSEEN, FREE, UNSEEN],
  ],
  [
    "an Actions token to write pull requests",
    (it) =>
      it.token({
        kind: "actions",
        login: "github-actions[bot]",
        permissions: { contents: "read", pull_requests: "write" },
        repositories: ["acme/inner"],
      }),
    [FREE, UNSEEN, "none/write", FREE, UNSEEN],
  ],
  [
    "an installation for metadata",
    (it) => it.installed({ metadata: "read" }),
    [FREE, "none/none", "none/none", FREE, UNSEEN],
  ],
  [
    "an installation for issues of one repository",
    (it) => it.installed({ issues: "read" }, ["acme/closed"]),
    [FREE, "read/none", UNSEEN, FREE, UNSEEN],
  ],
  [
    "an installation for pull requests",
    (it) => it.installed({ pull_requests: "read" }),
    [FREE, "none/read", "none/read", FREE, UNSEEN],
  ],
  [
    "an installation to write both",
    (it) => it.installed({ issues: "write", pull_requests: "write" }),
    ["write/write", "write/write", "write/write", FREE, UNSEEN],
  ],
  [
    "an App's token of a user, for issues",
    (it) => it.ofUser("octo", { issues: "write" }),
    ["write/read", "write/none", "write/none", FREE, UNSEEN],
  ],
  [
    "an App's token of a user, for one repository",
    (it) => it.ofUser("octo", { pull_requests: "read" }, ["acme/closed"]),
    [FREE, "none/read", UNSEEN, FREE, UNSEEN],
  ],
  [
    "an App's token of a user who sees nothing of acme",
    (it) => it.ofUser("stranger", { issues: "write", pull_requests: "write" }),
    [FREE, UNSEEN, UNSEEN, FREE, UNSEEN],
  ],
];

const told = ({ metadata, issues, pulls }: Access) => (metadata ? `${issues}/${pulls}` : UNSEEN);

test.each(CALLERS)(
  "%s: every answer is as the oracle says, and the oracle as the service's documents",
  async (...row) => {
    const [, make, reach] = row;
    await using it = await openAccessWorld();
    const token = await make(it);
    const { simulator, places } = it;
    const oracle = PLACES.map((name) => simulator.accessOf(token, places[name].repository));
    expect(oracle.map(told)).toEqual(reach);
    for (const [at, name] of PLACES.entries()) {
      const access = oracle[at] as Access;
      const asked = `/-/access?repository=${name}${token === null ? "" : `&token=${token}`}`;
      expect((await it.control("GET", asked)).body, asked).toEqual(access);
      expect(await restAnswers(it, token, name), `${name} in REST`).toEqual(restExpected(access));
      if (token !== null)
        expect(await graphqlAnswers(it, token, name), `${name} in GraphQL`).toEqual(graphqlExpected(access));
    }
  },
);

// --- REST

async function restAnswers(it: AccessWorld, token: string | null, name: PlaceName) {
  const answers: Record<string, unknown> = {};
  const { onIssue, onPull } = it.places[name];
  for (const path of [
    "",
    "/issues?state=all",
    "/pulls?state=all",
    "/issues/1",
    "/issues/2",
    "/pulls/2",
    "/pulls/2/reviews",
    "/issues/1/comments",
    "/issues/2/comments",
    "/issues/comments",
    `/issues/comments/${onIssue.id}`,
    `/issues/comments/${onPull.id}`,
    "/labels",
    "/milestones/1",
    "/issues/2/labels",
  ]) {
    const { status, body } = await it.get(`/repos/${name}${path}`, { token });
    const listed = status === 200 && Array.isArray(body) ? body.map(numberOf).filter((one) => one !== undefined) : null;
    const short = path.replace(String(onIssue.id), "onIssue").replace(String(onPull.id), "onPull");
    answers[short] = listed && listed.length > 0 ? listed.toSorted().join() : status;
  }
  return answers;
}

function numberOf(row: { number?: number; issue_url?: string }): number | undefined {
  return row.number ?? (row.issue_url ? Number(/\d+$/.exec(row.issue_url)?.[0]) : undefined);
}

function restExpected(access: Access) {
  const issues = access.issues !== "none";
  const pulls = access.pulls !== "none";
  const answered = (open: boolean, otherwise: unknown = 200) => {
    if (!access.metadata) return 404;
    return open ? otherwise : 403;
  };
  return {
    "": access.metadata ? 200 : 404,
    // Without the permission for pull requests, a list of issues does not show them.
    "/issues?state=all": answered(issues, pulls ? "1,2" : "1"),
    "/pulls?state=all": answered(pulls, "2"),
    "/issues/1": answered(issues),
    "/issues/2": answered(issues && pulls),
    "/pulls/2": answered(pulls),
    "/pulls/2/reviews": answered(pulls),
    "/issues/1/comments": answered(issues, "1"),
    "/issues/2/comments": answered(pulls, "2"),
    "/issues/comments": answered(issues || pulls, [issues ? [1] : [], pulls ? [2] : []].flat().join()),
    "/issues/comments/onIssue": answered(issues),
    "/issues/comments/onPull": answered(pulls),
    "/labels": answered(issues || pulls),
    "/milestones/1": answered(issues || pulls),
    "/issues/2/labels": answered(pulls),
  };
}

// --- GraphQL

// The probes have aliases of their own, because a refused connection makes its repository null.
const PROBES = {
  metadata: "name",
  issuesCounted: "issues(first: 0) { totalCount }",
  issuesListed: "issues(first: 5) { nodes { number } }",
  issue: "issue(number: 1) { number }",
  noIssue: "issue(number: 9) { number }",
  pullsCounted: "pullRequests { totalCount }",
  pull: "pullRequest(number: 2) { number }",
  eitherIssue: "issueOrPullRequest(number: 1) { __typename }",
  eitherPull: "issueOrPullRequest(number: 2) { __typename }",
  labels: "labels(first: 1) { nodes { name } }",
  label: 'label(name: "bug") { name }',
  milestone: "milestone(number: 1) { title }",
  issuesOfLabel: 'label(name: "bug") { issues { totalCount } }',
  pullsOfMilestone: "milestone(number: 1) { pullRequests { totalCount } }",
};

const QUERY = `query ($owner: String!, $name: String!, $ids: [ID!]!, $text: String!, $first: ID!) {
  ${Object.entries(PROBES)
    .map(([alias, fields]) => `${alias}: repository(owner: $owner, name: $name) { ${fields} }`)
    .join("\n")}
  one: node(id: $first) { id }
  nodes(ids: $ids) { __typename }
  search(type: ISSUE, query: $text, first: 10) {
    issueCount
    nodes { ... on Issue { number } ... on PullRequest { number } }
  }
}`;

async function graphqlAnswers(it: AccessWorld, token: string, name: PlaceName) {
  const { nodeIds }: Place = it.places[name];
  const [owner = "", repository = ""] = name.split("/");
  const variables = { owner, name: repository, ids: nodeIds, first: nodeIds[0], text: `repo:${name} sort:created-asc` };
  const { data, errors = [] } = await it.graphql(token, QUERY, variables);
  const typeAt = (...path: readonly (string | number)[]) => {
    const error = errors.find((one) => path.every((part, at) => one.path?.[at] === part));
    return error?.type ?? "ok";
  };
  return {
    ...Object.fromEntries(Object.keys(PROBES).map((alias) => [alias, typeAt(alias)])),
    one: typeAt("one"),
    nodes: nodeIds.map((_, at) => (data.nodes[at] === null ? typeAt("nodes", at) : "ok")),
    found: data.search.nodes.map((row: { number: number }) => row.number),
    counted: data.search.issueCount,
  };
}

function graphqlExpected(access: Access) {
  const outcome = (open: boolean, otherwise = "ok") => {
    if (!access.metadata) return "NOT_FOUND";
    return open ? otherwise : "FORBIDDEN";
  };
  const has = (reach: Reach) => reach !== "none";
  const issue = outcome(has(access.issues));
  const pull = outcome(has(access.pulls));
  const either = outcome(has(access.issues) || has(access.pulls));
  const found = access.metadata ? [has(access.issues) ? [1] : [], has(access.pulls) ? [2] : []].flat() : [];
  return {
    metadata: access.metadata ? "ok" : "NOT_FOUND",
    issuesCounted: issue,
    issuesListed: issue,
    issue,
    noIssue: outcome(has(access.issues), "NOT_FOUND"),
    pullsCounted: pull,
    pull,
    eitherIssue: issue,
    eitherPull: pull,
    labels: either,
    label: either,
    milestone: either,
    issuesOfLabel: issue,
    pullsOfMilestone: pull,
    one: issue,
    nodes: [issue, pull, issue, pull, pull, either, either],
    found,
    counted: found.length,
  };
}
