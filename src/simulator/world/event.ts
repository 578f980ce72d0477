import type {
  Comment,
  Issue,
  IssueType,
  Label,
  Milestone,
  Repository,
  Review,
  ReviewComment,
  Team,
} from "./records.ts";
import type { WorkflowJob, WorkflowRun } from "./records-actions.ts";
import type { CheckRun, CheckSuite, CommitStatus, Deployment, DeploymentStatus, Release } from "./records-code.ts";

type EventName =
  | "issues"
  | "pull_request"
  | "issue_comment"
  | "pull_request_review"
  | "pull_request_review_comment"
  | "label"
  | "milestone"
  | "repository"
  | "public"
  | "push"
  | "check_run"
  | "check_suite"
  | "status"
  | "create"
  | "delete"
  | "release"
  | "deployment"
  | "deployment_status"
  | "workflow_run"
  | "workflow_job"
  | "pull_request_review_thread"
  | "sub_issues"
  | "issue_dependencies"
  | "member"
  | "team_add"
  | "ping";

/**
 * Something that happened in the world, told the moment after the truth changed. Rows are the live ones: a listener
 * that needs a snapshot takes it before it returns.
 */
export interface WorldEvent {
  readonly event: EventName;
  readonly action: string | null;
  /** Whose hooks hear it. */
  readonly repository: Repository;
  readonly senderId: number;
  /** The issue or (with `pull`) the pull request concerned. */
  readonly issue?: Issue;
  readonly comment?: Comment;
  readonly review?: Review;
  readonly reviewComment?: ReviewComment;
  /** On `unlabeled` it is absent when the label itself was deleted, as the service leaves it out. */
  readonly label?: Label;
  readonly milestone?: Milestone;
  readonly assigneeId?: number;
  /** Who was given access, or lost it. */
  readonly memberId?: number;
  readonly team?: Team;
  readonly requestedReviewerId?: number;
  readonly checkRun?: CheckRun;
  readonly checkSuite?: CheckSuite;
  readonly status?: CommitStatus;
  readonly release?: Release;
  readonly deployment?: Deployment;
  readonly deploymentStatus?: DeploymentStatus;
  readonly workflowRun?: WorkflowRun;
  readonly workflowJob?: WorkflowJob;
  /** What was made or deleted; `push` tells where to. */
  readonly ref?: { readonly name: string; readonly type: "branch" | "tag" };
  /** The thread of a review: the id of its first comment. */
  readonly thread?: number;
  /** Only this App hears it, whatever it subscribed to: the id. */
  readonly onlyApp?: number;
  /** Only the keys that changed, `{from: old}` each. */
  readonly changes?: Readonly<Record<string, unknown>>;
  /** Transfers: at the source `to`, at the target `from`. */
  readonly transfer?: { readonly to?: Issue; readonly from?: Issue };
  /** Of `sub_issues` the parent and its sub-issue, of `issue_dependencies` what blocks and what it blocks. */
  readonly link?: { readonly from: Issue; readonly to: Issue };
  readonly issueType?: IssueType;
  /** Repository transfer: the owner it came from. */
  readonly ownerFromId?: number;
  /** Pushes and `synchronize`. */
  readonly push?: {
    readonly ref: string;
    readonly before: string;
    readonly after: string;
    readonly deleted?: boolean;
    readonly forced?: boolean;
  };
}
