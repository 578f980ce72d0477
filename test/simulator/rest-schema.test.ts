import { expect, test } from "vitest";
import { addedHook } from "./hooked.ts";
import { answerSchema, problemsOf, readDescription, unknownFields, webhookSchema } from "./openapi.ts";
import { deliveryIds, openReceiver, openSimulated, type Simulated } from "./simulated.ts";

const description = readDescription();

async function mutate(
  it: Simulated,
  op: Record<string, unknown>,
): Promise<{ id: number; head_sha: string; check_suite: { id: number } }> {
  const reply = await it.control("POST", "/-/mutate", { repository: "octo/demo", by: "octo", ...op });
  expect(reply.status, `${JSON.stringify(op)}: ${reply.text}`).toBe(200);
  return reply.body;
}

/** Makes one resource of each kind. */
async function furnish(it: Simulated) {
  it.simulator.world.addUser({ login: "bob" });
  // These fields are filled, because for blank ones the service sends null where the description says string.
  const filled = { name: "Acme", company: "Acme", location: "Here", email: "acme@example.invalid" };
  it.simulator.world.addUser({ login: "acme", type: "Organization", ...filled });
  await mutate(it, { op: "createMilestone", title: "v1", dueOn: 1_800_000_000 });
  await mutate(it, { op: "createIssue", title: "t", body: "b", labels: ["bug"], assignees: ["bob"], milestone: 1 });
  await mutate(it, { op: "createPull", head: "topic", title: "p", body: "b" });
  const comment = await mutate(it, { op: "createComment", number: 1, body: "c" });
  const review = await mutate(it, { op: "createReview", number: 2, by: "bob", state: "APPROVED", body: "r" });
  const remark = await mutate(it, { op: "createReviewComment", number: 2, body: "rc" });
  const run = await mutate(it, { op: "createCheckRun", number: 2, name: "build", conclusion: "success" });
  await mutate(it, { op: "createStatus", number: 2, state: "success" });
  await mutate(it, { op: "createTags", names: "v1", message: "First" });
  const release = await mutate(it, { op: "createRelease", tagName: "v1", name: "One", body: "b" });
  await mutate(it, { op: "addReleaseAsset", release: release.id, name: "a.tgz" });
  const { id: deployment } = await mutate(it, { op: "createDeployment", environment: "qa", payload: { a: 1 } });
  const { id: status } = await mutate(it, { op: "createDeploymentStatus", deployment, state: "success" });
  const { id: workflowRun } = await mutate(it, { op: "startWorkflowRun", jobs: "build,test" });
  const ids = { workflowRun, comment: comment.id, review: review.id, remark: remark.id, release: release.id };
  return { ...ids, run, deployment, status };
}

