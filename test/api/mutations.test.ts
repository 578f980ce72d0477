import { afterAll, beforeAll, expect, test } from "vitest";
import { pushBranch } from "../../src/simulator/changes/pulls.ts";
import { compare } from "../support/comparison.ts";
import { store } from "../support/mirrored.ts";
import { type ApiWorld, openApiWorld } from "./api-world.ts";

let world: ApiWorld;
let repo: string;
const ids: Record<string, string> = {};
const numbers: Record<string, number> = {};

beforeAll(async () => {
  world = await openApiWorld({ issues: 10, repositories: 1, upstreamTokens: 30 });
  const [first] = world.repositories;
  const repository = first && world.upstream.world.repositories.get(first.id);
  if (!repository) throw new Error("The generated world has no repository");
  repo = first.fullName;
  pushBranch(world.upstream.world, world.userId, repository, "topic");
  pushBranch(world.upstream.world, world.userId, repository, "other-base");
  const shown = (await world.getUpstream(`/repos/${repo}`)).body;
  await store(world.ctx, world.upstream, "repository", shown);
  ids.repository = shown.node_id;
  ids.bug = (await world.get(`/repos/${repo}/labels/bug`)).body.node_id;
  ids.user = (await world.get("/user")).body.node_id;
  const send = async (path: string, body: object) =>
    (await world.send("POST", `/repos/${repo}${path}`, { body: JSON.stringify(body) })).body;
  ids.milestone = (await send("/milestones", { title: "m" })).node_id;
  ids.label = (await send("/labels", { name: "l" })).node_id;
});
afterAll(() => world?.[Symbol.asyncDispose]());

async function mutate(name: string, input: object, selection: string) {
  const type = `${name.charAt(0).toUpperCase()}${name.slice(1)}Input`;
  const query = `mutation($input: ${type}!) { ${name}(input: $input) { clientMutationId ${selection} } }`;
  const variables = { input: { ...input, clientMutationId: "c" } };
  const { body } = await world.send("POST", "/graphql", { body: JSON.stringify({ query, variables }) });
  expect(body.errors).toBeUndefined();
  expect(body.data[name].clientMutationId).toBe("c");
  return body.data[name];
}

/** The mirror is what upstream is, at once, but for what upstream works out by itself. */
async function expectEqual(): Promise<void> {
  const ofItself = ["mergeable", "rebaseable", "mergeable_state", "merge_commit_sha"];
  const { differences } = await compare(world.ctx, world.upstream, repo, (_kind, path) => ofItself.includes(path));
  expect(differences).toEqual([]);
}

const ISSUE =
  "issue { id number title body state stateReason milestone { title } labels(first: 9) { nodes { name } } assignees(first: 9) { nodes { login } } }";
const names = (connection: { nodes: { name: string }[] }) => connection.nodes.map(({ name }) => name);

test("an issue: made, updated, closed, reopened", async () => {
  const { issue: made } = await mutate(
    "createIssue",
    {
      repositoryId: ids.repository,
      title: "t",
      labelIds: [ids.bug],
      assigneeIds: [ids.user],
      milestoneId: ids.milestone,
    },
    ISSUE,
  );
  expect(made).toMatchObject({
    title: "t",
    milestone: { title: "m" },
    assignees: { nodes: [{ login: "mirror-owner" }] },
  });
  [ids.issue, numbers.issue] = [made.id, made.number];
  const { issue, actor } = await mutate(
    "updateIssue",
    { id: ids.issue, title: "t2", body: "b", labelIds: [ids.label], assigneeIds: [], milestoneId: null },
    `actor { login } ${ISSUE}`,
  );
  expect(actor).toEqual({ login: "mirror-owner" });
  expect(issue).toMatchObject({ title: "t2", body: "b", milestone: null, assignees: { nodes: [] } });
  expect(names(issue.labels)).toEqual(["l"]);
  const closed = await mutate("closeIssue", { issueId: ids.issue, stateReason: "NOT_PLANNED" }, ISSUE);
  expect(closed.issue).toMatchObject({ state: "CLOSED", stateReason: "NOT_PLANNED" });
  const opened = await mutate("reopenIssue", { issueId: ids.issue }, ISSUE);
  expect(opened.issue).toMatchObject({ state: "OPEN", stateReason: "REOPENED" });
  await expectEqual();
});

test("a comment: made, with its place in the list, updated, deleted", async () => {
  const selection =
    "commentEdge { cursor node { id body author { login } } } subject { ... on Issue { comments { totalCount } } }";
  const { commentEdge, subject } = await mutate("addComment", { subjectId: ids.issue, body: "one" }, selection);
  expect(commentEdge.node).toMatchObject({ body: "one", author: { login: expect.stringMatching(/^mirror-owner/) } });
  expect(subject.comments.totalCount).toBe(1);
  const [owner, name] = repo.split("/");
  const list = `{ repository(owner: "${owner}", name: "${name}") { issue(number: ${numbers.issue}) { comments(first: 1) { edges { cursor } } } } }`;
  const listed = await world.send("POST", "/graphql", { body: JSON.stringify({ query: list }) });
  expect(listed.body.data.repository.issue.comments.edges).toEqual([{ cursor: commentEdge.cursor }]);
  const { issueComment } = await mutate(
    "updateIssueComment",
    { id: commentEdge.node.id, body: "two" },
    "issueComment { body }",
  );
  expect(issueComment.body).toBe("two");
  await mutate("deleteIssueComment", { id: commentEdge.node.id }, "");
  await expectEqual();
});

