import {
  beginJob,
  cancelRun,
  deleteWorkflowRun,
  endJob,
  endStep,
  jobsOf,
  rerun,
  setWorkflowState,
  startWorkflowRun,
  workflowOf,
} from "../changes/actions.ts";
import { checkApp, createCheckRun, createStatus, createSuite, editCheckRun } from "../changes/checks.ts";
import {
  createDeployment,
  createDeploymentStatus,
  type DeploymentInput,
  deleteDeployment,
} from "../changes/deployments.ts";
import { createRelease } from "../changes/releases.ts";
import type { Random } from "../world/random.ts";
import type { PullIssue, Repository } from "../world/records.ts";
import type { WorkflowRun } from "../world/records-actions.ts";
import {
  type CheckConclusion,
  type CheckRun,
  DEPLOYMENT_STATES,
  type Deployment,
  type DeploymentStatusState,
} from "../world/records-code.ts";
import type { World } from "../world/world.ts";
import type { Act } from "./act.ts";
import type { Stage } from "./stage.ts";

const JOBS = ["build", "lint", "test (node 24)", "test (node 26)", "docs", "e2e / chromium"] as const;
const APPS = ["github-actions", "github-actions", "octo-ci"] as const;
const ENVIRONMENTS = ["production", "staging", "staging", "review/7"] as const;
const WORKFLOWS = ["CI", "CI", "Release", "Nightly"] as const;
const CONTEXTS = ["ci/deploy", "coverage/project", "license/cla"] as const;

/** Mostly well. */
export function conclusionOf(random: Random): CheckConclusion {
  const roll = random.next();
  if (roll < 0.78) return "success";
  return roll < 0.9 ? "failure" : random.pick(["cancelled", "skipped", "neutral", "timed_out"] as const);
}

/** One of the default branch, into one of a few environments. */
export function deploymentOf(random: Random, repository: Repository): DeploymentInput {
  const environment = random.pick(ENVIRONMENTS);
  const more = random.chance(0.3) ? { payload: { build: random.int(1, 9_999) }, description: "By a machine" } : {};
  return {
    ...{ repository, ref: repository.defaultBranch, environment, ...more },
    transientEnvironment: environment.startsWith("review"),
  };
}

/** Mostly well. */
export function outcomeOf(random: Random): DeploymentStatusState {
  return random.chance(0.5) ? "success" : random.pick(DEPLOYMENT_STATES);
}

