import { reviewThreads, threadNodeId } from "../graphql/review-thread.ts";
import { payloadRun, payloadStatus, payloadSuite } from "../views/check.ts";
import { commentView, reviewCommentView, reviewView } from "../views/comment.ts";
import { headCommit } from "../views/commit.ts";
import { deploymentStatusView, deploymentView } from "../views/deployment.ts";
import { issueTypeView, issueView, labelView, milestoneView } from "../views/issue.ts";
import { fullPull, pullSummary } from "../views/pull.ts";
import { releaseView } from "../views/release.ts";
import { repositorySummary } from "../views/repository.ts";
import { teamView } from "../views/team.ts";
import { organization, simpleUser } from "../views/user.ts";
import { type Json, time, type View } from "../views/view.ts";
import { workflowJobView, workflowRunView, workflowView } from "../views/workflow.ts";
import { commitOf, NO_SHA } from "../world/commits.ts";
import type { WorldEvent } from "../world/event.ts";
import { filesOfCommit } from "../world/files.ts";
import type { Issue, PullIssue, Repository, Review } from "../world/records.ts";
import type { Commit } from "../world/records-code.ts";
import { isPull } from "../world/world.ts";

/** What the service sends for an event: a snapshot, in REST's shapes less what webhooks leave out. */
export function payloadOf(view: View, event: WorldEvent): Json {
  const { repository } = event;
  const owner = view.world.user(repository.ownerId);
  return {
    ...(event.action === null ? {} : { action: event.action }),
    ...subject(view, event),
    repository: event.event === "push" ? pushRepository(view, repository) : repositorySummary(view, repository),
    ...(owner.type === "Organization" ? { organization: organizationPart(view, repository.ownerId) } : {}),
    sender: simpleUser(view, event.senderId),
  };
}

function subject(view: View, event: WorldEvent): Json {
  const { issue } = event;
  switch (event.event) {
    case "issues":
      return issue ? { issue: payloadIssue(view, issue), ...extras(view, event) } : {};
    case "pull_request":
      return issue && isPull(issue)
        ? { number: issue.number, pull_request: fullPull(view, issue), ...pushed(event), ...extras(view, event) }
        : {};
    case "issue_comment":
      return {
        ...(issue ? { issue: payloadIssue(view, issue) } : {}),
        ...(event.comment ? { comment: commentView(view, event.comment) } : {}),
        ...changes(view, event),
      };
    case "pull_request_review":
      return {
        ...(event.review ? { review: payloadReview(view, event.review) } : {}),
        ...(issue && isPull(issue) ? { pull_request: pullSummary(view, issue) } : {}),
        ...changes(view, event),
      };
    case "pull_request_review_comment":
      return {
        ...(event.reviewComment ? { comment: reviewCommentView(view, event.reviewComment) } : {}),
        ...(issue && isPull(issue) ? { pull_request: pullSummary(view, issue) } : {}),
        ...changes(view, event),
      };
    case "label":
    case "milestone":
    case "repository":
      return extras(view, event);
    case "push":
      return pushPart(view, event);
    case "check_run":
      return event.checkRun ? { check_run: payloadRun(view, event.checkRun) } : {};
    case "check_suite":
      return event.checkSuite ? { check_suite: payloadSuite(view, event.checkSuite) } : {};
    case "status":
      return event.status ? payloadStatus(view, event.status) : {};
    case "create":
      return {
        ...refPart(event),
        master_branch: event.repository.defaultBranch,
        description: event.repository.description,
      };
    case "delete":
      return refPart(event);
    case "release":
      return event.release ? { release: releaseView(view, event.release), ...changes(view, event) } : {};
    case "deployment":
      // Null, as in the examples of what no workflow made.
      return event.deployment
        ? { deployment: deploymentView(view, event.deployment), workflow: null, workflow_run: null }
        : {};
    case "deployment_status":
      return event.deployment && event.deploymentStatus
        ? {
            deployment_status: deploymentStatusView(view, event.deploymentStatus),
            deployment: deploymentView(view, event.deployment),
          }
        : {};
    case "workflow_run":
      return event.workflowRun
        ? {
            workflow_run: workflowRunView(view, event.workflowRun),
            workflow: workflowView(view, event.workflowRun.workflow),
          }
        : {};
    case "workflow_job":
      return event.workflowJob ? { workflow_job: workflowJobView(view, event.workflowJob) } : {};
    case "pull_request_review_thread":
      return issue && isPull(issue)
        ? { thread: threadPart(view, issue, event.thread), pull_request: pullSummary(view, issue) }
        : {};
    case "sub_issues":
      return event.link ? linkPart(view, event, "parent_issue", "sub_issue") : {};
    case "issue_dependencies":
      return event.link ? linkPart(view, event, "blocking_issue", "blocked_issue") : {};
    case "member":
      return event.memberId === undefined ? {} : { member: simpleUser(view, event.memberId), ...changes(view, event) };
    case "team_add":
      return event.team ? { team: teamView(view, event.team, event.repository) } : {};
    case "public":
    case "ping":
      return {};
    default:
      return event.event satisfies never;
  }
}

