import type { Repository } from "./records.ts";
import type { Workflow, WorkflowJob, WorkflowRun } from "./records-actions.ts";
import type {
  CheckApp,
  CheckRun,
  CheckSuite,
  Commit,
  CommitStatus,
  Deployment,
  DeploymentStatus,
  Release,
  Tag,
} from "./records-code.ts";

/** What a repository has beside its issues. */
export interface CodeRows {
  /** Commits that were pushed, and those that were asked for: see `commits.ts`. */
  readonly commits: Map<string, Commit>;
  /** The default branch's head before anything was pushed or merged; null until the first time that matters. */
  trunk: string | null;
  /** By head sha, ascending by id. */
  readonly suites: Map<string, readonly CheckSuite[]>;
  /** By sha, ascending by id. */
  readonly statuses: Map<string, readonly CommitStatus[]>;
  /** By name. */
  readonly tags: Map<string, Tag>;
  readonly releases: Map<number, Release>;
  readonly deployments: Map<number, Deployment>;
  readonly workflows: Map<number, Workflow>;
  readonly workflowRuns: Map<number, WorkflowRun>;
}

/** The rows that hang on code. A repository has none until something is pushed, said or asked of it. */
export class Code {
  readonly checkSuites = new Map<number, CheckSuite>();
  readonly releases = new Map<number, Release>();
  readonly deployments = new Map<number, Deployment>();
  readonly deploymentStatuses = new Map<number, DeploymentStatus>();
  readonly workflows = new Map<number, Workflow>();
  readonly workflowRuns = new Map<number, WorkflowRun>();
  readonly workflowJobs = new Map<number, WorkflowJob>();
  /** Threads of reviews that are resolved, by the id of their first comment, and who did it. */
  readonly resolvedThreads = new Map<number, number>();
  readonly checkRuns = new Map<number, CheckRun>();
  /** By slug: the Apps that are installed, and those that a check was made by. */
  readonly apps = new Map<string, CheckApp>();
  readonly #rows = new Map<number, CodeRows>();

  of({ id }: Repository): CodeRows {
    let rows = this.#rows.get(id);
    if (!rows) {
      rows = {
        commits: new Map(),
        trunk: null,
        suites: new Map(),
        statuses: new Map(),
        tags: new Map(),
        releases: new Map(),
        deployments: new Map(),
        workflows: new Map(),
        workflowRuns: new Map(),
      };
      this.#rows.set(id, rows);
    }
    return rows;
  }

  /** The repository is gone, and all of this with it. */
  forget({ id }: Repository): void {
    const rows = this.#rows.get(id);
    this.#rows.delete(id);
    for (const release of rows?.releases.keys() ?? []) this.releases.delete(release);
    for (const deployment of rows?.deployments.values() ?? []) {
      this.deployments.delete(deployment.id);
      for (const status of deployment.statuses) this.deploymentStatuses.delete(status.id);
    }
    for (const workflow of rows?.workflows.keys() ?? []) this.workflows.delete(workflow);
    for (const run of rows?.workflowRuns.values() ?? []) {
      this.workflowRuns.delete(run.id);
      for (const job of run.jobs) this.workflowJobs.delete(job.id);
    }
    for (const suite of [...(rows?.suites.values() ?? [])].flat()) {
      this.checkSuites.delete(suite.id);
      for (const run of suite.runs) this.checkRuns.delete(run.id);
    }
  }
}
