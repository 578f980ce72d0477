/** Actions: workflows run, their jobs begin and end, and runs are run again, cancelled and deleted. */
import { commitOf } from "../world/commits.ts";
import type { Repository, Seconds } from "../world/records.ts";
import type { JobStep, Workflow, WorkflowJob, WorkflowRun, WorkflowState } from "../world/records-actions.ts";
import type { CheckConclusion, CheckStatus } from "../world/records-code.ts";
import { Refusal } from "../world/refusal.ts";
import type { World } from "../world/world.ts";
import { addCheckRun, checkApp, createCheckRun, createSuite, editCheckRun } from "./checks.ts";

const APP = "github-actions";
const STEPS = ["Set up job", "Run actions/checkout@v5", "Run npm test", "Complete job"] as const;

export interface WorkflowInput {
  readonly repository: Repository;
  /** Default `CI`. */
  readonly name?: string;
  /** Default: `.github/workflows/`, the name in lower case, `.yml`. */
  readonly path?: string;
  /** When it was made. Default: now. */
  readonly at?: Seconds;
}

/** The workflow of this file; made if there is none. No webhook tells of it. */
export function workflowOf(world: World, input: WorkflowInput): Workflow {
  const { repository, name = "CI", at = world.now() } = input;
  const path = input.path ?? `.github/workflows/${name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-")}.yml`;
  const { workflows } = world.code.of(repository);
  const known = [...workflows.values()].find((one) => one.path === path);
  if (known) return known;
  const workflow: Workflow = {
    ...{ id: world.nextId("workflow"), repository, name, path },
    ...{ state: "active" as const, createdAt: at, updatedAt: at, deleted: false },
  };
  workflows.set(workflow.id, workflow);
  world.code.workflows.set(workflow.id, workflow);
  world.lag.created(workflow);
  return workflow;
}

/** No webhook tells of it. */
export function setWorkflowState(world: World, workflow: Workflow, state: WorkflowState): void {
  if (workflow.state === state) return;
  world.changing(workflow);
  workflow.state = state;
  workflow.updatedAt = world.now();
}

/** The file is gone. No webhook tells of it, and its runs stay. */
export function deleteWorkflow(world: World, workflow: Workflow): void {
  world.changing(workflow);
  workflow.deleted = true;
  world.lag.delete(world.code.of(workflow.repository).workflows, workflow);
  world.lag.delete(world.code.workflows, workflow);
}

export interface WorkflowRunInput {
  readonly workflow: Workflow;
  readonly headSha: string;
  /** What starts it. Default `push`. */
  readonly event?: string;
  /** The names of its jobs. Default: one, `build`. */
  readonly jobs?: readonly string[];
  /** Default: the first line of the commit's message. */
  readonly title?: string;
  /** When it was started. Default: now. */
  readonly at?: Seconds;
}

/** Tells `requested`, and of each job `queued`. */
export function startWorkflowRun(world: World, by: number, input: WorkflowRunInput): WorkflowRun {
  const run = addWorkflowRun(world, by, input);
  tellRun(world, by, run, "requested");
  for (const name of input.jobs ?? ["build"]) queueJob(world, by, run, name);
  return run;
}

/** Puts a run without jobs in its place and tells nobody: for worlds that are generated. */
export function addWorkflowRun(world: World, by: number, input: WorkflowRunInput): WorkflowRun {
  const { workflow, headSha, event = "push", at = world.now() } = input;
  const { repository } = workflow;
  const { workflowRuns } = world.code.of(repository);
  const run: WorkflowRun = {
    ...{ id: world.nextId("workflowRun"), repository, workflow },
    suite: createSuite(world, repository, checkApp(world, APP), headSha, at),
    number: [...workflowRuns.values()].filter((one) => one.workflow === workflow).length + 1,
    event,
    title: input.title ?? (commitOf(world, repository, headSha)?.message ?? "").split("\n", 1)[0] ?? "",
    ...{ actorId: by, triggeringActorId: by, attempt: 1 },
    ...{ status: "queued" as const, conclusion: null },
    ...{ createdAt: at, startedAt: at, updatedAt: at },
    ...{ jobs: [], deleted: false },
  };
  workflowRuns.set(run.id, run);
  world.code.workflowRuns.set(run.id, run);
  world.lag.created(run);
  return run;
}

function queueJob(world: World, by: number, run: WorkflowRun, name: string): void {
  const { repository, suite } = run;
  const checkRun = createCheckRun(world, by, { repository, app: suite.app, headSha: suite.headSha, suite, name });
  tellJob(world, by, putJob(world, run, checkRun, world.now()), "queued");
}

/** A job that has ended, of which nobody is told: for worlds that are generated. */
export function addWorkflowJob(
  world: World,
  run: WorkflowRun,
  { name, conclusion, at }: { readonly name: string; readonly conclusion: CheckConclusion; readonly at: Seconds },
): void {
  const { repository, suite } = run;
  const input = { repository, app: suite.app, headSha: suite.headSha, suite, name, conclusion, at };
  const job = putJob(world, run, addCheckRun(world, { ...input, startedAt: run.startedAt, completedAt: at }), at);
  job.status = "completed";
  job.conclusion = conclusion;
  job.completedAt = at;
  job.steps = stepsOf(job);
  sum(world, run, at);
}

