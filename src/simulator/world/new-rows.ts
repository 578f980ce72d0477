/** New rows with the service's defaults. `World.add…` puts them in their places. */
import { OrderedIndex } from "./ordered-index.ts";
import type {
  Comment,
  Hook,
  Issue,
  Label,
  Milestone,
  Pull,
  Repository,
  Review,
  ReviewComment,
  Seconds,
  User,
} from "./records.ts";

/** Where ids, times and commits of new rows come from: the world. */
export interface Ids {
  nextId(kind: IdKind): number;
  now(): Seconds;
  newSha(): string;
}

export type IdKind =
  | "user"
  | "repository"
  | "label"
  | "milestone"
  | "issue"
  | "pull"
  | "comment"
  | "review"
  | "reviewComment"
  | "hook"
  | "delivery"
  | "app"
  | "installation"
  | "checkSuite"
  | "checkRun"
  | "status"
  | "release"
  | "asset"
  | "deployment"
  | "deploymentStatus"
  | "workflow"
  | "workflowRun"
  | "team";

/** Fields that have no default, and any others to set. */
type New<T, Required extends keyof T> = Pick<T, Required> & Partial<Omit<T, "rows">>;
export type NewUser = New<User, "login">;
export type NewRepository = New<Repository, "ownerId" | "name">;
export type NewLabel = New<Label, "repository" | "name">;
export type NewMilestone = New<Milestone, "repository" | "title">;
export type NewPull = New<Pull, "head" | "base">;
export type NewIssue = Omit<New<Issue, "repository" | "title" | "authorId">, "pull" | "thread"> & {
  readonly pull?: NewPull;
};
export type NewComment = New<Comment, "issue" | "authorId" | "body">;
export type NewReview = New<Review, "issue" | "authorId" | "state">;
export type NewReviewComment = New<ReviewComment, "issue" | "authorId" | "body" | "path" | "commitId">;
export type NewHook = New<Hook, "repository" | "url">;

const NONE: readonly never[] = Object.freeze([]) as readonly never[];

/** An account. */
export function userRow(ids: Ids, fields: NewUser): User {
  const createdAt = fields.createdAt ?? ids.now();
  return {
    id: fields.id ?? ids.nextId("user"),
    login: fields.login,
    loginInComments: fields.loginInComments ?? null,
    type: fields.type ?? "User",
    siteAdmin: fields.siteAdmin ?? false,
    name: fields.name ?? null,
    company: fields.company ?? null,
    blog: fields.blog ?? null,
    location: fields.location ?? null,
    email: fields.email ?? null,
    bio: fields.bio ?? null,
    createdAt,
    updatedAt: fields.updatedAt ?? createdAt,
    memberIds: fields.memberIds ?? NONE,
    ownerIds: fields.ownerIds ?? NONE,
    publicMemberIds: fields.publicMemberIds ?? NONE,
    deleted: false,
  };
}

