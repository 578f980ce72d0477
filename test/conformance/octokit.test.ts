/** octokit, unmodified but for its base address, performs every operation that the mirror offers. */
import { Octokit, RequestError } from "octokit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { pushBranch } from "../../src/simulator/changes/pulls.ts";
import { type ApiWorld, openApiWorld } from "../api/api-world.ts";

let world: ApiWorld;
let owner: string;
let repo: string;
beforeAll(async () => {
  world = await openApiWorld({ issues: 150, repositories: 2, env: { RATE_LIMIT_ANONYMOUS: "500" } });
  [owner, repo] = (world.repositories[0]?.fullName ?? "/").split("/") as [string, string];
});
afterAll(() => world?.[Symbol.asyncDispose]());

describe.each([
  ["at the root", ""],
  ["at the enterprise address", "/api/v3"],
])("%s", (_where, prefix) => {
  let octokit: Octokit;
  let anonymous: Octokit;
  beforeAll(() => {
    const options = { baseUrl: world.url + prefix, throttle: { enabled: false }, retry: { enabled: false } };
    octokit = new Octokit({ ...options, auth: world.token });
    anonymous = new Octokit(options);
  });

  test("get the authenticated user", async () => {
    const { data } = await octokit.rest.users.getAuthenticated();
    expect(data.login).toBe("mirror-owner");
    expect(data.id).toBe(world.userId);
  });

  test("list repositories of the authenticated user", async () => {
    const { data } = await octokit.rest.repos.listForAuthenticatedUser({ sort: "updated", per_page: 10 });
    expect(data.map(({ id }) => id).sort()).toEqual(world.repositories.map(({ id }) => id).sort());
    const dates = data.map(({ updated_at }) => updated_at);
    expect(dates).toEqual(dates.toSorted().reverse());
  });

  test("get a repository, with and without a token", async () => {
    const { data } = await octokit.rest.repos.get({ owner, repo });
    expect(data).toMatchObject({ full_name: `${owner}/${repo}`, url: `${world.url}${prefix}/repos/${owner}/${repo}` });
    expect((await anonymous.rest.repos.get({ owner, repo })).data.id).toBe(data.id);
  });

  test("list issues of a repository, page by page", async () => {
    const issues = await octokit.paginate(octokit.rest.issues.listForRepo, { owner, repo, state: "all", per_page: 30 });
    const upstream = world.upstream.world.repositories.get(world.repositories[0]?.id ?? 0);
    expect(issues.length).toBe(upstream?.rows.issuesByCreated.size);
    expect(new Set(issues.map(({ number }) => number)).size).toBe(issues.length);
  });

  test("create an issue", async () => {
    const { status, data, headers } = await octokit.rest.issues.create({
      owner,
      repo,
      title: "By octokit",
      body: "text",
      labels: ["bug"],
    });
    expect(status).toBe(201);
    expect(headers.location).toBe(data.url);
    expect((await octokit.rest.issues.get({ owner, repo, issue_number: data.number })).data).toMatchObject({
      title: "By octokit",
      labels: [{ name: "bug" }],
    });
  });

  test("list pull requests of a repository, page by page", async () => {
    const pulls = await octokit.paginate(octokit.rest.pulls.list, { owner, repo, state: "all", per_page: 20 });
    const upstream = world.upstream.world.repositories.get(world.repositories[0]?.id ?? 0);
    expect(pulls.length).toBe(upstream?.rows.pullsByCreated.size);
  });

  test("create a pull request", async () => {
    const repository = world.upstream.world.repositories.get(world.repositories[0]?.id ?? 0);
    if (!repository) throw new Error("The repository is not in the world");
    const head = `octokit${prefix.replaceAll("/", "-")}`;
    pushBranch(world.upstream.world, world.userId, repository, head);
    const { status, data } = await octokit.rest.pulls.create({
      owner,
      repo,
      title: "By octokit",
      head,
      base: repository.defaultBranch,
    });
    expect(status).toBe(201);
    expect((await octokit.rest.pulls.get({ owner, repo, pull_number: data.number })).data.head.ref).toBe(head);
  });

  test("read the remaining quota: by a HEAD of the user and by the rate limit itself", async () => {
    const { headers } = await octokit.request("HEAD /user");
    expect(Number(headers["x-ratelimit-limit"])).toBe(5_000);
    const { data } = await octokit.rest.rateLimit.get();
    expect(data.rate).toEqual(data.resources.core);
    expect(data.resources.core.remaining).toBe(Number(headers["x-ratelimit-remaining"]));
    expect(data.resources.graphql?.limit).toBe(5_000);
    const nobody = await anonymous.rest.rateLimit.get();
    expect(nobody.data.rate.limit).toBe(500);
  });

  test("ask conditionally", async () => {
    const { headers } = await octokit.rest.issues.listForRepo({ owner, repo });
    const again = octokit.rest.issues.listForRepo({ owner, repo, headers: { "if-none-match": headers.etag } });
    await expect(again).rejects.toMatchObject({ status: 304 });
    const one = await octokit.rest.issues.get({ owner, repo, issue_number: 1 });
    const unmodified = octokit.rest.issues.get({
      owner,
      repo,
      issue_number: 1,
      headers: { "if-modified-since": one.headers["last-modified"] },
    });
    await expect(unmodified).rejects.toMatchObject({ status: 304 });
  });

  test("labels, milestones, comments and reviews", async () => {
    const at = { owner, repo, per_page: 100 };
    const [labels, milestones, comments, reviewComments] = await Promise.all([
      octokit.paginate(octokit.rest.issues.listLabelsForRepo, at),
      octokit.paginate(octokit.rest.issues.listMilestones, { ...at, state: "all" }),
      octokit.paginate(octokit.rest.issues.listCommentsForRepo, at),
      octokit.paginate(octokit.rest.pulls.listReviewCommentsForRepo, at),
    ]);
    for (const list of [labels, milestones, comments, reviewComments]) expect(list.length).toBeGreaterThan(0);
    expect((await octokit.rest.issues.getLabel({ owner, repo, name: labels[0]?.name ?? "" })).data).toEqual(labels[0]);
    expect(
      (await octokit.rest.issues.getMilestone({ owner, repo, milestone_number: milestones[0]?.number ?? 0 })).data,
    ).toEqual(milestones[0]);
    expect((await octokit.rest.issues.getComment({ owner, repo, comment_id: comments[0]?.id ?? 0 })).data).toEqual(
      comments[0],
    );
    expect(
      (await octokit.rest.pulls.getReviewComment({ owner, repo, comment_id: reviewComments[0]?.id ?? 0 })).data,
    ).toEqual(reviewComments[0]);
  });

  test("errors are octokit's own", async () => {
    const missing = await octokit.rest.issues
      .get({ owner, repo, issue_number: 99_999 })
      .catch((error: unknown) => error);
    expect(missing).toBeInstanceOf(RequestError);
    expect(missing).toMatchObject({
      status: 404,
      message: expect.stringContaining("Not Found - https://docs.github.com/rest/issues/issues#get-an-issue"),
    });
    await expect(anonymous.rest.users.getAuthenticated()).rejects.toMatchObject({ status: 401 });
  });

  test("GraphQL: viewer and their repositories", async () => {
    const { viewer } = await octokit.graphql<{
      viewer: {
        login: string;
        repositories: { nodes: { name: string; description: string | null; stargazerCount: number }[] };
      };
    }>(
      "query { viewer { login repositories(first: 10, orderBy: {field: UPDATED_AT, direction: DESC}) { nodes { name description stargazerCount } } } }",
    );
    expect(viewer.login).toBe("mirror-owner");
    expect(viewer.repositories.nodes).toHaveLength(world.repositories.length);
  });

  test("GraphQL: the rate limit", async () => {
    const { rateLimit } = await octokit.graphql<{ rateLimit: { remaining: number; resetAt: string } }>(
      "query { rateLimit { remaining resetAt } }",
    );
    expect(rateLimit.remaining).toBeLessThan(5_000);
    expect(rateLimit.resetAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  });

  test("GraphQL: create an issue", async () => {
    const { data } = await octokit.rest.repos.get({ owner, repo });
    const { createIssue } = await octokit.graphql<{ createIssue: { issue: { number: number; url: string } } }>(
      "mutation($input: CreateIssueInput!) { createIssue(input: $input) { issue { number url } } }",
      { input: { repositoryId: data.node_id, title: "By octokit's GraphQL", body: "text" } },
    );
    expect((await octokit.rest.issues.get({ owner, repo, issue_number: createIssue.issue.number })).data.html_url).toBe(
      createIssue.issue.url,
    );
  });

  test("GraphQL: page by page", async () => {
    const query = `query($cursor: String) { repository(owner: "${owner}", name: "${repo}") { issues(first: 40, after: $cursor) { totalCount nodes { number } pageInfo { hasNextPage endCursor } } } }`;
    const { repository } = await octokit.graphql.paginate<{
      repository: { issues: { totalCount: number; nodes: { number: number }[] } };
    }>(query);
    expect(repository.issues.nodes).toHaveLength(repository.issues.totalCount);
  });
});
