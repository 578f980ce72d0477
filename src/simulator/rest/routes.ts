import {
  getOrganization,
  getUser,
  getViewer,
  listNothing,
  listOrganizationRepositories,
  listUserRepositories,
  listViewerRepositories,
} from "./accounts.ts";
import * as apps from "./apps.ts";
import type { Answer, Call } from "./call.ts";
import { CODE_ROUTES } from "./code-routes.ts";
import * as comments from "./comments.ts";
import * as hooks from "./hooks.ts";
import * as issueEvents from "./issue-events.ts";
import { listIssues } from "./issue-list.ts";
import * as issues from "./issues.ts";
import { listIssuesAcross, listOrganizationIssues, listOwnIssues } from "./issues-across.ts";
import * as labels from "./labels.ts";
import { LINK_ROUTES } from "./links.ts";
import { getMeta, getRateLimit, getRoot, getVersions, getZen } from "./meta.ts";
import { PEOPLE_ROUTES } from "./people-routes.ts";
import * as pulls from "./pulls.ts";
import * as repositories from "./repositories.ts";
import * as reviews from "./reviews.ts";
import { inRepository, type Method, type Route } from "./router.ts";
import { getIssueSearch, getLabelSearch, getRepositorySearch } from "./search.ts";

function route(method: Method, pattern: string, docs: string, run: (call: Call) => Answer): Route {
  return { method, pattern, docs, run };
}

function forApps(method: Method, pattern: string, docs: string, run: (call: Call) => Answer): Route {
  return { ...route(method, pattern, `apps/${docs}`, run), forApps: true };
}

const CONTENT = { content: true };

