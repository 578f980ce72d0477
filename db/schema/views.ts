import { boolean, doublePrecision, integer, pgSchema, text } from "drizzle-orm/pg-core";
import { int8, timestamptz } from "./columns.ts";

/** The views for people who query the mirror. Their contract is in docs/sql.md; the database says what each column is. */
const views = pgSchema("tain_v1");

export const repositories = views
  .view("repositories", {
    repositoryId: int8("repository_id").notNull(),
    repository: text().notNull(),
    owner: text(),
    name: text().notNull(),
    description: text(),
    private: boolean().notNull(),
    visibility: text(),
    fork: boolean(),
    archived: boolean(),
    defaultBranch: text("default_branch"),
    language: text(),
    stargazersCount: integer("stargazers_count"),
    forksCount: integer("forks_count"),
    createdAt: timestamptz("created_at"),
    updatedAt: timestamptz("updated_at"),
    pushedAt: timestamptz("pushed_at"),
    htmlUrl: text("html_url"),
    mirrorState: text("mirror_state").notNull(),
    mirrorProblem: text("mirror_problem"),
    confirmedAt: timestamptz("confirmed_at"),
  })
  .existing();

export const issues = views
  .view("issues", {
    repositoryId: int8("repository_id").notNull(),
    repository: text().notNull(),
    number: integer().notNull(),
    id: int8().notNull(),
    title: text().notNull(),
    body: text(),
    state: text().notNull(),
    stateReason: text("state_reason"),
    author: text(),
    authorId: int8("author_id"),
    authorType: text("author_type"),
    authorAssociation: text("author_association"),
    labels: text().array().notNull(),
    assignees: text().array().notNull(),
    milestone: text(),
    comments: integer(),
    locked: boolean(),
    closedBy: text("closed_by"),
    createdAt: timestamptz("created_at").notNull(),
    updatedAt: timestamptz("updated_at").notNull(),
    closedAt: timestamptz("closed_at"),
    htmlUrl: text("html_url"),
    hoursToClose: doublePrecision("hours_to_close"),
    answeredAt: timestamptz("answered_at"),
    hoursToAnswer: doublePrecision("hours_to_answer"),
  })
  .existing();

export const pullRequests = views
  .view("pull_requests", {
    repositoryId: int8("repository_id").notNull(),
    repository: text().notNull(),
    number: integer().notNull(),
    id: int8().notNull(),
    title: text().notNull(),
    body: text(),
    state: text().notNull(),
    draft: boolean(),
    author: text(),
    authorId: int8("author_id"),
    authorType: text("author_type"),
    authorAssociation: text("author_association"),
    labels: text().array().notNull(),
    assignees: text().array().notNull(),
    milestone: text(),
    headLabel: text("head_label"),
    headRef: text("head_ref"),
    headSha: text("head_sha"),
    baseRef: text("base_ref"),
    baseSha: text("base_sha"),
    mergeCommitSha: text("merge_commit_sha"),
    mergedBy: text("merged_by"),
    mergeableState: text("mergeable_state"),
    comments: integer(),
    reviewComments: integer("review_comments"),
    commits: integer(),
    additions: integer(),
    deletions: integer(),
    changedFiles: integer("changed_files"),
    createdAt: timestamptz("created_at").notNull(),
    updatedAt: timestamptz("updated_at").notNull(),
    closedAt: timestamptz("closed_at"),
    mergedAt: timestamptz("merged_at"),
    htmlUrl: text("html_url"),
    hoursToMerge: doublePrecision("hours_to_merge"),
    reviewedAt: timestamptz("reviewed_at"),
    hoursToReview: doublePrecision("hours_to_review"),
    isFirst: boolean("is_first"),
  })
  .existing();

export const comments = views
  .view("comments", {
    repositoryId: int8("repository_id").notNull(),
    repository: text().notNull(),
    number: integer().notNull(),
    id: int8().notNull(),
    isPullRequest: boolean("is_pull_request"),
    author: text(),
    authorId: int8("author_id"),
    authorType: text("author_type"),
    authorAssociation: text("author_association"),
    body: text(),
    createdAt: timestamptz("created_at").notNull(),
    updatedAt: timestamptz("updated_at").notNull(),
    htmlUrl: text("html_url"),
  })
  .existing();