function extras(view: View, event: WorldEvent): Json {
  return {
    ...(event.label ? { label: labelView(view, event.label) } : {}),
    ...(event.milestone ? { milestone: milestoneView(view, event.milestone) } : {}),
    ...(event.issueType ? { type: issueTypeView(view, event.issueType.id) } : {}),
    ...(event.assigneeId === undefined ? {} : { assignee: simpleUser(view, event.assigneeId) }),
    ...(event.requestedReviewerId === undefined
      ? {}
      : { requested_reviewer: simpleUser(view, event.requestedReviewerId) }),
    ...changes(view, event),
  };
}

function changes(view: View, event: WorldEvent): Json {
  const { transfer } = event;
  if (transfer?.to) {
    return {
      changes: {
        new_issue: payloadIssue(view, transfer.to),
        new_repository: repositorySummary(view, transfer.to.repository),
      },
    };
  }
  if (transfer?.from) {
    return {
      changes: {
        old_issue: payloadIssue(view, transfer.from),
        old_repository: repositorySummary(view, transfer.from.repository),
      },
    };
  }
  if (event.ownerFromId !== undefined) {
    const from = view.world.user(event.ownerFromId);
    const kind = from.type === "Organization" ? "organization" : "user";
    return { changes: { owner: { from: { [kind]: simpleUser(view, from.id) } } } };
  }
  return event.changes ? { changes: event.changes } : {};
}

function pushed(event: WorldEvent): Json {
  return event.push ? { before: event.push.before, after: event.push.after } : {};
}

/** Both issues, and the repository of the one that is not the event's own. */
function linkPart(view: View, { link, issue }: WorldEvent, from: string, to: string): Json {
  if (!link || !issue) return {};
  const other = issue === link.from ? link.to : link.from;
  return {
    [`${from}_id`]: link.from.id,
    [from]: payloadIssue(view, link.from),
    [`${to}_id`]: link.to.id,
    [to]: payloadIssue(view, link.to),
    [`${other === link.from ? from : to}_repo`]: repositorySummary(view, other.repository),
  };
}

/** Webhooks leave out who closed it. */
function payloadIssue(view: View, issue: Issue): Json {
  const { closed_by: _left, ...json } = issueView(view, issue);
  return json;
}

/** Lower-case state, and an `updated_at` that REST does not have. */
function payloadReview(view: View, review: Review): Json {
  return { ...reviewView(view, review), state: review.state.toLowerCase(), updated_at: time(review.updatedAt) };
}

/** Commits that one push tells of. */
const COMMITS_TOLD = 2_048;