export const ROUTES: readonly Route[] = [
  route("GET", "/", "meta/meta#github-api-root", getRoot),
  route("GET", "/zen", "meta/meta#get-the-zen-of-github", getZen),
  route("GET", "/meta", "meta/meta#get-apiname-meta-information", getMeta),
  route("GET", "/versions", "meta/meta#get-all-api-versions", getVersions),
  route("GET", "/rate_limit", "rate-limit/rate-limit#get-rate-limit-status-for-the-authenticated-user", getRateLimit),
  route("GET", "/search/issues", "search/search#search-issues-and-pull-requests", getIssueSearch),
  route("GET", "/search/repositories", "search/search#search-repositories", getRepositorySearch),
  route("GET", "/search/labels", "search/search#search-labels", getLabelSearch),
  route("GET", "/issues", "issues/issues#list-issues-assigned-to-the-authenticated-user", listIssuesAcross),
  route(
    "GET",
    "/user/issues",
    "issues/issues#list-user-account-issues-assigned-to-the-authenticated-user",
    listOwnIssues,
  ),
  route("GET", "/user", "users/users#get-the-authenticated-user", getViewer),
  route("GET", "/user/repos", "repos/repos#list-repositories-for-the-authenticated-user", listViewerRepositories),
  route(
    "POST",
    "/user/repos",
    "repos/repos#create-a-repository-for-the-authenticated-user",
    repositories.postRepository,
  ),
  route("GET", "/user/:id", "users/users#get-a-user-using-their-id", getUser),
  route("GET", "/user/:id/repos", "repos/repos#list-repositories-for-a-user", listUserRepositories),
  route("GET", "/users/:login", "users/users#get-a-user", getUser),
  route("GET", "/notifications", "activity/notifications#list-notifications-for-the-authenticated-user", listNothing),
  route(
    "GET",
    "/users/:login/received_events",
    "activity/events#list-events-received-by-the-authenticated-user",
    listNothing,
  ),
  route("GET", "/users/:login/repos", "repos/repos#list-repositories-for-a-user", listUserRepositories),
  route("GET", "/orgs/:login", "orgs/orgs#get-an-organization", getOrganization),
  route("GET", "/organizations/:id", "orgs/orgs#get-an-organization", getOrganization),
  ...["/orgs/:login/issues", "/organizations/:id/issues"].map((path) =>
    route(
      "GET",
      path,
      "issues/issues#list-organization-issues-assigned-to-the-authenticated-user",
      listOrganizationIssues,
    ),
  ),
  route("GET", "/orgs/:login/repos", "repos/repos#list-organization-repositories", listOrganizationRepositories),
  route("GET", "/organizations/:id/repos", "repos/repos#list-organization-repositories", listOrganizationRepositories),
  route("POST", "/orgs/:login/repos", "repos/repos#create-an-organization-repository", repositories.postRepository),

  route(
    "POST",
    "/app-manifests/:code/conversions",
    "apps/apps#create-a-github-app-from-a-manifest",
    apps.postConversion,
  ),
  forApps("GET", "/app", "apps#get-the-authenticated-app", apps.getApp),
  forApps("GET", "/app/installations", "apps#list-installations-for-the-authenticated-app", apps.listInstallations),
  forApps("GET", "/app/installations/:id", "apps#get-an-installation-for-the-authenticated-app", apps.getInstallation),
  forApps(
    "POST",
    "/app/installations/:id/access_tokens",
    "apps#create-an-installation-access-token-for-an-app",
    apps.postAccessToken,
  ),
  forApps(
    "GET",
    "/orgs/:login/installation",
    "apps#get-an-organization-installation-for-the-authenticated-app",
    apps.getOrganizationInstallation,
  ),
  forApps(
    "GET",
    "/users/:login/installation",
    "apps#get-a-user-installation-for-the-authenticated-app",
    apps.getUserInstallation,
  ),
  inRepository(
    "GET",
    "/installation",
    "apps/apps#get-a-repository-installation-for-the-authenticated-app",
    apps.getRepositoryInstallation,
    { forApps: true },
  ),
  forApps("GET", "/app/hook/config", "webhooks#get-a-webhook-configuration-for-an-app", apps.getHookConfig),
  forApps("PATCH", "/app/hook/config", "webhooks#update-a-webhook-configuration-for-an-app", apps.patchHookConfig),
  forApps("GET", "/app/hook/deliveries", "webhooks#list-deliveries-for-an-app-webhook", apps.listDeliveries),
  forApps("GET", "/app/hook/deliveries/:delivery", "webhooks#get-a-delivery-for-an-app-webhook", apps.getDelivery),
  forApps(
    "POST",
    "/app/hook/deliveries/:delivery/attempts",
    "webhooks#redeliver-a-delivery-for-an-app-webhook",
    apps.postAttempt,
  ),
  route(
    "GET",
    "/installation/repositories",
    "apps/installations#list-repositories-accessible-to-the-app-installation",
    apps.listInstallationRepositories,
  ),
  route(
    "DELETE",
    "/installation/token",
    "apps/installations#revoke-an-installation-access-token",
    apps.deleteInstallationToken,
  ),

  ...PEOPLE_ROUTES,
  inRepository("GET", "", "repos/repos#get-a-repository", repositories.getRepository),
  inRepository("PATCH", "", "repos/repos#update-a-repository", repositories.patchRepository),
  inRepository("DELETE", "", "repos/repos#delete-a-repository", repositories.removeRepository),
  inRepository("GET", "/topics", "repos/repos#get-all-repository-topics", repositories.getTopics),
  inRepository("PUT", "/topics", "repos/repos#replace-all-repository-topics", repositories.putTopics),
  ...CODE_ROUTES,
  inRepository("GET", "/issues", "issues/issues#list-repository-issues", listIssues),
  inRepository("POST", "/issues", "issues/issues#create-an-issue", issues.postIssue, {
    content: true,
    deprecated: true,
  }),
  inRepository(
    "GET",
    "/issues/comments",
    "issues/comments#list-issue-comments-for-a-repository",
    comments.listComments,
  ),
  inRepository("GET", "/issues/comments/:id", "issues/comments#get-an-issue-comment", comments.getComment),
  inRepository("PATCH", "/issues/comments/:id", "issues/comments#update-an-issue-comment", comments.patchComment),
  inRepository("DELETE", "/issues/comments/:id", "issues/comments#delete-an-issue-comment", comments.removeComment),
  inRepository(
    "GET",
    "/issues/events",
    "issues/events#list-issue-events-for-a-repository",
    issueEvents.listRepositoryEvents,
  ),
  inRepository("GET", "/issues/events/:id", "issues/events#get-an-issue-event", issueEvents.getIssueEvent),
  inRepository("GET", "/issues/:number/events", "issues/events#list-issue-events", issueEvents.listIssueEvents),
  inRepository("GET", "/issues/:number", "issues/issues#get-an-issue", issues.getIssue),
  inRepository("PATCH", "/issues/:number", "issues/issues#update-an-issue", issues.patchIssue, { deprecated: true }),
  inRepository("GET", "/issues/:number/comments", "issues/comments#list-issue-comments", comments.listIssueComments),
  inRepository(
    "POST",
    "/issues/:number/comments",
    "issues/comments#create-an-issue-comment",
    comments.postComment,
    CONTENT,
  ),
  inRepository("GET", "/issues/:number/labels", "issues/labels#list-labels-for-an-issue", issues.listIssueLabels),
  inRepository("POST", "/issues/:number/labels", "issues/labels#add-labels-to-an-issue", issues.postIssueLabels),
  inRepository("PUT", "/issues/:number/labels", "issues/labels#set-labels-for-an-issue", issues.putIssueLabels),
  inRepository(
    "DELETE",
    "/issues/:number/labels",
    "issues/labels#remove-all-labels-from-an-issue",
    issues.deleteIssueLabels,
  ),
  inRepository(
    "DELETE",
    "/issues/:number/labels/*name",
    "issues/labels#remove-a-label-from-an-issue",
    issues.deleteIssueLabel,
  ),
  inRepository("POST", "/issues/:number/assignees", "issues/assignees#add-assignees-to-an-issue", issues.postAssignees),
  inRepository(
    "DELETE",
    "/issues/:number/assignees",
    "issues/assignees#remove-assignees-from-an-issue",
    issues.deleteAssignees,
  ),
  inRepository("PUT", "/issues/:number/lock", "issues/issues#lock-an-issue", issues.putLock),
  inRepository("DELETE", "/issues/:number/lock", "issues/issues#unlock-an-issue", issues.deleteLock),

  ...LINK_ROUTES,
  inRepository("GET", "/pulls", "pulls/pulls#list-pull-requests", pulls.listPulls),
  inRepository("POST", "/pulls", "pulls/pulls#create-a-pull-request", pulls.postPull, CONTENT),
  inRepository(
    "GET",
    "/pulls/comments",
    "pulls/comments#list-review-comments-in-a-repository",
    comments.listReviewComments,
  ),
  inRepository(
    "GET",
    "/pulls/comments/:id",
    "pulls/comments#get-a-review-comment-for-a-pull-request",
    comments.getReviewComment,
  ),
  inRepository(
    "PATCH",
    "/pulls/comments/:id",
    "pulls/comments#update-a-review-comment-for-a-pull-request",
    comments.patchReviewComment,
  ),
  inRepository(
    "DELETE",
    "/pulls/comments/:id",
    "pulls/comments#delete-a-review-comment-for-a-pull-request",
    comments.removeReviewComment,
  ),
  inRepository("GET", "/pulls/:number", "pulls/pulls#get-a-pull-request", pulls.getPull),
  inRepository("PATCH", "/pulls/:number", "pulls/pulls#update-a-pull-request", pulls.patchPull),
  inRepository("GET", "/pulls/:number/merge", "pulls/pulls#check-if-a-pull-request-has-been-merged", pulls.getMerge),
  inRepository("PUT", "/pulls/:number/merge", "pulls/pulls#merge-a-pull-request", pulls.putMerge),
  inRepository(
    "GET",
    "/pulls/:number/comments",
    "pulls/comments#list-review-comments-on-a-pull-request",
    comments.listPullComments,
  ),
  inRepository(
    "POST",
    "/pulls/:number/comments",
    "pulls/comments#create-a-review-comment-for-a-pull-request",
    comments.postReviewComment,
    CONTENT,
  ),
  inRepository(
    "POST",
    "/pulls/:number/comments/:id/replies",
    "pulls/comments#create-a-reply-for-a-review-comment",
    comments.postReply,
    CONTENT,
  ),
  inRepository(
    "GET",
    "/pulls/:number/requested_reviewers",
    "pulls/review-requests#get-all-requested-reviewers-for-a-pull-request",
    pulls.getRequestedReviewers,
  ),
  inRepository(
    "POST",
    "/pulls/:number/requested_reviewers",
    "pulls/review-requests#request-reviewers-for-a-pull-request",
    pulls.postRequestedReviewers,
    CONTENT,
  ),
  inRepository(
    "DELETE",
    "/pulls/:number/requested_reviewers",
    "pulls/review-requests#remove-requested-reviewers-from-a-pull-request",
    pulls.deleteRequestedReviewers,
  ),
  inRepository("GET", "/pulls/:number/reviews", "pulls/reviews#list-reviews-for-a-pull-request", reviews.listReviews),
  inRepository(
    "POST",
    "/pulls/:number/reviews",
    "pulls/reviews#create-a-review-for-a-pull-request",
    reviews.postReview,
    CONTENT,
  ),
  inRepository(
    "GET",
    "/pulls/:number/reviews/:review",
    "pulls/reviews#get-a-review-for-a-pull-request",
    reviews.getReview,
  ),
  inRepository(
    "PUT",
    "/pulls/:number/reviews/:review",
    "pulls/reviews#update-a-review-for-a-pull-request",
    reviews.putReview,
  ),
  inRepository(
    "DELETE",
    "/pulls/:number/reviews/:review",
    "pulls/reviews#delete-a-pending-review-for-a-pull-request",
    reviews.removeReview,
  ),
  inRepository(
    "GET",
    "/pulls/:number/reviews/:review/comments",
    "pulls/reviews#list-comments-for-a-pull-request-review",
    comments.listReviewsComments,
  ),
  inRepository(
    "PUT",
    "/pulls/:number/reviews/:review/dismissals",
    "pulls/reviews#dismiss-a-review-for-a-pull-request",
    reviews.putDismissal,
  ),
  inRepository(
    "POST",
    "/pulls/:number/reviews/:review/events",
    "pulls/reviews#submit-a-review-for-a-pull-request",
    reviews.submitPending,
    CONTENT,
  ),

  inRepository("GET", "/labels", "issues/labels#list-labels-for-a-repository", labels.listLabels),
  inRepository("POST", "/labels", "issues/labels#create-a-label", labels.postLabel),
  inRepository("GET", "/labels/*name", "issues/labels#get-a-label", labels.getLabel),
  inRepository("PATCH", "/labels/*name", "issues/labels#update-a-label", labels.patchLabel),
  inRepository("DELETE", "/labels/*name", "issues/labels#delete-a-label", labels.removeLabel),
  inRepository("GET", "/milestones", "issues/milestones#list-milestones", labels.listMilestones),
  inRepository("POST", "/milestones", "issues/milestones#create-a-milestone", labels.postMilestone),
  inRepository("GET", "/milestones/:number", "issues/milestones#get-a-milestone", labels.getMilestone),
  inRepository("PATCH", "/milestones/:number", "issues/milestones#update-a-milestone", labels.patchMilestone),
  inRepository("DELETE", "/milestones/:number", "issues/milestones#delete-a-milestone", labels.removeMilestone),

  inRepository("GET", "/hooks", "repos/webhooks#list-repository-webhooks", hooks.listHooks),
  inRepository("POST", "/hooks", "repos/webhooks#create-a-repository-webhook", hooks.postHook),
  inRepository("GET", "/hooks/:id", "repos/webhooks#get-a-repository-webhook", hooks.getHook),
  inRepository("PATCH", "/hooks/:id", "repos/webhooks#update-a-repository-webhook", hooks.patchHook),
  inRepository("DELETE", "/hooks/:id", "repos/webhooks#delete-a-repository-webhook", hooks.deleteHook),
  inRepository(
    "GET",
    "/hooks/:id/config",
    "repos/webhooks#get-a-webhook-configuration-for-a-repository",
    hooks.getHookConfig,
  ),
  inRepository(
    "PATCH",
    "/hooks/:id/config",
    "repos/webhooks#update-a-webhook-configuration-for-a-repository",
    hooks.patchHookConfig,
  ),
  inRepository("POST", "/hooks/:id/pings", "repos/webhooks#ping-a-repository-webhook", hooks.pingHook),
  inRepository("POST", "/hooks/:id/tests", "repos/webhooks#test-the-push-repository-webhook", hooks.testHook),
  inRepository(
    "GET",
    "/hooks/:id/deliveries",
    "repos/webhooks#list-deliveries-for-a-repository-webhook",
    hooks.listDeliveries,
  ),
  inRepository(
    "GET",
    "/hooks/:id/deliveries/:delivery",
    "repos/webhooks#get-a-delivery-for-a-repository-webhook",
    hooks.getDelivery,
  ),
  inRepository(
    "POST",
    "/hooks/:id/deliveries/:delivery/attempts",
    "repos/webhooks#redeliver-a-delivery-for-a-repository-webhook",
    hooks.postAttempt,
  ),
];
