import { checkRun } from "./check-run/kind.ts";
import { checkSuite } from "./check-suite/kind.ts";
import type { Kind, Resource, ResourceEvents } from "./contract/kind.ts";
import { deployment } from "./deployment/kind.ts";
import { deploymentStatus } from "./deployment-status/kind.ts";
import { issue } from "./issue/kind.ts";
import { issueComment } from "./issue-comment/kind.ts";
import { issueEvent } from "./issue-event/kind.ts";
import { label } from "./label/kind.ts";
import { milestone } from "./milestone/kind.ts";
import { pullRequest } from "./pull-request/kind.ts";
import { release } from "./release/kind.ts";
import { repository } from "./repository/kind.ts";
import { review } from "./review/kind.ts";
import { reviewComment } from "./review-comment/kind.ts";
import { status } from "./status/kind.ts";
import { user } from "./user/kind.ts";
import { workflow } from "./workflow/kind.ts";
import { workflowJob } from "./workflow-job/kind.ts";
import { workflowRun } from "./workflow-run/kind.ts";

/**
 * Every kind, in the order of writing: every transaction takes its locks in this order. Rows that transactions about
 * different issues share come last, so these locks are short: nearly every delivery changes its repository.
 */
const RESOURCES: Readonly<Record<Kind, Resource>> = {
  issue,
  pull_request: pullRequest,
  issue_comment: issueComment,
  issue_event: issueEvent,
  review,
  review_comment: reviewComment,
  check_run: checkRun,
  check_suite: checkSuite,
  status,
  release,
  deployment,
  deployment_status: deploymentStatus,
  workflow,
  workflow_run: workflowRun,
  workflow_job: workflowJob,
  user,
  label,
  milestone,
  repository,
};
export const resources: readonly Resource[] = Object.values(RESOURCES);

export function resourceOf(kind: Kind): Resource {
  return RESOURCES[kind];
}

/** The kinds that have events, in the order in which events are made: what others refer to comes first. */
export const EVENT_ORDER: readonly Kind[] = [
  "repository",
  "label",
  "milestone",
  "issue",
  "pull_request",
  "review",
  "issue_comment",
  "review_comment",
  "release",
  "deployment",
  "deployment_status",
  "check_suite",
  "check_run",
  "workflow_run",
  "workflow_job",
];

/** By the event's name. A delivery names its event as it likes, so the table has no inherited names. */
const BY_EVENT: ReadonlyMap<string, { kind: Kind; events: ResourceEvents }> = new Map(
  resources.flatMap(({ kind, events }) => (events ? [[events.event, { kind, events }] as const] : [])),
);

/** The kind that is the subject of an event. */
export function subjectOf(event: string): { kind: Kind; events: ResourceEvents } | undefined {
  return BY_EVENT.get(event);
}
