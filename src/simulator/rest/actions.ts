/** GitHub docs, "Workflows", "Workflow runs" and "Workflow jobs". Unconfirmed: nothing here is from a recording. */
import { cancelRun, deleteWorkflowRun, jobsOf, rerun, setWorkflowState, startWorkflowRun } from "../changes/actions.ts";
import { isInTimes } from "../graphql/search.ts";
import { workflowJobView, workflowRunView, workflowView } from "../views/workflow.ts";
import { shaNamed } from "../world/commits.ts";
import type { Workflow, WorkflowRun, WorkflowState } from "../world/records-actions.ts";
import { Refusal } from "../world/refusal.ts";
import { required, text } from "./body.ts";
import { type Answer, NO_CONTENT, needPush, notFound, ok, type RepositoryCall } from "./call.ts";
import { counted } from "./pagination.ts";

/** GitHub docs: "This endpoint will return up to 1,000 results for each search when using" these parameters. */
const NARROWING = ["actor", "branch", "check_suite_id", "created", "event", "head_sha", "status"] as const;
const MOST_FOUND = 1_000;

export function listRuns(call: RepositoryCall): Answer {
  return showRuns(call, () => true);
}

export function listRunsOfWorkflow(call: RepositoryCall): Answer {
  const { id } = findWorkflow(call);
  return showRuns(call, ({ workflow }) => workflow.id === id);
}

/** The newest first. */
function showRuns(call: RepositoryCall, isOne: (run: WorkflowRun) => boolean): Answer {
  const { query, repository, world, view } = call;
  const asked = (name: (typeof NARROWING)[number], ...values: (string | null)[]) => {
    const value = query.get(name);
    return value === null || value === "" || values.includes(value);
  };
  // Logins have no case.
  const isActor = (login: string) => (query.get("actor") || login).toLowerCase() === login.toLowerCase();
  const created = query.get("created") ?? "";
  const found = world.lag
    .rows(world.code.of(repository).workflowRuns)
    .filter(
      (run) =>
        isOne(run) &&
        isActor(world.user(run.actorId).login) &&
        asked("branch", run.suite.headBranch) &&
        asked("check_suite_id", String(run.suite.id)) &&
        asked("event", run.event) &&
        asked("head_sha", run.suite.headSha) &&
        asked("status", run.status, run.conclusion) &&
        (created === "" || isInTimes(run.createdAt, created)),
    )
    .sort((one, other) => other.createdAt - one.createdAt || other.id - one.id);
  const isNarrowed = NARROWING.some((name) => query.has(name));
  const most = isNarrowed ? found.slice(0, MOST_FOUND) : found;
  const withoutPulls = query.get("exclude_pull_requests") === "true";
  return counted(call, "workflow_runs", most, (run) => workflowRunView(view, run, { withoutPulls }));
}

export function getRun(call: RepositoryCall): Answer {
  const withoutPulls = call.query.get("exclude_pull_requests") === "true";
  return ok(workflowRunView(call.view, findRun(call), { withoutPulls }));
}

/** The oldest first, as they were made. */
export function listJobs(call: RepositoryCall): Answer {
  const run = findRun(call);
  const all = call.query.get("filter") === "all" ? run.jobs : jobsOf(run);
  const found = all.flatMap((job) => call.world.lag.seen(job) ?? []);
  return counted(call, "jobs", found, (job) => workflowJobView(call.view, job));
}

export function getJob(call: RepositoryCall): Answer {
  const { world, repository, params } = call;
  const job = world.lag.find(world.code.workflowJobs, Number(params.id));
  const seen = job?.run.repository === repository ? world.lag.seen(job) : null;
  if (!seen || seen.deleted) throw notFound();
  return ok(workflowJobView(call.view, seen));
}

/** Nothing is ever stored by a run here. */
export function listArtifacts(call: RepositoryCall): Answer {
  findRun(call);
  return counted(call, "artifacts", [], () => null);
}

/** In the order in which they were made. */
export function listWorkflows(call: RepositoryCall): Answer {
  const { world, repository, view } = call;
  const found = world.lag.rows(world.code.of(repository).workflows).sort((one, other) => one.id - other.id);
  return counted(call, "workflows", found, (workflow) => workflowView(view, workflow));
}

export function getWorkflow(call: RepositoryCall): Answer {
  return ok(workflowView(call.view, findWorkflow(call)));
}

export function putWorkflowState(state: WorkflowState): (call: RepositoryCall) => Answer {
  return (call) => {
    needPush(call);
    setWorkflowState(call.world, workflowToWrite(call), state);
    return NO_CONTENT;
  };
}

export function postDispatch(call: RepositoryCall): Answer {
  const by = needPush(call);
  const { world, repository, body } = call;
  const workflow = workflowToWrite(call);
  const ref = required(text(body, "ref"), "ref");
  const headSha = shaNamed(world, repository, ref);
  if (headSha === undefined) throw new Refusal(422, `No ref found for: ${ref}`);
  if (workflow.state !== "active")
    throw new Refusal(403, "Cannot trigger a 'workflow_dispatch' on a disabled workflow");
  startWorkflowRun(world, by, { workflow, headSha, event: "workflow_dispatch", title: workflow.name });
  return NO_CONTENT;
}

export function postRerun(call: RepositoryCall): Answer {
  const by = needPush(call);
  rerun(call.world, by, runToWrite(call));
  return { status: 201, body: {} };
}

export function postCancel(call: RepositoryCall): Answer {
  const by = needPush(call);
  cancelRun(call.world, by, runToWrite(call));
  return { status: 202, body: {} };
}

export function removeRun(call: RepositoryCall): Answer {
  needPush(call);
  deleteWorkflowRun(call.world, runToWrite(call));
  return NO_CONTENT;
}

function findRun({ world, repository, params }: RepositoryCall): WorkflowRun {
  const run = world.lag.find(world.code.of(repository).workflowRuns, Number(params.id));
  const seen = run && world.lag.seen(run);
  if (!seen || seen.deleted) throw notFound();
  return seen;
}

function runToWrite({ world, repository, params }: RepositoryCall): WorkflowRun {
  const run = world.code.of(repository).workflowRuns.get(Number(params.id));
  if (!run) throw notFound();
  return run;
}

/** By its number or its file's name. */
function isNamed({ id, path }: Workflow, { params }: RepositoryCall): boolean {
  return params.workflow === String(id) || path.slice(path.lastIndexOf("/") + 1) === params.workflow;
}

function findWorkflow(call: RepositoryCall): Workflow {
  const { world, repository } = call;
  const found = world.lag.rows(world.code.of(repository).workflows).find((one) => isNamed(one, call));
  if (!found) throw notFound();
  return found;
}

function workflowToWrite(call: RepositoryCall): Workflow {
  const { workflows } = call.world.code.of(call.repository);
  const found = [...workflows.values()].find((one) => isNamed(one, call));
  if (!found) throw notFound();
  return found;
}
