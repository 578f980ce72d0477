// How REST spells each field of GraphQL.
import { REACTION_KEYS } from "../support/reactions.ts";

// biome-ignore lint/suspicious/noExplicitAny: two spellings of one thing are compared
export type Fields = any;
export type Reading = (json: Fields, viewer: { userId: number }) => unknown;

const key =
  (name: string): Reading =>
  (json) =>
    json[name] ?? null;
const upper =
  (name: string) =>
  (json: Fields): string | null =>
    json[name]?.toUpperCase().replaceAll(/[ -]/g, "_") ?? null;
const pathname = (address: string) => new URL(address).pathname;

const page = { url: key("html_url"), resourcePath: (json: Fields) => pathname(json.html_url) };
const identity = { id: key("node_id"), databaseId: key("id") };
const unedited = {
  ...identity,
  ...page,
  fullDatabaseId: (json: Fields) => String(json.id),
  authorAssociation: key("author_association"),
  body: (json: Fields) => json.body ?? "",
};
const written = {
  ...unedited,
  createdAt: key("created_at"),
  updatedAt: key("updated_at"),
};
const viewerDidAuthor: Reading = (json, { userId }) => json.user?.id === userId;
const published = { publishedAt: key("created_at"), viewerDidAuthor };
const issueOrPull = {
  ...written,
  ...published,
  number: key("number"),
  title: key("title"),
  closed: (json: Fields) => json.state === "closed",
  closedAt: key("closed_at"),
  locked: key("locked"),
  activeLockReason: upper("active_lock_reason"),
};
const account = {
  ...identity,
  ...page,
  login: (json: Fields) => json.login.replace(/\[bot\]$/, ""),
  avatarUrl: key("avatar_url"),
};
export const READINGS: Record<string, Record<string, Reading>> = {
  PullRequestReview: {
    ...unedited,
    state: key("state"),
    submittedAt: key("submitted_at"),
    updatedAt: key("submitted_at"),
    viewerDidAuthor,
  },
  PullRequestReviewComment: {
    ...written,
    ...published,
    includesCreatedEdit: (json) => json.created_at !== json.updated_at,
    state: () => "SUBMITTED",
    diffHunk: key("diff_hunk"),
    path: key("path"),
    line: key("line"),
    originalLine: key("original_line"),
    startLine: key("start_line"),
    originalStartLine: key("original_start_line"),
    outdated: (json) => json.subject_type === "line" && json.line === null,
    subjectType: upper("subject_type"),
  },
  User: {
    ...account,
    name: key("name"),
    company: key("company"),
    isSiteAdmin: key("site_admin"),
    isViewer: (json, { userId }) => json.id === userId,
  },
  Organization: { ...account, name: key("name") },
  Bot: account,
  Repository: {
    ...identity,
    ...page,
    name: key("name"),
    nameWithOwner: key("full_name"),
    description: key("description"),
    homepageUrl: (json) => json.homepage || null,
    sshUrl: key("ssh_url"),
    mirrorUrl: key("mirror_url"),
    visibility: upper("visibility"),
    isPrivate: key("private"),
    isFork: key("fork"),
    isArchived: key("archived"),
    isDisabled: key("disabled"),
    isTemplate: key("is_template"),
    isMirror: (json) => json.mirror_url !== null,
    isInOrganization: (json) => json.owner.type === "Organization",
    createdAt: key("created_at"),
    updatedAt: key("updated_at"),
    pushedAt: key("pushed_at"),
    stargazerCount: key("stargazers_count"),
    forkCount: key("forks_count"),
    diskUsage: key("size"),
    hasIssuesEnabled: key("has_issues"),
    hasProjectsEnabled: key("has_projects"),
    hasWikiEnabled: key("has_wiki"),
    hasDiscussionsEnabled: key("has_discussions"),
    viewerPermission: (json) => (json.permissions.admin ? "ADMIN" : null),
    viewerCanAdminister: (json) => json.permissions.admin,
    mergeCommitAllowed: key("allow_merge_commit"),
    rebaseMergeAllowed: key("allow_rebase_merge"),
    squashMergeAllowed: key("allow_squash_merge"),
    deleteBranchOnMerge: key("delete_branch_on_merge"),
    allowUpdateBranch: key("allow_update_branch"),
    autoMergeAllowed: key("allow_auto_merge"),
    forkingAllowed: key("allow_forking"),
    webCommitSignoffRequired: key("web_commit_signoff_required"),
  },
  Issue: {
    ...issueOrPull,
    state: upper("state"),
    stateReason: (json) => (json.state_reason === "duplicate" ? "NOT_PLANNED" : upper("state_reason")(json)),
  },
  PullRequest: {
    ...issueOrPull,
    state: (json) => (json.merged ? "MERGED" : json.state.toUpperCase()),
    isDraft: key("draft"),
    merged: key("merged"),
    mergedAt: key("merged_at"),
    mergeable: (json) => (json.mergeable === null ? "UNKNOWN" : json.mergeable ? "MERGEABLE" : "CONFLICTING"),
    canBeRebased: (json) => json.rebaseable === true,
    maintainerCanModify: key("maintainer_can_modify"),
    additions: key("additions"),
    deletions: key("deletions"),
    changedFiles: key("changed_files"),
    baseRefName: (json) => json.base.ref,
    baseRefOid: (json) => json.base.sha,
    headRefName: (json) => json.head.ref,
    headRefOid: (json) => json.head.sha,
    isCrossRepository: (json) => json.head.repo?.id !== json.base.repo.id,
    permalink: key("html_url"),
    mergeStateStatus: (json) => upper("mergeable_state")(json) ?? "UNKNOWN",
    // Depends on what the branch asks for, which REST does not tell.
    reviewDecision: () => null,
    totalCommentsCount: (json) => json.comments + json.review_comments,
    checksUrl: (json) => `${json.html_url}/checks`,
    checksResourcePath: (json) => `${pathname(json.html_url)}/checks`,
    revertUrl: (json) => `${json.html_url}/revert`,
    revertResourcePath: (json) => `${pathname(json.html_url)}/revert`,
  },
  Label: {
    id: key("node_id"),
    name: key("name"),
    color: key("color"),
    description: key("description"),
    isDefault: key("default"),
    // REST does not tell them.
    createdAt: () => null,
    updatedAt: () => null,
    url: (json) =>
      `https://github.com/${json.url.match(/repos\/([^/]+\/[^/]+)/)[1]}/labels/${json.url.split("/").at(-1)}`,
    resourcePath: (json) => `/${json.url.match(/repos\/([^/]+\/[^/]+)/)[1]}/labels/${json.url.split("/").at(-1)}`,
  },
  Milestone: {
    ...page,
    id: key("node_id"),
    number: key("number"),
    title: key("title"),
    description: key("description"),
    state: upper("state"),
    closed: (json) => json.state === "closed",
    closedAt: key("closed_at"),
    dueOn: key("due_on"),
    createdAt: key("created_at"),
    updatedAt: key("updated_at"),
    progressPercentage: ({ open_issues: open, closed_issues: closed }) =>
      closed === 0 ? 0 : (closed / (open + closed)) * 100,
  },
  IssueComment: {
    ...written,
    includesCreatedEdit: (json) => json.created_at !== json.updated_at,
    isMinimized: (json) => json.minimized != null,
    minimizedReason: (json) => json.minimized?.reason ?? null,
    ...published,
  },
};