/** A repository with nothing in it but its default branch. */
export function repositoryRow(ids: Ids, fields: NewRepository): Repository {
  const createdAt = fields.createdAt ?? ids.now();
  return {
    id: fields.id ?? ids.nextId("repository"),
    ownerId: fields.ownerId,
    name: fields.name,
    description: fields.description ?? null,
    homepage: fields.homepage ?? null,
    language: fields.language ?? null,
    visibility: fields.visibility ?? "public",
    fork: fields.fork ?? false,
    parentId: fields.parentId ?? null,
    archived: fields.archived ?? false,
    disabled: fields.disabled ?? false,
    blocked: fields.blocked ?? null,
    isTemplate: fields.isTemplate ?? false,
    hasIssues: fields.hasIssues ?? true,
    hasPullRequests: fields.hasPullRequests ?? true,
    hasProjects: fields.hasProjects ?? true,
    hasWiki: fields.hasWiki ?? true,
    hasPages: fields.hasPages ?? false,
    hasDownloads: fields.hasDownloads ?? true,
    hasDiscussions: fields.hasDiscussions ?? false,
    allowForking: fields.allowForking ?? true,
    allowSquashMerge: fields.allowSquashMerge ?? true,
    allowMergeCommit: fields.allowMergeCommit ?? true,
    allowRebaseMerge: fields.allowRebaseMerge ?? true,
    allowAutoMerge: fields.allowAutoMerge ?? false,
    deleteBranchOnMerge: fields.deleteBranchOnMerge ?? false,
    allowUpdateBranch: fields.allowUpdateBranch ?? false,
    webCommitSignoffRequired: fields.webCommitSignoffRequired ?? false,
    defaultBranch: fields.defaultBranch ?? "main",
    topics: fields.topics ?? NONE,
    licenseKey: fields.licenseKey ?? null,
    stargazers: fields.stargazers ?? 0,
    forks: fields.forks ?? 0,
    subscribers: fields.subscribers ?? 0,
    size: fields.size ?? 0,
    createdAt,
    updatedAt: fields.updatedAt ?? createdAt,
    pushedAt: fields.pushedAt === undefined ? createdAt : fields.pushedAt,
    branches: fields.branches ?? new Map([[fields.defaultBranch ?? "main", ids.newSha()]]),
    collaborators: fields.collaborators ?? new Map(),
    contributorIds: fields.contributorIds ?? new Set(),
    lastNumber: fields.lastNumber ?? 0,
    lastMilestoneNumber: fields.lastMilestoneNumber ?? 0,
    openIssues: 0,
    openPulls: 0,
    rows: {
      byNumber: [],
      issuesByCreated: new OrderedIndex<Issue>((row) => row.createdAt),
      issuesByUpdated: new OrderedIndex<Issue>((row) => row.updatedAt),
      pullsByCreated: new OrderedIndex<Issue>((row) => row.createdAt),
      commentsById: new OrderedIndex<Comment>((row) => row.id),
      commentsByUpdated: new OrderedIndex<Comment>((row) => row.updatedAt),
      reviewCommentsById: new OrderedIndex<ReviewComment>((row) => row.id),
      reviewCommentsByUpdated: new OrderedIndex<ReviewComment>((row) => row.updatedAt),
      labels: new Map(),
      milestones: new Map(),
      tombstones: new Map(),
      hooks: new Map(),
    },
    deleted: false,
  };
}

/** A label. */
export function labelRow(ids: Ids, fields: NewLabel): Label {
  const createdAt = fields.createdAt ?? ids.now();
  return {
    id: fields.id ?? ids.nextId("label"),
    repository: fields.repository,
    name: fields.name,
    color: fields.color ?? "ededed",
    description: fields.description ?? null,
    isDefault: fields.isDefault ?? false,
    createdAt,
    updatedAt: fields.updatedAt ?? createdAt,
    deleted: false,
  };
}

/** A milestone that no issue has yet. */
export function milestoneRow(ids: Ids, fields: NewMilestone): Milestone {
  const { repository } = fields;
  const createdAt = fields.createdAt ?? ids.now();
  return {
    id: fields.id ?? ids.nextId("milestone"),
    repository,
    number: fields.number ?? repository.lastMilestoneNumber + 1,
    title: fields.title,
    description: fields.description ?? null,
    state: fields.state ?? "open",
    creatorId: fields.creatorId === undefined ? repository.ownerId : fields.creatorId,
    openIssues: 0,
    closedIssues: 0,
    createdAt,
    updatedAt: fields.updatedAt ?? createdAt,
    closedAt: fields.closedAt ?? null,
    dueOn: fields.dueOn ?? null,
    deleted: false,
  };
}

/** An issue; with `pull` a pull request. */
export function issueRow(ids: Ids, fields: NewIssue): Issue {
  const { repository } = fields;
  const createdAt = fields.createdAt ?? ids.now();
  return {
    id: fields.id ?? ids.nextId("issue"),
    repository,
    number: fields.number ?? repository.lastNumber + 1,
    title: fields.title,
    body: fields.body ?? null,
    authorId: fields.authorId,
    state: fields.state ?? "open",
    stateReason: fields.stateReason ?? null,
    closedAt: fields.closedAt ?? null,
    closedById: fields.closedById ?? null,
    lastClosedAt: fields.lastClosedAt ?? fields.closedAt ?? null,
    locked: fields.locked ?? false,
    lockReason: fields.lockReason ?? null,
    pinned: fields.pinned ?? false,
    assigneeIds: fields.assigneeIds?.length ? fields.assigneeIds : NONE,
    labelIds: fields.labelIds?.length ? fields.labelIds : NONE,
    milestoneId: fields.milestoneId ?? null,
    typeId: fields.typeId ?? null,
    links: fields.links ?? null,
    createdAt,
    updatedAt: fields.updatedAt ?? createdAt,
    editedAt: fields.editedAt ?? null,
    association: fields.association ?? null,
    reactions: fields.reactions ?? null,
    thread: NONE,
    commentsBeyond: fields.commentsBeyond ?? 0,
    pull: fields.pull ? pullPart(ids, fields.pull) : null,
    deleted: false,
  };
}

