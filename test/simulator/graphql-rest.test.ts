import { expect, test } from "vitest";
import { generateWorld } from "../../src/simulator/generate/generate.ts";
import { commentView, reviewCommentView, reviewView } from "../../src/simulator/views/comment.ts";
import { issueView, labelView, milestoneView } from "../../src/simulator/views/issue.ts";
import { fullPull } from "../../src/simulator/views/pull.ts";
import { openView } from "../../src/simulator/views/view.ts";
import { SettableClock } from "../../src/simulator/world/clock.ts";
import type { Issue, PullIssue } from "../../src/simulator/world/records.ts";
import { isPull, World } from "../../src/simulator/world/world.ts";
import { NOON, openGraphql } from "./graphql-world.ts";

// biome-ignore lint/suspicious/noExplicitAny: two spellings of one thing are compared.
type Node = any;

const WRITTEN = "id fullDatabaseId author { login ... on Node { id } } authorAssociation body createdAt updatedAt url";
const SHARED = `${WRITTEN} number title locked activeLockReason closedAt labels(first: 20) { nodes { id name color description isDefault } }
  assignees(first: 20) { nodes { login } } milestone { number } comments(first: 100) { totalCount nodes { ${WRITTEN} } }`;
const PULL = `... on PullRequest { ${SHARED} pullState: state isDraft merged mergedAt mergedBy { login } mergeable baseRefName baseRefOid headRefName headRefOid
  headRepository { databaseId nameWithOwner } maintainerCanModify additions deletions changedFiles commits { totalCount }
  reviews(first: 50) { nodes { ${WRITTEN} state submittedAt commit { oid } } }
  reviewThreads(first: 50) { nodes { comments(first: 50) { nodes { ${WRITTEN} path position line originalLine diffHunk replyTo { fullDatabaseId } pullRequestReview { fullDatabaseId } } } } } }`;

test("REST and GraphQL tell one truth of every row", async () => {
  const clock = new SettableClock(NOON);
  const world = new World({ seed: 8, clock });
  const { repositories } = generateWorld(world, { seed: 8, repositories: 2, issues: 90, pulls: 90 });
  const at = openGraphql({ world, clock, token: { repositories: "all" } });
  const view = openView({ world, apiUrl: "http://127.0.0.1:1", htmlUrl: "https://github.com" });
  // REST shows an account that is gone as the ghost (or null), GraphQL as null. Only in REST bots carry their suffix.
  const login = (user: Node) => (user === null || user.login === "ghost" ? null : user.login.replace("[bot]", ""));
  const written = (node: Node) => ({
    node_id: node.id,
    login: login(node.author),
    author_association: node.authorAssociation,
    body: node.body,
    created_at: node.createdAt,
    html_url: node.url,
    id: Number(node.fullDatabaseId),
  });
  const spoken = (json: Node) => ({
    node_id: json.node_id,
    login: login(json.user),
    author_association: json.author_association,
    body: json.body ?? "",
    created_at: json.created_at ?? json.submitted_at,
    html_url: json.html_url,
    id: json.id,
  });

  const compareShared = (node: Node, json: Node) => {
    expect({ ...written(node), id: 0 }).toEqual({ ...spoken(json), id: 0 });
    expect(node).toMatchObject({
      number: json.number,
      title: json.title,
      locked: json.locked,
      closedAt: json.closed_at,
      updatedAt: json.updated_at,
    });
    expect(node.activeLockReason?.toLowerCase().replace("_", " ") ?? null).toBe(
      json.active_lock_reason?.replace("-", " ") ?? null,
    );
    const labels = json.labels.map((label: Node) => ({
      id: label.node_id,
      name: label.name,
      color: label.color,
      description: label.description,
      isDefault: label.default,
    }));
    expect(node.labels.nodes).toEqual(expect.arrayContaining(labels));
    expect(node.labels.nodes).toHaveLength(labels.length);
    expect(node.assignees.nodes.map(login)).toEqual(json.assignees.map(login));
    expect(node.milestone?.number ?? null).toBe(json.milestone?.number ?? null);
    expect(node.comments.totalCount).toBe(json.comments);
  };

  let compared = 0;
  for (const repository of repositories) {
    const [owner, name] = world.fullName(repository).split("/");
    for (const issue of repository.rows.issuesByCreated.ascending() as Iterable<Issue>) {
      const query = `query ($o: String!, $n: String!, $i: Int!) { repository(owner: $o, name: $n) { row: issueOrPullRequest(number: $i) { ... on Issue { ${SHARED} state stateReason(enableDuplicate: true) databaseId } ${PULL} } } }`;
      const reply = await at.ask(query, { o: owner, n: name, i: issue.number });
      expect(reply.errors).toBeUndefined();
      const node: Node = reply.data.repository.row;
      compareShared(node, issueView(view, issue));
      for (const [place, comment] of issue.thread.slice(0, 100).entries()) {
        const json: Node = commentView(view, comment);
        expect(written(node.comments.nodes[place])).toEqual(spoken(json));
        expect(node.comments.nodes[place].updatedAt).toBe(json.updated_at);
      }
      compared += 1;
      if (isPull(issue)) {
        comparePull(node, issue);
        continue;
      }
      const json: Node = issueView(view, issue);
      expect(node).toMatchObject({
        databaseId: json.id,
        state: json.state.toUpperCase(),
        stateReason: json.state_reason?.toUpperCase() ?? null,
      });
    }
  }
  expect(compared).toBe(180);

  function comparePull(node: Node, issue: PullIssue) {
    const json: Node = fullPull(view, issue);
    compareShared(node, { ...json, comments: json.comments });
    expect(node).toMatchObject({
      fullDatabaseId: String(json.id),
      pullState: json.merged ? "MERGED" : json.state.toUpperCase(),
      isDraft: json.draft,
      merged: json.merged,
      mergedAt: json.merged_at,
      baseRefName: json.base.ref,
      baseRefOid: json.base.sha,
      headRefName: json.head.ref,
      headRefOid: json.head.sha,
      maintainerCanModify: json.maintainer_can_modify,
      additions: json.additions,
      deletions: json.deletions,
      changedFiles: json.changed_files,
      commits: { totalCount: json.commits },
    });
    expect(node.mergedBy === null ? null : login(node.mergedBy)).toBe(
      json.merged_by === null ? null : login(json.merged_by),
    );
    expect(node.headRepository?.databaseId ?? null).toBe(json.head.repo?.id ?? null);
    const reviews = issue.pull.reviews.filter((review) => review.state !== "PENDING").slice(0, 50);
    for (const [place, review] of reviews.entries()) {
      const shown: Node = reviewView(view, review);
      expect(written(node.reviews.nodes[place])).toEqual(spoken(shown));
      expect(node.reviews.nodes[place]).toMatchObject({
        state: shown.state,
        submittedAt: shown.submitted_at,
        commit: { oid: shown.commit_id },
      });
    }
    const inThreads = new Map<string, Node>(
      node.reviewThreads.nodes
        .flatMap((thread: Node) => thread.comments.nodes)
        .map((one: Node) => [one.fullDatabaseId, one]),
    );
    for (const comment of node.reviewThreads.nodes.length < 50 ? issue.pull.reviewComments : []) {
      const shown: Node = reviewCommentView(view, comment);
      const found = inThreads.get(String(comment.id));
      expect(written(found)).toEqual(spoken(shown));
      expect(found).toMatchObject({
        path: shown.path,
        position: shown.position,
        line: shown.line,
        originalLine: shown.original_line,
        diffHunk: shown.diff_hunk,
        updatedAt: shown.updated_at,
      });
      expect(found.replyTo?.fullDatabaseId ?? null).toBe(
        shown.in_reply_to_id === undefined ? null : String(shown.in_reply_to_id),
      );
      expect(found.pullRequestReview.fullDatabaseId).toBe(String(shown.pull_request_review_id));
    }
  }
});