export const reviews = views
  .view("reviews", {
    repositoryId: int8("repository_id").notNull(),
    repository: text().notNull(),
    number: integer().notNull(),
    id: int8().notNull(),
    author: text(),
    authorId: int8("author_id"),
    authorType: text("author_type"),
    authorAssociation: text("author_association"),
    state: text().notNull(),
    body: text(),
    commitId: text("commit_id"),
    submittedAt: timestamptz("submitted_at"),
    htmlUrl: text("html_url"),
    isOwn: boolean("is_own"),
  })
  .existing();

export const reviewComments = views
  .view("review_comments", {
    repositoryId: int8("repository_id").notNull(),
    repository: text().notNull(),
    number: integer().notNull(),
    id: int8().notNull(),
    reviewId: int8("review_id"),
    inReplyToId: int8("in_reply_to_id"),
    author: text(),
    authorId: int8("author_id"),
    authorType: text("author_type"),
    authorAssociation: text("author_association"),
    path: text(),
    line: integer(),
    side: text(),
    commitId: text("commit_id"),
    body: text(),
    createdAt: timestamptz("created_at").notNull(),
    updatedAt: timestamptz("updated_at").notNull(),
    htmlUrl: text("html_url"),
  })
  .existing();

export const labels = views
  .view("labels", {
    repositoryId: int8("repository_id").notNull(),
    repository: text().notNull(),
    id: int8().notNull(),
    name: text().notNull(),
    color: text(),
    description: text(),
  })
  .existing();

export const milestones = views
  .view("milestones", {
    repositoryId: int8("repository_id").notNull(),
    repository: text().notNull(),
    number: integer().notNull(),
    id: int8().notNull(),
    title: text().notNull(),
    description: text(),
    state: text().notNull(),
    creator: text(),
    openIssues: integer("open_issues"),
    closedIssues: integer("closed_issues"),
    createdAt: timestamptz("created_at"),
    updatedAt: timestamptz("updated_at"),
    dueOn: timestamptz("due_on"),
    closedAt: timestamptz("closed_at"),
    htmlUrl: text("html_url"),
    progressPercentage: doublePrecision("progress_percentage"),
  })
  .existing();

export const users = views
  .view("users", {
    id: int8().notNull(),
    login: text().notNull(),
    type: text(),
    name: text(),
    avatarUrl: text("avatar_url"),
  })
  .existing();

export const checks = views
  .view("checks", {
    repositoryId: int8("repository_id").notNull(),
    repository: text().notNull(),
    sha: text(),
    kind: text().notNull(),
    id: int8().notNull(),
    name: text().notNull(),
    status: text().notNull(),
    conclusion: text(),
    startedAt: timestamptz("started_at"),
    completedAt: timestamptz("completed_at"),
    htmlUrl: text("html_url"),
    hasFailed: boolean("has_failed").notNull(),
  })
  .existing();

export const issueEvents = views
  .view("issue_events", {
    repositoryId: int8("repository_id").notNull(),
    repository: text().notNull(),
    number: integer().notNull(),
    id: int8().notNull(),
    isPullRequest: boolean("is_pull_request").notNull(),
    event: text().notNull(),
    actor: text(),
    actorId: int8("actor_id"),
    subject: text(),
    label: text(),
    milestone: text(),
    titleFrom: text("title_from"),
    titleTo: text("title_to"),
    commitId: text("commit_id"),
    createdAt: timestamptz("created_at").notNull(),
    readAt: timestamptz("read_at"),
  })
  .existing();

export const releases = views
  .view("releases", {
    repositoryId: int8("repository_id").notNull(),
    repository: text().notNull(),
    id: int8().notNull(),
    tagName: text("tag_name").notNull(),
    name: text(),
    draft: boolean().notNull(),
    prerelease: boolean(),
    author: text(),
    targetCommitish: text("target_commitish"),
    createdAt: timestamptz("created_at").notNull(),
    publishedAt: timestamptz("published_at"),
    htmlUrl: text("html_url"),
  })
  .existing();

export const refs = views
  .view("refs", {
    repositoryId: int8("repository_id").notNull(),
    repository: text().notNull(),
    kind: text().notNull(),
    name: text().notNull(),
    sha: text().notNull(),
    commitSha: text("commit_sha"),
    protected: boolean(),
    htmlUrl: text("html_url"),
  })
  .existing();

export const commits = views
  .view("commits", {
    repositoryId: int8("repository_id").notNull(),
    repository: text().notNull(),
    sha: text().notNull(),
    place: int8().notNull(),
    message: text(),
    author: text(),
    authorId: int8("author_id"),
    committer: text(),
    authoredAt: timestamptz("authored_at"),
    committedAt: timestamptz("committed_at"),
    parents: text().array().notNull(),
    htmlUrl: text("html_url"),
    readAt: timestamptz("read_at"),
  })
  .existing();