/** A comment of the conversation. */
export function commentRow(ids: Ids, fields: NewComment): Comment {
  const { issue } = fields;
  const createdAt = fields.createdAt ?? ids.now();
  return {
    id: fields.id ?? ids.nextId("comment"),
    issue,
    authorId: fields.authorId,
    body: fields.body,
    createdAt,
    updatedAt: fields.updatedAt ?? createdAt,
    association: fields.association ?? null,
    reactions: fields.reactions ?? null,
    deleted: false,
  };
}

/** A review; without a commit, of the present head. */
export function reviewRow(ids: Ids, fields: NewReview): Review {
  const { issue } = fields;
  const createdAt = fields.createdAt ?? ids.now();
  return {
    id: fields.id ?? ids.nextId("review"),
    issue,
    authorId: fields.authorId,
    body: fields.body ?? "",
    state: fields.state,
    submittedAt: fields.submittedAt ?? (fields.state === "PENDING" ? null : createdAt),
    updatedAt: fields.updatedAt ?? createdAt,
    createdAt,
    commitId: fields.commitId === undefined ? issue.pull.head.sha : fields.commitId,
    association: fields.association ?? null,
    deleted: false,
  };
}

/** A comment on the diff. */
export function reviewCommentRow(ids: Ids, fields: NewReviewComment): ReviewComment {
  const { issue } = fields;
  const createdAt = fields.createdAt ?? ids.now();
  const line = fields.line === undefined ? 1 : fields.line;
  const position = fields.position === undefined ? 1 : fields.position;
  return {
    id: fields.id ?? ids.nextId("reviewComment"),
    issue,
    reviewId: fields.reviewId ?? null,
    inReplyToId: fields.inReplyToId ?? null,
    authorId: fields.authorId,
    body: fields.body,
    path: fields.path,
    diffHunk: fields.diffHunk ?? "@@ -1 +1 @@",
    position,
    originalPosition: fields.originalPosition === undefined ? position : fields.originalPosition,
    line,
    originalLine: fields.originalLine === undefined ? line : fields.originalLine,
    startLine: fields.startLine ?? null,
    originalStartLine: fields.originalStartLine ?? null,
    side: fields.side ?? "RIGHT",
    startSide: fields.startSide ?? null,
    subjectType: fields.subjectType ?? "line",
    commitId: fields.commitId,
    originalCommitId: fields.originalCommitId ?? fields.commitId,
    createdAt,
    updatedAt: fields.updatedAt ?? createdAt,
    association: fields.association ?? null,
    reactions: fields.reactions ?? null,
    deleted: false,
  };
}

/** A webhook as the service makes it: form content, pushes only. */
export function hookRow(ids: Ids, fields: NewHook): Hook {
  const createdAt = fields.createdAt ?? ids.now();
  return {
    id: fields.id ?? ids.nextId("hook"),
    repository: fields.repository,
    active: fields.active ?? true,
    events: fields.events ?? ["push"],
    url: fields.url,
    contentType: fields.contentType ?? "form",
    insecureSsl: fields.insecureSsl ?? "0",
    secret: fields.secret ?? null,
    createdAt,
    updatedAt: fields.updatedAt ?? createdAt,
    lastResponse: fields.lastResponse ?? { code: null, status: "unused", message: null },
    deleted: false,
  };
}

/** The pull request side of an issue. */
export function pullPart(ids: Ids, fields: NewPull): Pull {
  return {
    id: fields.id ?? ids.nextId("pull"),
    head: fields.head,
    base: fields.base,
    draft: fields.draft ?? false,
    mergedAt: fields.mergedAt ?? null,
    mergedById: fields.mergedById ?? null,
    mergeCommitSha: fields.mergeCommitSha ?? null,
    mergeable: fields.mergeable ?? true,
    mergeableKnownAt: fields.mergeableKnownAt ?? null,
    maintainerCanModify: fields.maintainerCanModify ?? false,
    requestedReviewerIds: fields.requestedReviewerIds ?? NONE,
    commits: fields.commits ?? 1,
    additions: fields.additions ?? 0,
    deletions: fields.deletions ?? 0,
    changedFiles: fields.changedFiles ?? 0,
    reviews: NONE,
    reviewComments: NONE,
  };
}