test("every answer has the shape that the service's description gives it", async () => {
  await using it = await openSimulated();
  const { comment, review, remark, run, release, deployment, status, workflowRun } = await furnish(it);
  const hook = (await addedHook(it, "http://127.0.0.1:9/")).id;
  await it.ask("POST", `/repos/octo/demo/hooks/${hook}/pings`);
  await it.simulator.quiet();
  const [delivery] = deliveryIds(await it.get(`/repos/octo/demo/hooks/${hook}/deliveries`));
  const wrong: string[] = [];
  const check = async (path: string, template: string) => {
    const reply = await it.get(path);
    expect(reply.status, path).toBe(200);
    const schema = answerSchema(description, "get", template, "200");
    wrong.push(...problemsOf(description, schema, reply.body).map((problem) => `${template} ${problem}`));
    wrong.push(...unknownFields(description, schema, reply.body).map((field) => `${template} ${field}: unknown`));
  };
  const repo = "/repos/{owner}/{repo}";
  const demo = "/repos/octo/demo";
  await check("/user", "/user");
  await check("/user/repos", "/user/repos");
  await check("/users/bob", "/users/{username}");
  await check("/users/octo/repos", "/users/{username}/repos");
  await check("/orgs/acme", "/orgs/{org}");
  await check("/rate_limit", "/rate_limit");
  await check("/versions", "/versions");
  await check(demo, repo);
  for (const path of ["issues", "pulls", "issues/comments", "pulls/comments", "labels", "milestones", "hooks"]) {
    await check(`${demo}/${path}`, `${repo}/${path}`);
  }
  await check(`${demo}/issues/1`, `${repo}/issues/{issue_number}`);
  await check(`${demo}/issues/2`, `${repo}/issues/{issue_number}`);
  await check(`${demo}/issues/1/comments`, `${repo}/issues/{issue_number}/comments`);
  await check(`${demo}/issues/1/labels`, `${repo}/issues/{issue_number}/labels`);
  await check(`${demo}/issues/comments/${comment}`, `${repo}/issues/comments/{comment_id}`);
  await check(`${demo}/labels/bug`, `${repo}/labels/{name}`);
  await check(`${demo}/milestones/1`, `${repo}/milestones/{milestone_number}`);
  await check(`${demo}/pulls/2`, `${repo}/pulls/{pull_number}`);
  await check(`${demo}/pulls/2/reviews`, `${repo}/pulls/{pull_number}/reviews`);
  await check(`${demo}/pulls/2/reviews/${review}`, `${repo}/pulls/{pull_number}/reviews/{review_id}`);
  await check(`${demo}/pulls/2/comments`, `${repo}/pulls/{pull_number}/comments`);
  await check(`${demo}/pulls/2/requested_reviewers`, `${repo}/pulls/{pull_number}/requested_reviewers`);
  await check(`${demo}/pulls/comments/${remark}`, `${repo}/pulls/comments/{comment_id}`);
  await check(`${demo}/hooks/${hook}`, `${repo}/hooks/{hook_id}`);
  await check(`${demo}/hooks/${hook}/config`, `${repo}/hooks/{hook_id}/config`);
  await check(`${demo}/hooks/${hook}/deliveries`, `${repo}/hooks/{hook_id}/deliveries`);
  await check(`${demo}/hooks/${hook}/deliveries/${delivery}`, `${repo}/hooks/{hook_id}/deliveries/{delivery_id}`);
  const { head_sha: sha, check_suite: suite } = run;
  await check(`${demo}/check-runs/${run.id}`, `${repo}/check-runs/{check_run_id}`);
  await check(`${demo}/check-suites/${suite.id}`, `${repo}/check-suites/{check_suite_id}`);
  await check(`${demo}/check-suites/${suite.id}/check-runs`, `${repo}/check-suites/{check_suite_id}/check-runs`);
  for (const below of ["check-runs", "check-suites", "status", "statuses", "pulls", "branches-where-head"]) {
    const name = below === "pulls" || below === "branches-where-head" ? "{commit_sha}" : "{ref}";
    await check(`${demo}/commits/${sha}/${below}`, `${repo}/commits/${name}/${below}`);
  }
  await check(`${demo}/actions/workflows`, `${repo}/actions/workflows`);
  const { workflows } = (await it.get(`${demo}/actions/workflows`)).body;
  await check(`${demo}/actions/workflows/${workflows[0].id}`, `${repo}/actions/workflows/{workflow_id}`);
  await check(`${demo}/actions/workflows/ci.yml/runs`, `${repo}/actions/workflows/{workflow_id}/runs`);
  await check(`${demo}/actions/runs`, `${repo}/actions/runs`);
  await check(`${demo}/actions/runs/${workflowRun}`, `${repo}/actions/runs/{run_id}`);
  for (const below of ["jobs", "artifacts"])
    await check(`${demo}/actions/runs/${workflowRun}/${below}`, `${repo}/actions/runs/{run_id}/${below}`);
  const [{ id: job }] = (await it.get(`${demo}/actions/runs/${workflowRun}/jobs`)).body.jobs;
  await check(`${demo}/actions/jobs/${job}`, `${repo}/actions/jobs/{job_id}`);
  await check(`${demo}/branches`, `${repo}/branches`);
  await check(`${demo}/branches/topic`, `${repo}/branches/{branch}`);
  await check(`${demo}/git/ref/heads/topic`, `${repo}/git/ref/{ref}`);
  await check(`${demo}/git/matching-refs/heads`, `${repo}/git/matching-refs/{ref}`);
  await check(`${demo}/tags`, `${repo}/tags`);
  await check(
    `${demo}/git/tags/${(await it.get(`${demo}/git/ref/tags/v1`)).body.object.sha}`,
    `${repo}/git/tags/{tag_sha}`,
  );
  await check(`${demo}/releases`, `${repo}/releases`);
  await check(`${demo}/releases/latest`, `${repo}/releases/latest`);
  await check(`${demo}/releases/tags/v1`, `${repo}/releases/tags/{tag}`);
  await check(`${demo}/releases/${release}`, `${repo}/releases/{release_id}`);
  await check(`${demo}/releases/${release}/assets`, `${repo}/releases/{release_id}/assets`);
  const deployed = `${demo}/deployments/${deployment}`;
  await check(`${demo}/deployments`, `${repo}/deployments`);
  await check(deployed, `${repo}/deployments/{deployment_id}`);
  await check(`${deployed}/statuses`, `${repo}/deployments/{deployment_id}/statuses`);
  await check(`${deployed}/statuses/${status}`, `${repo}/deployments/{deployment_id}/statuses/{status_id}`);
  await check(`${demo}/commits`, `${repo}/commits`);
  await check(`${demo}/commits/topic`, `${repo}/commits/{ref}`);
  await check(`${demo}/git/commits/${sha}`, `${repo}/git/commits/{commit_sha}`);
  await check(`${demo}/compare/main...topic`, `${repo}/compare/{basehead}`);
  await check(`${demo}/pulls/2/commits`, `${repo}/pulls/{pull_number}/commits`);
  await check(`${demo}/pulls/2/files`, `${repo}/pulls/{pull_number}/files`);
  expect(wrong).toEqual([]);
});

