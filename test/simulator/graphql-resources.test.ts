import { beforeEach, describe, expect, test } from "vitest";
import type { WorldEvent } from "../../src/simulator/world/event.ts";
import { GHOST_ID, type Issue, type PullIssue, type Repository, type User } from "../../src/simulator/world/records.ts";
import { openGraphql } from "./graphql-world.ts";

let at: ReturnType<typeof openGraphql>;
let owner: User;
let repository: Repository;

beforeEach(() => {
  at = openGraphql();
  owner = at.world.userByLogin("mona") as User; // The token's own account, which may write.
  repository = at.world.addRepository({ ownerId: owner.id, name: "demo" });
});

const byId = (id: string, fields: string) => at.ask(`query ($id: ID!) { node(id: $id) { ${fields} } }`, { id });

describe("reading", () => {
  test("an issue shows what REST shows, in GraphQL's spelling", async () => {
    const label = at.world.addLabel({ repository, name: "area/core" });
    const issue = at.world.addIssue({
      repository,
      title: "T",
      authorId: owner.id,
      labelIds: [label.id],
      state: "closed",
      stateReason: "duplicate",
      closedAt: 1_700_000_000,
      locked: true,
      lockReason: "too heated",
    });
    const fields =
      "... on Issue { __typename databaseId fullDatabaseId body state stateReason all: stateReason(enableDuplicate: true) closedAt activeLockReason url resourcePath author { __typename login } labels(first: 5) { nodes { name url } } }";
    const { node } = (await byId(at.world.nodeId("Issue", issue, repository.id), fields)).data;
    expect(node).toEqual({
      __typename: "Issue",
      databaseId: issue.id, // The id has more than 32 bits, though the type says Int.
      fullDatabaseId: String(issue.id),
      body: "",
      state: "CLOSED",
      stateReason: "NOT_PLANNED",
      all: "DUPLICATE",
      closedAt: "2023-11-14T22:13:20Z",
      activeLockReason: "TOO_HEATED",
      url: "https://github.com/mona/demo/issues/1",
      resourcePath: "/mona/demo/issues/1",
      author: { __typename: "User", login: "mona" },
      labels: { nodes: [{ name: "area/core", url: "https://github.com/mona/demo/labels/area%2Fcore" }] },
    });
    expect(issue.id).toBeGreaterThan(2 ** 31);
  });

  test("ghosts are null, a fork that is gone is null, mergeable is unknown first", async () => {
    const end = (repositoryId: number | null) => ({
      ref: "x",
      sha: "a".repeat(40),
      label: "unknown:x",
      userId: null,
      repositoryId,
    });
    const pull = at.world.addIssue({
      repository,
      title: "P",
      authorId: GHOST_ID,
      pull: { head: end(null), base: end(repository.id) },
    }) as PullIssue;
    const fields =
      "... on PullRequest { state author { login } headRepository { id } headRepositoryOwner { login } isCrossRepository mergeable mergeStateStatus mergedBy { login } }";
    const id = at.world.nodeId("PullRequest", { id: pull.pull.id, createdAt: pull.createdAt }, repository.id);
    const first = (await byId(id, fields)).data.node;
    expect(first).toEqual({
      state: "OPEN",
      author: null,
      headRepository: null,
      headRepositoryOwner: null,
      isCrossRepository: true,
      mergeable: "UNKNOWN",
      mergeStateStatus: "UNKNOWN",
      mergedBy: null,
    });
    at.clock.advance(at.world.mergeableDelayMs);
    expect((await byId(id, fields)).data.node).toMatchObject({ mergeable: "MERGEABLE", mergeStateStatus: "CLEAN" });
  });

  test("review threads gather answers; a pending review is its author's alone", async () => {
    const end = { ref: "x", sha: "a".repeat(40), label: "mona:x", userId: owner.id, repositoryId: repository.id };
    const pull = at.world.addIssue({
      repository,
      title: "P",
      authorId: owner.id,
      pull: { head: end, base: end },
    }) as PullIssue;
    const other = at.world.addUser({ login: "other" });
    const review = at.world.addReview({ issue: pull, authorId: other.id, state: "APPROVED" });
    at.world.addReview({ issue: pull, authorId: other.id, state: "PENDING" });
    const note = { issue: pull, authorId: other.id, path: "a.ts", commitId: end.sha, reviewId: review.id };
    const root = at.world.addReviewComment({ ...note, body: "why?" });
    at.world.addReviewComment({ ...note, body: "because", inReplyToId: root.id });
    at.world.addReviewComment({ ...note, body: "elsewhere", path: "b.ts" });
    const query = `{ repository(owner: "mona", name: "demo") { pullRequest(number: 1) {
      totalCommentsCount reviewDecision
      reviews(first: 9) { totalCount nodes { state submittedAt fullDatabaseId commit { oid } comments(first: 9) { totalCount } } }
      latestReviews(first: 9) { nodes { state } }
      reviewThreads(first: 9) { totalCount nodes { id path comments(first: 9) { nodes { body replyTo { fullDatabaseId } } } } } } } }`;
    const shown = (await at.ask(query)).data.repository.pullRequest;
    expect(shown).toMatchObject({
      totalCommentsCount: 3,
      reviewDecision: "APPROVED",
      reviews: {
        totalCount: 1,
        nodes: [
          {
            state: "APPROVED",
            fullDatabaseId: String(review.id),
            commit: { oid: end.sha },
            comments: { totalCount: 3 },
          },
        ],
      },
      latestReviews: { nodes: [{ state: "APPROVED" }] },
    });
    const [first, second] = shown.reviewThreads.nodes;
    expect(first.comments.nodes).toEqual([
      { body: "why?", replyTo: null },
      { body: "because", replyTo: { fullDatabaseId: String(root.id) } },
    ]);
    expect(second.path).toBe("b.ts");
    expect((await byId(first.id, "... on PullRequestReviewThread { path }")).data.node).toEqual({ path: "a.ts" });
  });

  test("viewer.repositories orders by every field, both ways, and knows affiliations", async () => {
    const stranger = at.world.addUser({ login: "stranger" });
    const organization = at.world.addUser({ login: "org", type: "Organization", memberIds: [owner.id] });
    const make = (ownerId: number, name: string, n: number, extra = {}) =>
      at.world.addRepository({
        ownerId,
        name,
        createdAt: 1_000 + n,
        updatedAt: 9_000 - n,
        pushedAt: n % 2 === 0 ? 5_000 + n : null,
        stargazers: (n * 7) % 5,
        ...extra,
      });
    make(owner.id, "b", 1);
    make(owner.id, "A", 2, { visibility: "private" });
    make(organization.id, "c", 3);
    make(stranger.id, "d", 4, { collaborators: new Map([[owner.id, "push"]]) });
    make(stranger.id, "e", 5);
    const names = async (args: string) => {
      const reply = await at.ask(`{ viewer { repositories(first: 50, ${args}) { nodes { name } } } }`);
      return reply.data.viewer.repositories.nodes.map((node: { name: string }) => node.name);
    };
    expect(await names("orderBy: { field: NAME, direction: ASC }")).toEqual(["A", "b", "d", "demo"]);
    expect(await names("orderBy: { field: NAME, direction: DESC }")).toEqual(["demo", "d", "b", "A"]);
    expect(await names("orderBy: { field: CREATED_AT, direction: ASC }")).toEqual(["b", "A", "d", "demo"]);
    expect(await names("orderBy: { field: UPDATED_AT, direction: DESC }")).toEqual(["demo", "b", "A", "d"]);
    expect(await names("orderBy: { field: STARGAZERS, direction: DESC }")).toEqual(["A", "d", "b", "demo"]);
    expect(await names("orderBy: { field: PUSHED_AT, direction: ASC }")).toEqual(["A", "d", "demo", "b"]);
    expect(await names("ownerAffiliations: [ORGANIZATION_MEMBER]")).toEqual(["c"]);
    // `ownerAffiliations` has a default of its own.
    expect(await names("affiliations: [ORGANIZATION_MEMBER]")).toEqual([]);
    expect(await names("affiliations: [OWNER], privacy: PRIVATE")).toEqual(["A"]);
  });

  test("search understands the common qualifiers", async () => {
    const other = at.world.addUser({ login: "other" });
    at.world.addLabel({ repository, name: "needs work" });
    const label = at.world.labelByName(repository, "needs work");
    at.world.addIssue({
      repository,
      title: "Crash on start",
      body: "cc @other",
      authorId: other.id,
      labelIds: label ? [label.id] : [],
      createdAt: 1_600_000_000,
    });
    at.world.addIssue({
      repository,
      title: "Slow start",
      authorId: owner.id,
      state: "closed",
      createdAt: 1_700_000_000,
    });
    const numbers = async (query: string) => {
      const reply = await at.ask(
        "query ($q: String!) { search(query: $q, type: ISSUE, first: 9) { issueCount nodes { ... on Issue { number } } } }",
        { q: query },
      );
      return reply.data.search.nodes.map((node: { number: number }) => node.number);
    };
    expect(await numbers("repo:mona/demo is:issue")).toEqual([2, 1]);
    expect(await numbers("repo:mona/demo is:open start")).toEqual([1]);
    expect(await numbers('label:"needs work"')).toEqual([1]);
    expect(await numbers("-author:other")).toEqual([2]);
    expect(await numbers("mentions:other sort:created-asc")).toEqual([1]);
    expect(await numbers("created:>=2023-01-01")).toEqual([2]);
    expect(await numbers("repo:mona/none")).toEqual([]);
  });

  test("a replica that is behind shows the older version", async () => {
    at.world.lag.ms = 5_000;
    await at.ask(
      'mutation ($id: ID!) { createIssue(input: { repositoryId: $id, title: "new" }) { issue { number } } }',
      { id: at.world.nodeId("Repository", repository) },
    );
    const query = '{ repository(owner: "mona", name: "demo") { issue(number: 1) { title } } }';
    at.world.lag.ms = 5_000;
    expect((await at.ask(query)).errors?.[0]?.type).toBe("NOT_FOUND");
    at.clock.advance(60_000);
    expect((await at.ask(query)).data.repository.issue.title).toBe("new");
  });
});

