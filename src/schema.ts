/** Every table of the mirror, as drizzle describes it. */

export * from "../db/schema/callers.ts";
export * from "../db/schema/events.ts";
export * from "../db/schema/following.ts";
export * from "../db/schema/inbox.ts";
export * from "../db/schema/lists.ts";
export * from "../db/schema/reading.ts";
export * from "../db/schema/targets.ts";
export * from "../db/schema/work.ts";
export { checkRuns } from "./kinds/check-run/table.ts";
export { checkSuites } from "./kinds/check-suite/table.ts";
export { deploymentLists, deployments } from "./kinds/deployment/table.ts";
export { deploymentStatuses, deploymentStatusLists } from "./kinds/deployment-status/table.ts";
export { issues } from "./kinds/issue/table.ts";
export { issueComments } from "./kinds/issue-comment/table.ts";
export { issueEventLists, issueEvents } from "./kinds/issue-event/table.ts";
export { labels } from "./kinds/label/table.ts";
export { milestones } from "./kinds/milestone/table.ts";
export { pullRequests } from "./kinds/pull-request/table.ts";
export { releaseLists, releases } from "./kinds/release/table.ts";
export { repositories } from "./kinds/repository/table.ts";
export { pullRequestReviews } from "./kinds/review/table.ts";
export { pullRequestReviewComments } from "./kinds/review-comment/table.ts";
export { commitStatuses } from "./kinds/status/table.ts";
export { users } from "./kinds/user/table.ts";
export { workflowLists, workflows } from "./kinds/workflow/table.ts";
export { workflowJobLists, workflowJobs } from "./kinds/workflow-job/table.ts";
export { workflowRunLists, workflowRuns } from "./kinds/workflow-run/table.ts";
