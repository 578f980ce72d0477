import type { WorldEvent } from "../event.ts";
import type { Issue, Repository, Review } from "../records.ts";
import { payloadRun, payloadStatus, payloadSuite } from "../views/check.ts";
import { commentView, reviewCommentView, reviewView } from "../views/comment.ts";
import { issueView, labelView, milestoneView } from "../views/issue.ts";
import { fullPull, pullSummary } from "../views/pull.ts";
import { repositorySummary } from "../views/repository.ts";
import { organization, simpleUser } from "../views/user.ts";
import { type Json, time, type View } from "../views/view.ts";
import { isPull } from "../world.ts";

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

/** Webhooks leave out who closed it. */
function payloadIssue(view: View, issue: Issue): Json {
  const { closed_by: _left, ...json } = issueView(view, issue);
  return json;
}

/** Lower-case state, and an `updated_at` that REST does not have. */
function payloadReview(view: View, review: Review): Json {
  return { ...reviewView(view, review), state: review.state.toLowerCase(), updated_at: time(review.updatedAt) };
}

function pushPart(view: View, event: WorldEvent): Json {
  const { push, repository } = event;
  if (!push) return {};
  const page = `${view.htmlUrl}/${view.world.fullName(repository)}`;
  const sender = view.world.user(event.senderId);
  const created = /^0+$/.test(push.before);
  const commit = {
    id: push.after,
    tree_id: push.after,
    distinct: true,
    message: "Update",
    timestamp: time(view.world.now()),
    url: `${page}/commit/${push.after}`,
    author: {
      name: sender.name ?? sender.login,
      email: `${sender.login}@users.noreply.github.com`,
      username: sender.login,
    },
    committer: {
      name: sender.name ?? sender.login,
      email: `${sender.login}@users.noreply.github.com`,
      username: sender.login,
    },
    added: [],
    removed: [],
    modified: ["README.md"],
  };
  return {
    ref: push.ref,
    before: push.before,
    after: push.after,
    pusher: { name: sender.login, email: `${sender.login}@users.noreply.github.com` },
    created,
    deleted: push.deleted ?? false,
    forced: false,
    base_ref: null,
    compare: `${page}/compare/${push.before.slice(0, 12)}...${push.after.slice(0, 12)}`,
    commits: push.deleted ? [] : [commit],
    head_commit: push.deleted ? null : commit,
  };
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