test("labels and milestones agree too", async () => {
  const clock = new SettableClock(NOON);
  const world = new World({ seed: 9, clock });
  const [repository] = generateWorld(world, { seed: 9, repositories: 1, issues: 30 }).repositories;
  if (!repository) throw new Error("No repository was generated");
  const at = openGraphql({ world, clock });
  const view = openView({ world, apiUrl: "http://127.0.0.1:1", htmlUrl: "https://github.com" });
  const [owner, name] = world.fullName(repository).split("/");
  const query = `query ($o: String!, $n: String!) { repository(owner: $o, name: $n) {
    labels(first: 100) { nodes { id name color description isDefault } }
    milestones(first: 100) { nodes { id number title description state dueOn closedAt createdAt updatedAt url open: issues(states: OPEN) { totalCount } openPulls: pullRequests(states: OPEN) { totalCount } } } } }`;
  const shown = (await at.ask(query, { o: owner, n: name })).data.repository;
  const labels: Node[] = [...world.labels.values()].map((label) => labelView(view, label));
  expect(shown.labels.nodes).toEqual(
    labels.map((label) => ({
      id: label.node_id,
      name: label.name,
      color: label.color,
      description: label.description,
      isDefault: label.default,
    })),
  );
  const milestones: Node[] = [...world.milestones.values()].map((milestone) => milestoneView(view, milestone));
  for (const [place, json] of milestones.entries()) {
    const node = shown.milestones.nodes[place];
    expect(node).toMatchObject({
      id: json.node_id,
      number: json.number,
      title: json.title,
      description: json.description,
      state: json.state.toUpperCase(),
      dueOn: json.due_on,
      closedAt: json.closed_at,
      createdAt: json.created_at,
      updatedAt: json.updated_at,
      url: json.html_url,
    });
    expect(node.open.totalCount + node.openPulls.totalCount).toBe(json.open_issues);
  }
});