export const deployments = views
  .view("deployments", {
    repositoryId: int8("repository_id").notNull(),
    repository: text().notNull(),
    id: int8().notNull(),
    sha: text().notNull(),
    ref: text().notNull(),
    task: text().notNull(),
    environment: text().notNull(),
    description: text(),
    creator: text(),
    state: text(),
    environmentUrl: text("environment_url"),
    logUrl: text("log_url"),
    createdAt: timestamptz("created_at").notNull(),
    updatedAt: timestamptz("updated_at").notNull(),
  })
  .existing();

export const workflows = views
  .view("workflows", {
    repositoryId: int8("repository_id").notNull(),
    repository: text().notNull(),
    id: int8().notNull(),
    name: text().notNull(),
    path: text().notNull(),
    state: text().notNull(),
    createdAt: timestamptz("created_at"),
    updatedAt: timestamptz("updated_at"),
  })
  .existing();

export const workflowRuns = views
  .view("workflow_runs", {
    repositoryId: int8("repository_id").notNull(),
    repository: text().notNull(),
    id: int8().notNull(),
    workflowId: int8("workflow_id").notNull(),
    workflow: text(),
    name: text(),
    event: text().notNull(),
    headSha: text("head_sha").notNull(),
    headBranch: text("head_branch"),
    runNumber: integer("run_number"),
    runAttempt: integer("run_attempt"),
    status: text(),
    conclusion: text(),
    actor: text(),
    actorId: int8("actor_id"),
    createdAt: timestamptz("created_at").notNull(),
    updatedAt: timestamptz("updated_at").notNull(),
    htmlUrl: text("html_url"),
    jobsReadAt: timestamptz("jobs_read_at"),
    hasFailed: boolean("has_failed").notNull(),
  })
  .existing();

export const workflowJobs = views
  .view("workflow_jobs", {
    repositoryId: int8("repository_id").notNull(),
    repository: text().notNull(),
    runId: int8("run_id").notNull(),
    id: int8().notNull(),
    workflowId: int8("workflow_id").notNull(),
    workflow: text(),
    runAttempt: integer("run_attempt"),
    name: text().notNull(),
    headSha: text("head_sha").notNull(),
    headBranch: text("head_branch"),
    status: text().notNull(),
    conclusion: text(),
    createdAt: timestamptz("created_at"),
    startedAt: timestamptz("started_at"),
    completedAt: timestamptz("completed_at"),
    htmlUrl: text("html_url"),
    hasFailed: boolean("has_failed").notNull(),
  })
  .existing();

export const collaborators = views
  .view("collaborators", {
    repositoryId: int8("repository_id").notNull(),
    repository: text().notNull(),
    login: text().notNull(),
    userId: int8("user_id").notNull(),
    role: text(),
    readAt: timestamptz("read_at").notNull(),
  })
  .existing();

export const repositoryTeams = views
  .view("repository_teams", {
    repositoryId: int8("repository_id").notNull(),
    repository: text().notNull(),
    team: text(),
    teamId: int8("team_id").notNull(),
    permission: text(),
    isSecret: boolean("is_secret").notNull(),
    readAt: timestamptz("read_at").notNull(),
  })
  .existing();

export const organizationMembers = views
  .view("organization_members", {
    organization: text().notNull(),
    organizationId: int8("organization_id").notNull(),
    login: text().notNull(),
    userId: int8("user_id").notNull(),
    isOwner: boolean("is_owner").notNull(),
    isPublic: boolean("is_public").notNull(),
    readAt: timestamptz("read_at").notNull(),
  })
  .existing();

export const teamMembers = views
  .view("team_members", {
    organization: text().notNull(),
    team: text(),
    teamId: int8("team_id").notNull(),
    isSecret: boolean("is_secret").notNull(),
    login: text().notNull(),
    userId: int8("user_id").notNull(),
    role: text(),
    readAt: timestamptz("read_at").notNull(),
  })
  .existing();

export const events = views
  .view("events", {
    id: int8().notNull(),
    repositoryId: int8("repository_id").notNull(),
    repository: text().notNull(),
    event: text().notNull(),
    action: text(),
    number: integer(),
    isPullRequest: boolean("is_pull_request"),
    isMade: boolean("is_made").notNull(),
    receivedAt: timestamptz("received_at").notNull(),
  })
  .existing();
