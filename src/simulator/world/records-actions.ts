/** Rows of Actions: workflows, their runs, and the jobs of these. See `records.ts` for what rows are. */
import type { Repository, Seconds } from "./records.ts";
import type { CheckConclusion, CheckRun, CheckStatus, CheckSuite } from "./records-code.ts";

export type WorkflowState = "active" | "disabled_manually";

/** A file of the repository that says what Actions does there, and when. */
export interface Workflow {
  readonly id: number;
  readonly repository: Repository;
  readonly name: string;
  /** Such as `.github/workflows/ci.yml`. */
  readonly path: string;
  state: WorkflowState;
  readonly createdAt: Seconds;
  updatedAt: Seconds;
  deleted: boolean;
}

/** One time that a workflow was started. Each attempt has jobs of its own. */
export interface WorkflowRun {
  readonly id: number;
  readonly repository: Repository;
  readonly workflow: Workflow;
  /** The suite of Actions' App that sums it up: it names the commit and the branch. */
  readonly suite: CheckSuite;
  /** The how manieth of its workflow it is. */
  readonly number: number;
  /** What started it, such as `push`. */
  readonly event: string;
  readonly title: string;
  readonly actorId: number;
  triggeringActorId: number;
  /** From 1. */
  attempt: number;
  status: CheckStatus;
  conclusion: CheckConclusion | null;
  readonly createdAt: Seconds;
  /** When its attempt began. */
  startedAt: Seconds;
  updatedAt: Seconds;
  /** Ascending by id; those of earlier attempts among them. */
  jobs: readonly WorkflowJob[];
  deleted: boolean;
}

export interface JobStep {
  readonly name: string;
  readonly status: "queued" | "in_progress" | "completed";
  readonly conclusion: "success" | "failure" | "skipped" | "cancelled" | null;
  readonly startedAt: Seconds | null;
  readonly completedAt: Seconds | null;
}

/** A job has the id of its check run. */
export interface WorkflowJob {
  readonly id: number;
  readonly run: WorkflowRun;
  readonly checkRun: CheckRun;
  readonly name: string;
  readonly attempt: number;
  status: CheckStatus;
  conclusion: CheckConclusion | null;
  steps: readonly JobStep[];
  readonly createdAt: Seconds;
  startedAt: Seconds;
  completedAt: Seconds | null;
  deleted: boolean;
}
