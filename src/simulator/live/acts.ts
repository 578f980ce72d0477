import type { Act } from "./act.ts";
import { CODE_ACTS } from "./code-acts.ts";
import { ISSUE_ACTS } from "./issue-acts.ts";
import { PULL_ACTS } from "./pull-acts.ts";
import { REPOSITORY_ACTS } from "./repository-acts.ts";
import type { Stage } from "./stage.ts";

const ACTS = { ...ISSUE_ACTS, ...PULL_ACTS, ...REPOSITORY_ACTS, ...CODE_ACTS } satisfies Record<string, Act>;

export type LiveKind = keyof typeof ACTS;

/**
 * What can happen, and how often in comparison. `deleteUser` happens only when asked for: it may take an account that a
 * token belongs to. Acts of machines happen only when asked for, too: most worlds are about people.
 */
export const FREQUENCIES = {
  open: 14,
  openPull: 5,
  edit: 10,
  label: 14,
  assign: 7,
  milestone: 4,
  comment: 24,
  editComment: 4,
  deleteComment: 1,
  close: 9,
  reopen: 3,
  merge: 4,
  review: 6,
  dismissReview: 0.4,
  reviewComment: 4,
  editReviewComment: 0.6,
  push: 4,
  draft: 1,
  requestReview: 2,
  lock: 0.6,
  deleteIssue: 0.4,
  transferIssue: 0.3,
  createLabel: 0.4,
  renameLabel: 0.5,
  deleteLabel: 0.1,
  createMilestone: 0.2,
  editMilestone: 0.4,
  renameUser: 0.2,
  editUser: 0.2,
  deleteFork: 0.2,
  renameRepository: 0.05,
  transferRepository: 0.02,
  deleteUser: 0,
  startBuild: 0,
  advanceBuild: 0,
  reportStatus: 0,
  release: 0,
  createDeployment: 0,
  addDeploymentStatus: 0,
  deleteDeployment: 0,
  startWorkflow: 0,
  advanceJob: 0,
  rerunWorkflow: 0,
  cancelWorkflow: 0,
  disableWorkflow: 0,
  deleteWorkflowRun: 0,
} as const satisfies Record<keyof typeof ACTS, number>;

// Object.keys answers `string[]` for every object.
export const LIVE_KINDS = Object.keys(FREQUENCIES) as LiveKind[];

export interface Deed {
  readonly kind: LiveKind;
  /** `owner/name` after the deed; null where it concerns no repository. */
  readonly repository: string | null;
  /** The issue or pull request concerned. */
  readonly number: number | null;
}

/**
 * Does it to a repository, an issue or a person picked at random. Null when there is nothing to do it to. May throw a
 * `Refusal`.
 */
export function perform(stage: Stage, kind: LiveKind): Deed | null {
  const repository = stage.repository();
  const by = stage.person();
  if (!repository || !by) return null;
  const touched = ACTS[kind](stage, repository, by.id);
  if (!touched) return null;
  const issue = "number" in touched && "thread" in touched ? touched : null;
  const where = issue ? issue.repository : "rows" in touched ? touched : null;
  return { kind, repository: where ? stage.world.fullName(where) : null, number: issue?.number ?? null };
}