const profile = ["createdAt", "email", "location", "twitterUsername", "updatedAt", "websiteUrl"];

/** Fields that are not held of every row: `graphql-part.test.ts` has them. */
export const HELD_IN_PART: Readonly<Record<string, readonly string[]>> = {
  User: [...profile, "bio"],
  Organization: [...profile, "description", "isVerified"],
  Repository: ["archivedAt"],
  PullRequest: ["isInMergeQueue", "isMergeQueueEnabled"],
  PullRequestReview: ["createdAt", "publishedAt"],
};

/** A login as GraphQL has it: nobody for an account that is gone, no suffix for bots. */
const login = (user: Fields) =>
  user === null || user === undefined || user.login === "ghost" ? null : { login: user.login.replace(/\[bot\]$/, "") };
const ids = (rows: Fields[]) => ({ totalCount: rows.length, nodes: rows.map((row) => ({ id: row.node_id })) });
const commit = (oid: string | null) => (oid === null ? null : { oid, abbreviatedOid: oid.slice(0, 7) });
const byName = (rows: Fields[]) => [...rows].sort((a, b) => (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1));

export const reactionGroups = ({ reactions }: Fields) =>
  Object.entries(REACTION_KEYS).map(([content, key]) => {
    const totalCount = reactions[key];
    return { content, users: { totalCount }, reactors: { totalCount } };
  });
const REACTIONS: [string, Reading] = [
  "{ content users { totalCount } reactors { totalCount } }",
  (json) => (json.reactions ? reactionGroups(json) : null),
];

