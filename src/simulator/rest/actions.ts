/**
 * Runs of workflows, to read: each is one suite of Actions' App, and its jobs are the suite's runs. GitHub docs,
 * "Workflow runs". There is one workflow in each repository that has a run. Unconfirmed: nothing here is from a
 * recording.
 */

import { headCommit } from "../views/commit.ts";
import { repositorySummary } from "../views/repository.ts";
import { simpleUser } from "../views/user.ts";
import { type Json, repositoryPage, repositoryUrl, time, timeOrNull, type View } from "../views/view.ts";
import { commitOf } from "../world/commits.ts";
import type { Repository } from "../world/records.ts";
import type { CheckRun, CheckSuite } from "../world/records-code.ts";
import { type Answer, notFound, ok, type RepositoryCall } from "./call.ts";
import { counted } from "./pagination.ts";

const APP = "github-actions";
const WORKFLOW = { name: "CI", path: ".github/workflows/ci.yml" };

export function listRuns(call: RepositoryCall): Answer {
  const { query } = call;
  const asked = (name: string, value: string | null) => query.get(name) === null || query.get(name) === value;
  const found = suitesOf(call).filter(
    (suite) =>
      asked("branch", suite.headBranch) &&
      asked("head_sha", suite.headSha) &&
      (asked("status", suite.status) || query.get("status") === suite.conclusion),
  );
  return counted(call, "workflow_runs", found, (suite) => runView(call.view, suite));
}

export function getRun(call: RepositoryCall): Answer {
  return ok(runView(call.view, findRun(call)));
}

export function listJobs(call: RepositoryCall): Answer {
  const suite = findRun(call);
  const found = suite.runs.flatMap((run) => call.world.lag.seen(run) ?? []);
  return counted(call, "jobs", found, (run) => jobView(call.view, suite, run));
}

/** Nothing is ever stored by a run here. */
export function listArtifacts(call: RepositoryCall): Answer {
  findRun(call);
  return counted(call, "artifacts", [], () => null);
}

export function listWorkflows(call: RepositoryCall): Answer {
  const found = suitesOf(call).length > 0 ? [call.repository] : [];
  return counted(call, "workflows", found, (repository) => workflowView(call.view, repository));
}

/** By its number or its file's name. */
export function getWorkflow(call: RepositoryCall): Answer {
  const { id } = call.params;
  const isIt = id === String(call.repository.id) || (id !== undefined && WORKFLOW.path.endsWith(`/${id}`));
  if (!isIt || suitesOf(call).length === 0) throw notFound();
  return ok(workflowView(call.view, call.repository));
}

/** The newest first. */
function suitesOf({ world, repository }: RepositoryCall): CheckSuite[] {
  const all = [...world.code.of(repository).suites.values()].flat();
  const seen = all.flatMap((suite) => (suite.app.slug === APP ? (world.lag.seen(suite) ?? []) : []));
  return seen.sort((one, other) => other.id - one.id);
}

function findRun({ world, repository, params }: RepositoryCall): CheckSuite {
  const suite = world.code.checkSuites.get(Number(params.id));
  const seen = suite?.repository === repository && suite.app.slug === APP ? world.lag.seen(suite) : null;
  if (!seen) throw notFound();
  return seen;
}

function runView(view: View, suite: CheckSuite): Json {
  const { repository, headSha } = suite;
  const below = repositoryUrl(view, repository);
  const url = `${below}/actions/runs/${suite.id}`;
  const commit = commitOf(view.world, repository, headSha);
  const actor = simpleUser(view, commit?.authorId ?? repository.ownerId);
  const pull = [...repository.rows.pullsByCreated.descending()].find((row) => row.pull?.head.sha === headSha);
  return {
    id: suite.id,
    name: WORKFLOW.name,
    node_id: Buffer.from(`WorkflowRun${suite.id}`).toString("base64url"),
    head_branch: suite.headBranch,
    head_sha: headSha,
    path: WORKFLOW.path,
    display_title: commit?.message.split("\n", 1)[0] ?? "",
    run_number: suite.id,
    event: pull ? "pull_request" : "push",
    status: suite.status,
    conclusion: suite.conclusion,
    workflow_id: repository.id,
    check_suite_id: suite.id,
    check_suite_node_id: view.world.nodeId("CheckSuite", suite, repository.id, view.nextIds),
    url,
    html_url: `${repositoryPage(view, repository)}/actions/runs/${suite.id}`,
    pull_requests: [],
    created_at: time(suite.createdAt),
    updated_at: time(suite.updatedAt),
    actor,
    run_attempt: 1,
    referenced_workflows: [],
    run_started_at: time(suite.createdAt),
    triggering_actor: actor,
    jobs_url: `${url}/jobs`,
    logs_url: `${url}/logs`,
    check_suite_url: `${below}/check-suites/${suite.id}`,
    artifacts_url: `${url}/artifacts`,
    cancel_url: `${url}/cancel`,
    rerun_url: `${url}/rerun`,
    previous_attempt_url: null,
    workflow_url: `${below}/actions/workflows/${repository.id}`,
    head_commit: commit ? headCommit(view, commit) : null,
    repository: minimal(view, repository),
    head_repository: minimal(view, repository),
  };
}

/** A run shows no rights. */
function minimal(view: View, repository: Repository): Json {
  const { permissions: _, ...shown } = repositorySummary(view, repository);
  return shown;
}

function jobView(view: View, { repository, headSha, headBranch, id }: CheckSuite, run: CheckRun): Json {
  const below = repositoryUrl(view, repository);
  return {
    id: run.id,
    run_id: id,
    workflow_name: WORKFLOW.name,
    head_branch: headBranch,
    run_url: `${below}/actions/runs/${id}`,
    run_attempt: 1,
    node_id: view.world.nodeId("CheckRun", run, repository.id, view.nextIds),
    head_sha: headSha,
    url: `${below}/actions/jobs/${run.id}`,
    html_url: `${repositoryPage(view, repository)}/actions/runs/${id}/job/${run.id}`,
    status: run.status,
    conclusion: run.conclusion,
    created_at: time(run.createdAt),
    started_at: time(run.startedAt ?? run.createdAt),
    completed_at: timeOrNull(run.completedAt),
    name: run.name,
    steps: [],
    check_run_url: `${below}/check-runs/${run.id}`,
    labels: ["ubuntu-latest"],
    runner_id: 1,
    runner_name: "GitHub Actions 1",
    runner_group_id: 1,
    runner_group_name: "GitHub Actions",
  };
}

function workflowView(view: View, repository: Repository): Json {
  const page = repositoryPage(view, repository);
  return {
    id: repository.id,
    node_id: Buffer.from(`Workflow${repository.id}`).toString("base64url"),
    name: WORKFLOW.name,
    path: WORKFLOW.path,
    state: "active",
    created_at: time(repository.createdAt),
    updated_at: time(repository.createdAt),
    url: `${repositoryUrl(view, repository)}/actions/workflows/${repository.id}`,
    html_url: `${page}/blob/${repository.defaultBranch}/${WORKFLOW.path}`,
    badge_url: `${page}/workflows/${WORKFLOW.name}/badge.svg`,
  };
}
