/** Workflows, their runs and jobs, in REST and in webhooks. */
import { commitOf } from "../world/commits.ts";
import type { Repository } from "../world/records.ts";
import type { Workflow, WorkflowJob, WorkflowRun } from "../world/records-actions.ts";
import { pullsAt } from "./check.ts";
import { headCommit } from "./commit.ts";
import { repositorySummary } from "./repository.ts";
import { simpleUser } from "./user.ts";
import { type Json, repositoryPage, repositoryUrl, time, timeOrNull, type View } from "./view.ts";

/** workflow. Times have milliseconds, as recorded in the webhooks-examples. */
export function workflowView(view: View, workflow: Workflow): Json {
  const { id, repository, name, path } = workflow;
  const page = repositoryPage(view, repository);
  return {
    id,
    node_id: view.world.nodeId("Workflow", workflow, repository.id, view.nextIds),
    name,
    path,
    state: workflow.state,
    created_at: time(workflow.createdAt).replace("Z", ".000Z"),
    updated_at: time(workflow.updatedAt).replace("Z", ".000Z"),
    url: `${repositoryUrl(view, repository)}/actions/workflows/${id}`,
    html_url: `${page}/blob/${repository.defaultBranch}/${path}`,
    badge_url: `${page}/workflows/${encodeURIComponent(name)}/badge.svg`,
  };
}

/** workflow-run */
export function workflowRunView(view: View, run: WorkflowRun, { withoutPulls = false } = {}): Json {
  const { repository, workflow, suite } = run;
  const below = repositoryUrl(view, repository);
  const url = `${below}/actions/runs/${run.id}`;
  const commit = commitOf(view.world, repository, suite.headSha);
  return {
    id: run.id,
    name: workflow.name,
    node_id: view.world.nodeId("WorkflowRun", run, repository.id, view.nextIds),
    head_branch: suite.headBranch,
    head_sha: suite.headSha,
    path: workflow.path,
    display_title: run.title,
    run_number: run.number,
    event: run.event,
    status: run.status,
    conclusion: run.conclusion,
    workflow_id: workflow.id,
    check_suite_id: suite.id,
    check_suite_node_id: view.world.nodeId("CheckSuite", suite, repository.id, view.nextIds),
    url,
    html_url: `${repositoryPage(view, repository)}/actions/runs/${run.id}`,
    pull_requests: withoutPulls ? [] : pullsAt(view, repository, suite),
    created_at: time(run.createdAt),
    updated_at: time(run.updatedAt),
    actor: simpleUser(view, run.actorId),
    run_attempt: run.attempt,
    referenced_workflows: [],
    run_started_at: time(run.startedAt),
    triggering_actor: simpleUser(view, run.triggeringActorId),
    jobs_url: `${url}/jobs`,
    logs_url: `${url}/logs`,
    check_suite_url: `${below}/check-suites/${suite.id}`,
    artifacts_url: `${url}/artifacts`,
    cancel_url: `${url}/cancel`,
    rerun_url: `${url}/rerun`,
    previous_attempt_url: run.attempt > 1 ? `${url}/attempts/${run.attempt - 1}` : null,
    workflow_url: `${below}/actions/workflows/${workflow.id}`,
    head_commit: commit ? headCommit(view, commit) : null,
    repository: minimal(view, repository),
    head_repository: minimal(view, repository),
  };
}

/** job */
export function workflowJobView(view: View, job: WorkflowJob): Json {
  const { run } = job;
  const { repository, suite } = run;
  const below = repositoryUrl(view, repository);
  const isWaiting = job.status === "queued";
  return {
    id: job.id,
    run_id: run.id,
    workflow_name: run.workflow.name,
    head_branch: suite.headBranch,
    run_url: `${below}/actions/runs/${run.id}`,
    run_attempt: job.attempt,
    node_id: view.world.nodeId("CheckRun", job, repository.id, view.nextIds),
    head_sha: suite.headSha,
    url: `${below}/actions/jobs/${job.id}`,
    html_url: `${repositoryPage(view, repository)}/actions/runs/${run.id}/job/${job.id}`,
    status: job.status,
    conclusion: job.conclusion,
    created_at: time(job.createdAt),
    started_at: time(job.startedAt),
    completed_at: timeOrNull(job.completedAt),
    name: job.name,
    steps: job.steps.map((step, at) => ({
      name: step.name,
      status: step.status,
      conclusion: step.conclusion,
      number: at + 1,
      started_at: timeOrNull(step.startedAt),
      completed_at: timeOrNull(step.completedAt),
    })),
    check_run_url: `${below}/check-runs/${job.id}`,
    labels: ["ubuntu-latest"],
    runner_id: isWaiting ? null : 1,
    runner_name: isWaiting ? null : "GitHub Actions 1",
    runner_group_id: isWaiting ? null : 1,
    runner_group_name: isWaiting ? null : "GitHub Actions",
  };
}

/** minimal-repository up to its addresses: no times, no counts, no rights, as in the webhooks-examples. */
function minimal(view: View, repository: Repository): Json {
  const all = Object.entries(repositorySummary(view, repository));
  return Object.fromEntries(all.slice(0, all.findIndex(([key]) => key === "deployments_url") + 1));
}