/** Fields that show a resource or a list of resources: the selection, and REST's counterpart. */
export const RELATIONS: Record<string, Record<string, [selection: string, Reading]>> = {
  Repository: {
    owner: ["{ login }", (json) => login(json.owner)],
    defaultBranchRef: ["{ name }", (json) => ({ name: json.default_branch })],
    licenseInfo: ["{ key }", (json) => (json.license ? { key: json.license.key } : null)],
    primaryLanguage: ["{ name }", (json) => (json.language ? { name: json.language } : null)],
    parent: ["{ nameWithOwner }", (json) => (json.parent ? { nameWithOwner: json.parent.full_name } : null)],
    templateRepository: [
      "{ nameWithOwner }",
      (json) => (json.template_repository ? { nameWithOwner: json.template_repository.full_name } : null),
    ],
    repositoryTopics: [
      "(first: 20) { totalCount nodes { topic { name } } }",
      ({ topics }) => ({ totalCount: topics.length, nodes: topics.map((name: string) => ({ topic: { name } })) }),
    ],
    watchers: ["{ totalCount }", (json) => ({ totalCount: json.subscribers_count })],
  },
  Issue: { ...issueRelations(), reactionGroups: REACTIONS },
  PullRequest: {
    ...issueRelations(),
    mergedBy: ["{ login }", (json) => login(json.merged_by)],
    mergeCommit: ["{ oid }", (json) => (json.merged ? { oid: json.merge_commit_sha } : null)],
    potentialMergeCommit: [
      "{ oid }",
      (json) => (json.state === "open" && json.merge_commit_sha ? { oid: json.merge_commit_sha } : null),
    ],
    baseRef: ["{ name branchProtectionRule { requiresStrictStatusChecks } }", () => null],
    commits: [
      "(last: 1) { totalCount pageInfo { hasNextPage hasPreviousPage } nodes { commit { oid statusCheckRollup { state } } } }",
      (json) => ({
        totalCount: json.commits,
        pageInfo: { hasNextPage: false, hasPreviousPage: json.commits > 1 },
        nodes: [{ commit: { oid: json.head.sha, statusCheckRollup: null } }],
      }),
    ],
    headRepository: ["{ nameWithOwner }", (json) => json.head.repo && { nameWithOwner: json.head.repo.full_name }],
    // No type of GraphQL's is a bot that owns a repository.
    headRepositoryOwner: ["{ login }", (json) => (json.head.user?.type === "Bot" ? null : login(json.head.user))],
    baseRepository: ["{ nameWithOwner }", (json) => ({ nameWithOwner: json.base.repo.full_name })],
    reviewRequests: [
      "(first: 50) { totalCount nodes { requestedReviewer { ... on User { login } } } }",
      (json) => ({
        totalCount: json.requested_reviewers.length,
        nodes: json.requested_reviewers.map((user: Fields) => ({ requestedReviewer: login(user) })),
      }),
    ],
  },
  Milestone: { creator: ["{ login }", (json) => login(json.creator)] },
  IssueComment: { author: ["{ login }", (json) => login(json.user)], reactionGroups: REACTIONS },
  PullRequestReview: {
    author: ["{ login }", (json) => login(json.user)],
    commit: ["{ oid abbreviatedOid }", (json) => commit(json.commit_id)],
    pullRequest: ["{ number }", (json) => ({ number: Number(json.pull_request_url.split("/").at(-1)) })],
  },
  PullRequestReviewComment: {
    author: ["{ login }", (json) => login(json.user)],
    reactionGroups: REACTIONS,
    commit: ["{ oid abbreviatedOid }", (json) => commit(json.commit_id)],
    originalCommit: ["{ oid abbreviatedOid }", (json) => commit(json.original_commit_id)],
    pullRequest: ["{ number }", (json) => ({ number: Number(json.pull_request_url.split("/").at(-1)) })],
    pullRequestReview: [
      "{ fullDatabaseId }",
      (json) => json.pull_request_review_id && { fullDatabaseId: String(json.pull_request_review_id) },
    ],
    replyTo: [
      "{ fullDatabaseId }",
      (json) => (json.in_reply_to_id ? { fullDatabaseId: String(json.in_reply_to_id) } : null),
    ],
  },
};

function issueRelations(): Record<string, [string, Reading]> {
  return {
    author: ["{ login }", (json) => login(json.user)],
    milestone: ["{ id }", (json) => json.milestone && { id: json.milestone.node_id }],
    labels: [
      "(first: 50, orderBy: {field: NAME, direction: ASC}) { totalCount nodes { id } }",
      (json) => ids(byName(json.labels)),
    ],
    assignees: ["(first: 50) { totalCount nodes { id } }", (json) => ids(json.assignees)],
    comments: ["{ totalCount }", (json) => ({ totalCount: json.comments })],
  };
}