function pushPart(view: View, event: WorldEvent): Json {
  const { push, repository } = event;
  if (!push) return {};
  const page = `${view.htmlUrl}/${view.world.fullName(repository)}`;
  const sender = view.world.user(event.senderId);
  const created = push.before === NO_SHA;
  const isTag = push.ref.startsWith("refs/tags/");
  const named = push.deleted ? undefined : commitOf(view.world, repository, tagged(view, event) ?? push.after);
  const commits = named && !isTag ? pushedCommits(view, repository, named, push) : [];
  return {
    ref: push.ref,
    before: push.before,
    after: push.after,
    pusher: { name: sender.login, email: `${sender.login}@users.noreply.github.com` },
    created,
    deleted: push.deleted ?? false,
    forced: push.forced ?? false,
    base_ref: null,
    compare: `${page}/compare/${push.before.slice(0, 12)}...${push.after.slice(0, 12)}`,
    commits,
    head_commit: named ? pushedCommit(view, repository, named, push.ref) : null,
  };
}

/** The commit behind a tag, annotated or not. */
function tagged(view: View, { push, repository }: WorldEvent): string | undefined {
  const name = /^refs\/tags\/(.+)$/.exec(push?.ref ?? "")?.[1];
  return name === undefined ? undefined : view.world.code.of(repository).tags.get(name)?.sha;
}

/** Oldest first. A new branch tells its last commit alone. */
function pushedCommits(
  view: View,
  repository: Repository,
  head: Commit,
  { before, ref }: NonNullable<WorldEvent["push"]>,
): Json[] {
  const found: Json[] = [];
  for (let at: Commit | undefined = head; at && at.sha !== before && found.length < COMMITS_TOLD; ) {
    found.push(pushedCommit(view, repository, at, ref));
    const parent: string | undefined = before === NO_SHA ? undefined : at.parents?.[0];
    at = parent === undefined ? undefined : view.world.code.of(repository).commits.get(parent);
  }
  return found.reverse();
}

/** A commit that is another branch's head was pushed before. */
function pushedCommit(view: View, repository: Repository, commit: Commit, ref: string): Json {
  const files = filesOfCommit(commit);
  const named = (...statuses: readonly string[]) =>
    files.filter(({ status }) => statuses.includes(status)).map(({ filename }) => filename);
  const { author, committer, ...rest } = headCommit(view, commit);
  return {
    ...rest,
    distinct: ![...repository.branches].some(([name, sha]) => `refs/heads/${name}` !== ref && sha === commit.sha),
    url: `${view.htmlUrl}/${view.world.fullName(repository)}/commit/${commit.sha}`,
    author: { ...author, ...username(view, commit.authorId) },
    committer: { ...committer, ...username(view, commit.committerId) },
    added: named("added"),
    removed: named("removed"),
    modified: named("modified", "renamed"),
  };
}

function username(view: View, userId: number | null): Json {
  const user = userId === null ? undefined : view.world.users.get(userId);
  return user ? { username: user.login } : {};
}

function refPart({ ref }: WorldEvent): Json {
  return { ref: ref?.name, ref_type: ref?.type, pusher_type: "user" };
}

function threadPart(view: View, issue: PullIssue, id: number | undefined): Json {
  const thread = reviewThreads(issue).find((one) => one.id === id);
  return thread
    ? { node_id: threadNodeId(thread), comments: thread.comments.map((one) => reviewCommentView(view, one)) }
    : {};
}

/** In pushes times of the repository are epoch seconds and the owner has a name. */
function pushRepository(view: View, repository: Repository): Json {
  const owner = view.world.user(repository.ownerId);
  return {
    ...repositorySummary(view, repository),
    created_at: repository.createdAt,
    pushed_at: repository.pushedAt,
    owner: { name: owner.login, email: owner.email, ...simpleUser(view, owner.id) },
  };
}

function organizationPart(view: View, ownerId: number): Json {
  const full = organization(view, view.world.user(ownerId));
  const keys = ["login", "id", "node_id", "url", "repos_url", "events_url", "hooks_url", "issues_url", "members_url"];
  keys.push("public_members_url", "avatar_url", "description");
  return Object.fromEntries(keys.map((key) => [key, full[key]]));
}