/** What machines do for pull requests, what is released of them, where it is deployed, and what Actions runs. */
export const CODE_ACTS = {
  startBuild: (stage, repository, by) => {
    const { world, random } = stage;
    const pull = stage.pull(repository, isOpen);
    if (!pull) return undefined;
    const app = checkApp(world, random.pick(APPS));
    const headSha = pull.pull.head.sha;
    // A rerun has a suite of its own beside the one that it supersedes.
    const suite = createSuite(world, repository, app, headSha);
    for (const name of JOBS.slice(0, random.int(1, JOBS.length)))
      createCheckRun(world, by, { repository, app, headSha, name, suite });
    return pull;
  },

  advanceBuild: (stage, repository, by) => {
    const { world, random } = stage;
    const pull = stage.pull(repository, (one) => isOpen(one) && unfinished(world, one).length > 0);
    if (!pull) return undefined;
    const run = random.pick(unfinished(world, pull));
    if (run.status === "queued" && random.chance(0.5)) editCheckRun(world, by, run, { status: "in_progress" });
    else editCheckRun(world, by, run, { conclusion: conclusionOf(random) });
    return pull;
  },

  reportStatus: (stage, repository, by) => {
    const { world, random } = stage;
    const pull = stage.pull(repository, isOpen);
    if (!pull) return undefined;
    const state = random.pick(["pending", "success", "success", "failure", "error"] as const);
    createStatus(world, by, { repository, sha: pull.pull.head.sha, state, context: random.pick(CONTEXTS) });
    return pull;
  },

  release: (stage, repository, by) => {
    const { world, random } = stage;
    if (!repository.branches.has(repository.defaultBranch)) return undefined;
    const tagName = `v${world.code.of(repository).releases.size}.${random.int(0, 99_999)}`;
    const body = stage.body(repository);
    const more = { name: random.chance(0.3) ? null : `Release ${tagName}`, draft: random.chance(0.2) };
    createRelease(world, by, { repository, tagName, body, prerelease: random.chance(0.2), ...more });
    return repository;
  },

  createDeployment: ({ world, random }, repository, by) => {
    if (!repository.branches.has(repository.defaultBranch)) return undefined;
    createDeployment(world, by, deploymentOf(random, repository));
    return repository;
  },

  addDeploymentStatus: (stage, repository, by) => {
    const deployment = deploymentIn(stage, repository);
    if (!deployment) return undefined;
    createDeploymentStatus(stage.world, by, deployment, { state: outcomeOf(stage.random) });
    return repository;
  },

  deleteDeployment: (stage, repository) => {
    const deployment = deploymentIn(stage, repository);
    if (!deployment) return undefined;
    deleteDeployment(stage.world, deployment);
    return repository;
  },

  startWorkflow: (stage, repository, by) => {
    const { world, random } = stage;
    const pull = random.chance(0.6) ? stage.pull(repository, isOpen) : undefined;
    const headSha = pull?.pull.head.sha ?? repository.branches.get(repository.defaultBranch);
    if (headSha === undefined) return undefined;
    const workflow = workflowOf(world, { repository, name: random.pick(WORKFLOWS) });
    const jobs = JOBS.slice(0, random.int(1, 4));
    startWorkflowRun(world, by, { workflow, headSha, event: pull ? "pull_request" : "push", jobs });
    return repository;
  },

  advanceJob: (stage, repository, by) => {
    const { world, random } = stage;
    const run = runIn(stage, repository, ({ status }) => status !== "completed");
    const jobs = run ? jobsOf(run).filter(({ status }) => status !== "completed") : [];
    if (jobs.length === 0) return undefined;
    const job = random.pick(jobs);
    if (job.status === "queued" && random.chance(0.8)) beginJob(world, by, job);
    else if (job.status === "in_progress" && random.chance(0.2)) endStep(world, job);
    else endJob(world, by, job, conclusionOf(random));
    return repository;
  },

  rerunWorkflow: (stage, repository, by) => {
    const run = runIn(stage, repository, ({ status }) => status === "completed");
    if (!run) return undefined;
    rerun(stage.world, by, run);
    return repository;
  },

  cancelWorkflow: (stage, repository, by) => {
    const run = runIn(stage, repository, ({ status }) => status !== "completed");
    if (!run) return undefined;
    cancelRun(stage.world, by, run);
    return repository;
  },

  disableWorkflow: ({ world, random }, repository) => {
    const workflows = [...world.code.of(repository).workflows.values()];
    if (workflows.length === 0) return undefined;
    const workflow = random.pick(workflows);
    setWorkflowState(world, workflow, workflow.state === "active" ? "disabled_manually" : "active");
    return repository;
  },

  deleteWorkflowRun: (stage, repository) => {
    const run = runIn(stage, repository, ({ status }) => status === "completed");
    if (!run) return undefined;
    deleteWorkflowRun(stage.world, run);
    return repository;
  },
} satisfies Record<string, Act>;

function runIn(
  { world, random }: Stage,
  repository: Repository,
  isOne: (run: WorkflowRun) => boolean,
): WorkflowRun | undefined {
  const runs = [...world.code.of(repository).workflowRuns.values()].filter(isOne);
  return runs.length === 0 ? undefined : random.pick(runs);
}

function deploymentIn({ world, random }: Stage, repository: Repository): Deployment | undefined {
  const deployments = [...world.code.of(repository).deployments.values()];
  return deployments.length === 0 ? undefined : random.pick(deployments);
}

function isOpen({ state }: PullIssue): boolean {
  return state === "open";
}

function unfinished(world: World, { repository, pull }: PullIssue): CheckRun[] {
  const suites = world.code.of(repository).suites.get(pull.head.sha) ?? [];
  return suites.flatMap((suite) => suite.runs).filter((run) => run.status !== "completed");
}