test("every webhook has the shape that the service's description gives it", async () => {
  await using it = await openSimulated();
  await using receiver = await openReceiver();
  await addedHook(it, receiver.url);
  const { comment, review, remark, release, deployment, workflowRun } = await furnish(it);
  const [{ id: job }] = (await it.get(`/repos/octo/demo/actions/runs/${workflowRun}/jobs`)).body.jobs;
  for (const op of [
    { op: "resolveThread", comment: remark },
    { op: "unresolveThread", comment: remark },
    { op: "editRelease", release, body: "b2", prerelease: true },
    { op: "editRelease", release, draft: true },
    { op: "deleteRelease", release },
    { op: "createDeploymentStatus", deployment, state: "inactive" },
    { op: "deleteDeployment", deployment },
    { op: "beginJob", job },
    { op: "endJob", job, conclusion: "failure" },
    { op: "cancelWorkflowRun", run: workflowRun },
    { op: "rerunWorkflow", run: workflowRun },
    { op: "deleteTag", name: "v1" },
    { op: "editIssue", number: 1, title: "t2", labels: [], assignees: [], milestone: null },
    { op: "editIssue", number: 1, state: "closed" },
    { op: "editIssue", number: 1, state: "open" },
    { op: "lockIssue", number: 1, reason: "spam" },
    { op: "unlockIssue", number: 1 },
    { op: "pinIssue", number: 1 },
    { op: "unpinIssue", number: 1 },
    { op: "editIssue", number: 2, labels: ["bug"], assignees: ["bob"], milestone: 1 },
    { op: "pushToPull", number: 2 },
    { op: "convertToDraft", number: 2 },
    { op: "readyForReview", number: 2 },
    { op: "requestReviewers", number: 2, logins: ["bob"] },
    { op: "removeRequestedReviewers", number: 2, logins: ["bob"] },
    { op: "editPull", number: 2, title: "p2" },
    { op: "editReview", review, body: "r2" },
    { op: "dismissReview", review },
    { op: "editReviewComment", comment: remark, body: "rc2" },
    { op: "deleteReviewComment", comment: remark },
    { op: "editComment", comment, body: "c2" },
    { op: "deleteComment", comment },
    { op: "mergePull", number: 2 },
    { op: "deleteBranch", ref: "topic" },
    { op: "editLabel", label: "bug", name: "defect" },
    { op: "deleteLabel", label: "defect" },
    { op: "editMilestone", milestone: 1, title: "v2" },
    { op: "editMilestone", milestone: 1, state: "closed" },
    { op: "editMilestone", milestone: 1, state: "open" },
    { op: "deleteMilestone", milestone: 1 },
    { op: "deleteIssue", number: 1 },
    { op: "editRepository", description: "d" },
    { op: "privatizeRepository" },
    { op: "publicizeRepository" },
    { op: "archiveRepository" },
    { op: "unarchiveRepository" },
    { op: "renameRepository", name: "renamed" },
    { op: "transferRepository", repository: "octo/renamed", to: "acme" },
  ]) {
    await mutate(it, op);
  }
  await it.simulator.quiet();
  const wrong = new Set<string>();
  const names = new Set<string>();
  for (const { event, payload } of receiver.heard) {
    const name = [event, payload.action].filter(Boolean).join("-").replaceAll("_", "-");
    names.add(name);
    const schema = webhookSchema(description, name);
    for (const problem of problemsOf(description, schema, payload)) wrong.add(`${name} ${problem}`);
  }
  expect(names.size).toBe(77);
  expect([...wrong].toSorted()).toEqual([]);
});
