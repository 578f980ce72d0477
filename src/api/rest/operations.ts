import type { Answer, Call, RepositoryCall } from "../call.ts";
import { type Operation, Operations } from "../operation.ts";
import * as accounts from "./accounts.ts";
import { listNotifications, listReceivedEvents } from "./activity.ts";
import { checkAssignee, listAssignees } from "./assignees.ts";
import * as comments from "./comments.ts";
import { getIssue, listIssueLabels, listIssues } from "./issues.ts";
import { listIssuesAcross, listOrganizationIssues, listOwnIssues } from "./issues-across.ts";
import { getLabel, getMilestone, listLabels, listMilestoneLabels, listMilestones } from "./labels.ts";
import { checkMerged, getPull, getRequestedReviewers, listPulls } from "./pulls.ts";
import { getRepository, getTopics, getViewer, listViewerRepositories } from "./repositories.ts";
import { getMeta, getRateLimit, getRoot, getVersions, getZen } from "./root.ts";
import { getSearchedIssues, getSearchedLabels, getSearchedRepositories } from "./search.ts";
import { addWrites } from "./writes/write-operations.ts";

const DOCS = "https://docs.github.com/rest";

/** Every REST operation that we serve. The last part is the address of its page in the service's documentation. */
export function restOperations(): Operations {
  const operations = new Operations();
  const service = (method: "GET", path: string, run: (call: Call) => Promise<Answer>, docs: string, isFree = false) =>
    operations.add(path, { method, docs: `${DOCS}/${docs}`, isFree, run: { of: "service", with: run } });
  const repository = (
    method: "GET",
    path: string,
    run: (call: RepositoryCall) => Promise<Answer>,
    docs: string,
    more: Pick<Operation, "learnsStanding"> = {},
  ) =>
    operations.add(path, {
      method,
      docs: `${DOCS}/${docs}`,
      isFree: false,
      ...more,
      run: { of: "repository", with: run },
    });

  service("GET", "/", getRoot, "meta/meta#github-api-root");
  service("GET", "/meta", getMeta, "meta/meta#get-github-meta-information");
  service("GET", "/versions", getVersions, "meta/meta#get-all-api-versions");
  service("GET", "/zen", getZen, "meta/meta#get-the-zen-of-github");
  service(
    "GET",
    "/rate_limit",
    getRateLimit,
    "rate-limit/rate-limit#get-rate-limit-status-for-the-authenticated-user",
    true,
  );
  const search = (path: string, run: (call: Call) => Promise<Answer>, docs: string) =>
    operations.add(path, {
      method: "GET",
      docs: `${DOCS}/search/search#${docs}`,
      isFree: false,
      bucket: "search",
      run: { of: "service", with: run },
    });
  search("/search/issues", getSearchedIssues, "search-issues-and-pull-requests");
  search("/search/repositories", getSearchedRepositories, "search-repositories");
  search("/search/labels", getSearchedLabels, "search-labels");
  service("GET", "/user", getViewer, "users/users#get-the-authenticated-user");
  service("GET", "/user/repos", listViewerRepositories, "repos/repos#list-repositories-for-the-authenticated-user");
  service("GET", "/user/:id", accounts.getUser, "users/users#get-a-user-using-their-id");
  service("GET", "/user/:id/repos", accounts.listUserRepositories, "repos/repos#list-repositories-for-a-user");
  service("GET", "/users/:login", accounts.getUser, "users/users#get-a-user");
  service(
    "GET",
    "/users/:login/received_events",
    listReceivedEvents,
    "activity/events#list-events-received-by-the-authenticated-user",
  );
  service(
    "GET",
    "/notifications",
    listNotifications,
    "activity/notifications#list-notifications-for-the-authenticated-user",
  );
  service("GET", "/users/:login/repos", accounts.listUserRepositories, "repos/repos#list-repositories-for-a-user");
  for (const named of ["/orgs/:login", "/organizations/:id"]) {
    service("GET", named, accounts.getOrganization, "orgs/orgs#get-an-organization");
    service(
      "GET",
      `${named}/repos`,
      accounts.listOrganizationRepositories,
      "repos/repos#list-organization-repositories",
    );
    service(
      "GET",
      `${named}/issues`,
      listOrganizationIssues,
      "issues/issues#list-organization-issues-assigned-to-the-authenticated-user",
    );
  }
  service("GET", "/issues", listIssuesAcross, "issues/issues#list-issues-assigned-to-the-authenticated-user");
  service(
    "GET",
    "/user/issues",
    listOwnIssues,
    "issues/issues#list-user-account-issues-assigned-to-the-authenticated-user",
  );

  repository("GET", "/", getRepository, "repos/repos#get-a-repository");
  repository("GET", "/issues", listIssues, "issues/issues#list-repository-issues");
  repository(
    "GET",
    "/issues/comments",
    comments.listRepositoryComments,
    "issues/comments#list-issue-comments-for-a-repository",
  );
  repository("GET", "/issues/comments/:id", comments.getIssueComment, "issues/comments#get-an-issue-comment");
  repository("GET", "/issues/:number", getIssue, "issues/issues#get-an-issue", { learnsStanding: true });
  repository("GET", "/issues/:number/comments", comments.listIssueComments, "issues/comments#list-issue-comments");
  repository("GET", "/issues/:number/labels", listIssueLabels, "issues/labels#list-labels-for-an-issue");
  repository("GET", "/pulls", listPulls, "pulls/pulls#list-pull-requests");
  repository(
    "GET",
    "/pulls/comments",
    comments.listRepositoryReviewComments,
    "pulls/comments#list-review-comments-in-a-repository",
  );
  repository(
    "GET",
    "/pulls/comments/:id",
    comments.getReviewComment,
    "pulls/comments#get-a-review-comment-for-a-pull-request",
  );
  repository("GET", "/pulls/:number", getPull, "pulls/pulls#get-a-pull-request");
  repository(
    "GET",
    "/pulls/:number/comments",
    comments.listPullReviewComments,
    "pulls/comments#list-review-comments-on-a-pull-request",
  );
  repository("GET", "/pulls/:number/reviews", comments.listReviews, "pulls/reviews#list-reviews-for-a-pull-request");
  repository("GET", "/pulls/:number/reviews/:id", comments.getReview, "pulls/reviews#get-a-review-for-a-pull-request");
  repository(
    "GET",
    "/pulls/:number/reviews/:id/comments",
    comments.listReviewComments,
    "pulls/reviews#list-comments-for-a-pull-request-review",
  );
  repository("GET", "/pulls/:number/merge", checkMerged, "pulls/pulls#check-if-a-pull-request-has-been-merged");
  repository(
    "GET",
    "/pulls/:number/requested_reviewers",
    getRequestedReviewers,
    "pulls/review-requests#get-all-requested-reviewers-for-a-pull-request",
  );
  repository("GET", "/labels", listLabels, "issues/labels#list-labels-for-a-repository");
  repository("GET", "/labels/:name", getLabel, "issues/labels#get-a-label");
  repository("GET", "/milestones", listMilestones, "issues/milestones#list-milestones");
  repository("GET", "/milestones/:number", getMilestone, "issues/milestones#get-a-milestone");
  repository(
    "GET",
    "/milestones/:number/labels",
    listMilestoneLabels,
    "issues/labels#list-labels-for-issues-in-a-milestone",
  );
  repository("GET", "/assignees", listAssignees, "issues/assignees#list-assignees");
  repository("GET", "/assignees/:assignee", checkAssignee, "issues/assignees#check-if-a-user-can-be-assigned");
  repository("GET", "/topics", getTopics, "repos/repos#get-all-repository-topics");
  addWrites(operations);
  return operations;
}