describe("writing", () => {
  let events: WorldEvent[];
  beforeEach(() => {
    events = [];
    at.world.onEvent((event) => events.push(event));
  });
  const mutate = (name: string, input: object, payload: string) => {
    const type = `${name.charAt(0).toUpperCase()}${name.slice(1)}Input`;
    return at.ask(`mutation ($input: ${type}!) { result: ${name}(input: $input) { ${payload} } }`, { input });
  };
  const repositoryId = () => at.world.nodeId("Repository", repository);
  const issueId = (issue: Issue) => at.world.nodeId("Issue", issue, repository.id);

  test("createIssue tells the webhook and answers number and url", async () => {
    const label = at.world.addLabel({ repository, name: "bug" });
    const reply = await mutate(
      "createIssue",
      {
        repositoryId: repositoryId(),
        title: "New",
        body: "b",
        labelIds: [at.world.nodeId("Label", label, repository.id)],
        clientMutationId: "c",
      },
      "clientMutationId issue { number url }",
    );
    expect(reply.data.result).toEqual({
      clientMutationId: "c",
      issue: { number: 1, url: "https://github.com/mona/demo/issues/1" },
    });
    expect(events.map((event) => `${event.event}.${event.action}`)).toEqual(["issues.opened", "issues.labeled"]);
  });

  test("an issue's whole life", async () => {
    const issue = at.world.addIssue({ repository, title: "T", authorId: owner.id });
    const milestone = at.world.addMilestone({ repository, title: "v1" });
    const id = issueId(issue);
    await mutate(
      "updateIssue",
      { id, title: "T2", milestoneId: at.world.nodeId("Milestone", milestone, repository.id) },
      "issue { id }",
    );
    expect(issue).toMatchObject({ title: "T2", milestoneId: milestone.id });
    await mutate("updateIssue", { id, milestoneId: null }, "issue { id }");
    expect(issue).toMatchObject({ title: "T2", milestoneId: null });
    await mutate("closeIssue", { issueId: id, stateReason: "NOT_PLANNED" }, "issue { stateReason }");
    expect(issue).toMatchObject({ state: "closed", stateReason: "not_planned" });
    await mutate("reopenIssue", { issueId: id }, "issue { id }");
    const { subject, commentEdge } = (
      await mutate("addComment", { subjectId: id, body: "hi" }, "subject { id } commentEdge { node { id body } }")
    ).data.result;
    expect({ subject: subject.id, body: commentEdge.node.body }).toEqual({ subject: id, body: "hi" });
    await mutate("updateIssueComment", { id: commentEdge.node.id, body: "ho" }, "issueComment { body }");
    await mutate("deleteIssueComment", { id: commentEdge.node.id }, "clientMutationId");
    expect(issue.thread).toEqual([]);
    await mutate("deleteIssue", { issueId: id }, "repository { name }");
    expect(at.world.issue(repository, issue.number)).toBeUndefined();
    expect(events.map((event) => `${event.event}.${event.action}`)).toEqual([
      "issues.edited",
      "issues.milestoned",
      "issues.demilestoned",
      "issues.closed",
      "issues.reopened",
      "issue_comment.created",
      "issue_comment.edited",
      "issue_comment.deleted",
      "issues.deleted",
    ]);
  });

  test("labels and assignees are added and removed one by one", async () => {
    const issue = at.world.addIssue({ repository, title: "T", authorId: owner.id });
    const labelIds = ["a", "b"].map((name) =>
      at.world.nodeId("Label", at.world.addLabel({ repository, name }), repository.id),
    );
    await mutate(
      "addLabelsToLabelable",
      { labelableId: issueId(issue), labelIds },
      "labelable { labels(first: 5) { totalCount } }",
    );
    await mutate(
      "removeLabelsFromLabelable",
      { labelableId: issueId(issue), labelIds: labelIds.slice(0, 1) },
      "labelable { __typename }",
    );
    await mutate(
      "addAssigneesToAssignable",
      { assignableId: issueId(issue), assigneeIds: [at.world.nodeId("User", owner)] },
      "assignable { assignees(first: 5) { nodes { login } } }",
    );
    expect(issue.labelIds.map((id) => at.world.labels.get(id)?.name)).toEqual(["b"]);
    expect(issue.assigneeIds).toEqual([owner.id]);
  });

  test("a pull request is opened, changed and closed; a second one from its branch is refused", async () => {
    repository.branches.set("topic", "f".repeat(40));
    const input = { repositoryId: repositoryId(), baseRefName: "main", headRefName: "topic", title: "P" };
    const { pullRequest } = (await mutate("createPullRequest", input, "pullRequest { id number headRefName isDraft }"))
      .data.result;
    expect(pullRequest).toMatchObject({ number: 1, headRefName: "topic", isDraft: false });
    const again = await mutate("createPullRequest", input, "pullRequest { id }");
    expect(again).toMatchObject({
      data: { result: null },
      errors: [{ type: "UNPROCESSABLE", message: "A pull request already exists for mona:topic." }],
    });
    await mutate(
      "updatePullRequest",
      { pullRequestId: pullRequest.id, title: "P2", state: "CLOSED" },
      "pullRequest { id }",
    );
    expect(at.world.issue(repository, 1)).toMatchObject({ title: "P2", state: "closed" });
    expect(events.map((event) => event.action)).toEqual(["opened", "edited", "closed"]);
  });

  test("who may not write is refused, and nothing changes", async () => {
    const stranger = at.tokens.create({ login: "stranger" });
    const issue = at.world.addIssue({ repository, title: "T", authorId: owner.id });
    const input = { id: issueId(issue), title: "Mine now" };
    const reply = await at.ask(
      "mutation ($input: UpdateIssueInput!) { updateIssue(input: $input) { issue { id } } }",
      { input },
      stranger,
    );
    expect(reply).toMatchObject({
      data: { updateIssue: null },
      errors: [{ type: "FORBIDDEN", message: "Resource not accessible by personal access token" }],
    });
    expect(issue.title).toBe("T");
    expect(events).toEqual([]);
  });

  test("blank titles, other repositories' labels and archived repositories are refused", async () => {
    const elsewhere = at.world.addRepository({ ownerId: owner.id, name: "else" });
    const foreign = at.world.nodeId("Label", at.world.addLabel({ repository: elsewhere, name: "x" }), elsewhere.id);
    expect(
      (await mutate("createIssue", { repositoryId: repositoryId(), title: " " }, "issue { id }")).errors?.[0]?.type,
    ).toBe("UNPROCESSABLE");
    expect(
      (await mutate("createIssue", { repositoryId: repositoryId(), title: "t", labelIds: [foreign] }, "issue { id }"))
        .errors?.[0]?.type,
    ).toBe("NOT_FOUND");
    repository.archived = true;
    expect(
      (await mutate("createIssue", { repositoryId: repositoryId(), title: "t" }, "issue { id }")).errors?.[0]?.message,
    ).toBe("Repository was archived so is read-only.");
    expect(repository.lastNumber).toBe(0);
  });

  test("a mutation whose payload cannot be paged has taken effect all the same", async () => {
    const reply = await mutate(
      "createIssue",
      { repositoryId: repositoryId(), title: "Kept" },
      "issue { labels { nodes { name } } }",
    );
    expect(reply.errors?.[0]?.type).toBe("MISSING_PAGINATION_BOUNDARIES");
    expect(at.world.issue(repository, 1)?.title).toBe("Kept");
  });
});