function putJob(world: World, run: WorkflowRun, checkRun: WorkflowJob["checkRun"], at: Seconds): WorkflowJob {
  const job: WorkflowJob = {
    ...{ id: checkRun.id, run, checkRun, name: checkRun.name, attempt: run.attempt },
    ...{ status: "queued" as CheckStatus, conclusion: null, steps: [] },
    ...{ createdAt: at, startedAt: at, completedAt: null, deleted: false },
  };
  world.changing(run);
  run.jobs = [...run.jobs, job];
  world.code.workflowJobs.set(job.id, job);
  world.lag.created(job);
  return job;
}

/** Tells `in_progress` of the job, and of its run if it is the first. */
export function beginJob(world: World, by: number, job: WorkflowJob): void {
  if (job.status !== "queued") return;
  editCheckRun(world, by, job.checkRun, { status: "in_progress", startedAt: world.now() });
  world.changing(job);
  job.status = "in_progress";
  job.startedAt = world.now();
  job.steps = stepsOf(job);
  tellJob(world, by, job, "in_progress");
  const was = job.run.status;
  sum(world, job.run, world.now());
  if (was !== "in_progress") tellRun(world, by, job.run, "in_progress");
}

/** Tells `completed` of the job, and of its run if it was the last. */
export function endJob(world: World, by: number, job: WorkflowJob, conclusion: CheckConclusion): void {
  if (job.status === "completed") return;
  editCheckRun(world, by, job.checkRun, { conclusion });
  world.changing(job);
  job.status = "completed";
  job.conclusion = conclusion;
  job.completedAt = world.now();
  job.steps = stepsOf(job);
  tellJob(world, by, job, "completed");
  const was = job.run.status;
  sum(world, job.run, world.now());
  if (job.run.status === "completed" && was !== "completed") tellRun(world, by, job.run, "completed");
}

/** A step of a running job ends. No webhook tells of it. */
export function endStep(world: World, job: WorkflowJob): void {
  const at = job.steps.findIndex(({ status }) => status !== "completed");
  if (job.status !== "in_progress" || at < 0 || at === job.steps.length - 1) return;
  world.changing(job);
  job.steps = job.steps.map((step, place) =>
    place === at
      ? { ...step, status: "completed", conclusion: "success", completedAt: world.now() }
      : place === at + 1
        ? { ...step, status: "in_progress", startedAt: world.now() }
        : step,
  );
}

/** Begins another attempt, with all jobs anew. Tells `requested` and `queued`. */
export function rerun(world: World, by: number, run: WorkflowRun): void {
  if (run.status !== "completed") throw new Refusal(403, "The workflow run containing this job is already running");
  const names = jobsOf(run).map(({ name }) => name);
  world.changing(run);
  run.attempt += 1;
  run.triggeringActorId = by;
  run.status = "queued";
  run.conclusion = null;
  run.startedAt = world.now();
  run.updatedAt = world.now();
  tellRun(world, by, run, "requested");
  for (const name of names) queueJob(world, by, run, name);
}

export function cancelRun(world: World, by: number, run: WorkflowRun): void {
  if (run.status === "completed") throw new Refusal(409, "Cannot cancel a workflow run that is completed.");
  for (const job of jobsOf(run)) endJob(world, by, job, "cancelled");
}

/** Its jobs go with it, and nobody is told. */
export function deleteWorkflowRun(world: World, run: WorkflowRun): void {
  if (run.status !== "completed") throw new Refusal(403, "Cannot delete a workflow run that is not completed.");
  world.changing(run);
  run.deleted = true;
  world.lag.delete(world.code.of(run.repository).workflowRuns, run);
  world.lag.delete(world.code.workflowRuns, run);
  for (const job of run.jobs) {
    world.changing(job);
    job.deleted = true;
    world.lag.delete(world.code.workflowJobs, job);
  }
}

/** The jobs of its latest attempt. */
export function jobsOf({ jobs, attempt }: Pick<WorkflowRun, "jobs" | "attempt">): readonly WorkflowJob[] {
  return jobs.filter((job) => job.attempt === attempt);
}

const BY_WEIGHT: readonly CheckConclusion[] = ["failure", "timed_out", "cancelled", "success", "neutral", "skipped"];

function sum(world: World, run: WorkflowRun, at: Seconds): void {
  const jobs = jobsOf(run);
  world.changing(run);
  run.updatedAt = at;
  const isDone = jobs.length > 0 && jobs.every(({ status }) => status === "completed");
  run.status = isDone ? "completed" : "in_progress";
  run.conclusion = isDone ? (BY_WEIGHT.find((one) => jobs.some((job) => job.conclusion === one)) ?? "success") : null;
}

/** The steps of a job as its status lets expect them. */
function stepsOf({ status, conclusion, startedAt, completedAt }: WorkflowJob): JobStep[] {
  return STEPS.map((name, at): JobStep => {
    if (status === "completed") {
      const isFailed = conclusion === "failure" && at === STEPS.length - 2;
      const outcome = conclusion === "cancelled" || conclusion === "skipped" ? conclusion : "success";
      return { name, status, conclusion: isFailed ? "failure" : outcome, startedAt, completedAt };
    }
    const isFirst = at === 0;
    return {
      ...{ name, status: isFirst ? "in_progress" : "queued", conclusion: null },
      ...{ startedAt: isFirst ? startedAt : null, completedAt: null },
    };
  });
}

function tellRun(world: World, by: number, workflowRun: WorkflowRun, action: string): void {
  const { repository } = workflowRun;
  world.emit({ event: "workflow_run", action, repository, senderId: by, workflowRun });
}

function tellJob(world: World, by: number, workflowJob: WorkflowJob, action: string): void {
  const { repository } = workflowJob.run;
  world.emit({ event: "workflow_job", action, repository, senderId: by, workflowJob });
}