test("labels and assignees: added and taken off, several at once, whether they are there or not", async () => {
  const shown = "labelable { labels(first: 9) { nodes { name } } }";
  const added = await mutate("addLabelsToLabelable", { labelableId: ids.issue, labelIds: [ids.bug, ids.label] }, shown);
  expect(names(added.labelable.labels).sort()).toEqual(["bug", "l"]);
  const left = await mutate("removeLabelsFromLabelable", { labelableId: ids.issue, labelIds: [ids.bug] }, shown);
  expect(names(left.labelable.labels)).toEqual(["l"]);
  const none = await mutate(
    "removeLabelsFromLabelable",
    { labelableId: ids.issue, labelIds: [ids.bug, ids.label] },
    shown,
  );
  expect(names(none.labelable.labels)).toEqual([]);
  const assigned = await mutate(
    "addAssigneesToAssignable",
    { assignableId: ids.issue, assigneeIds: [ids.user] },
    "assignable { assignees(first: 9) { nodes { login } } }",
  );
  expect(assigned.assignable.assignees.nodes).toEqual([{ login: "mirror-owner" }]);
  await expectEqual();
});

test("a pull request: made, updated from either side and from both at once, closed, reopened", async () => {
  const { pullRequest: made } = await mutate(
    "createPullRequest",
    { repositoryId: ids.repository, baseRefName: "main", headRefName: "topic", title: "p", body: "b", draft: true },
    "pullRequest { id number title isDraft headRefName }",
  );
  expect(made).toMatchObject({ title: "p", isDraft: true, headRefName: "topic" });
  [ids.pull, numbers.pull] = [made.id, made.number];
  const shown = "pullRequest { title state baseRefName milestone { title } labels(first: 9) { nodes { name } } }";
  const update = (input: object) => mutate("updatePullRequest", { pullRequestId: ids.pull, ...input }, shown);
  expect((await update({ title: "p2" })).pullRequest.title).toBe("p2");
  const byIssue = (await update({ title: "p3", labelIds: [ids.label] })).pullRequest;
  expect([byIssue.title, names(byIssue.labels)]).toEqual(["p3", ["l"]]);
  await expectEqual();
  const both = (await update({ baseRefName: "other-base", milestoneId: ids.milestone, labelIds: [ids.bug] }))
    .pullRequest;
  expect(both).toMatchObject({ baseRefName: "other-base", milestone: { title: "m" } });
  expect(names(both.labels)).toEqual(["bug"]);
  const closed = await mutate("closePullRequest", { pullRequestId: ids.pull }, "pullRequest { state }");
  expect(closed.pullRequest.state).toBe("CLOSED");
  const opened = await mutate("reopenPullRequest", { pullRequestId: ids.pull }, "pullRequest { state }");
  expect(opened.pullRequest.state).toBe("OPEN");
  await expectEqual();
});

test("refusals: what is not there, what is of another kind, what upstream refuses, who only reads", async () => {
  const ask = async (name: string, input: object, token = world.token) => {
    const type = `${name.charAt(0).toUpperCase()}${name.slice(1)}Input`;
    const query = `mutation($input: ${type}!) { ${name}(input: $input) { clientMutationId } }`;
    return (await world.send("POST", "/graphql", { token, body: JSON.stringify({ query, variables: { input } }) }))
      .body;
  };
  const typeOf = async (...asked: Parameters<typeof ask>) => {
    const { data, errors } = await ask(...asked);
    expect(data[asked[0]]).toBeNull();
    expect(errors[0].path).toEqual([asked[0]]);
    return errors[0].type;
  };
  expect(await typeOf("closeIssue", { issueId: "I_kwDOAAAAAc4AAAAB" })).toBe("NOT_FOUND");
  expect(await typeOf("closeIssue", { issueId: ids.pull })).toBe("NOT_FOUND");
  expect(await typeOf("addComment", { subjectId: ids.issue, body: " " })).toBe("UNPROCESSABLE");
  expect(await typeOf("updatePullRequest", { pullRequestId: ids.pull, baseRefName: "none", labelIds: [] })).toBe(
    "UNPROCESSABLE",
  );
  // Null and none are what `gh` sends, and leave an issue in the projects that it is in.
  expect(await typeOf("updateIssue", { id: ids.issue, title: "in a project", projectIds: ["P_1"] })).toBe(
    "UNPROCESSABLE",
  );
  for (const projectIds of [null, []])
    expect((await ask("updateIssue", { id: ids.issue, projectIds })).errors).toBeUndefined();
  expect(await typeOf("reopenIssue", { issueId: ids.issue }, world.readToken)).toBe("FORBIDDEN");
  expect(
    await typeOf("removeLabelsFromLabelable", { labelableId: ids.issue, labelIds: [ids.bug] }, world.readToken),
  ).toBe("FORBIDDEN");
  await expectEqual();
});
