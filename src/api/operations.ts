import { MIRROR_PARTS, type MirrorPart } from "../config/parts.ts";
import type { Exchange } from "../http/exchange.ts";
import type { Params, Route } from "../http/router.ts";
import type { Right } from "../kinds/contract/rights.ts";
import type { Answer, Call, RepositoryCall } from "./call/call.ts";
import type { Match, Operation, RestDoor, ServedOperation } from "./call/operation.ts";
import { REST_DOCS } from "./dialect/fault.ts";
import { ENTERPRISE_PREFIX, pathInApi } from "./dialect/protocol.ts";
import { getOrganization, getUser, listOrganizationRepositories, listUserRepositories } from "./rest/accounts.ts";
import * as actions from "./rest/actions.ts";
import { listNotifications, listReceivedEvents } from "./rest/activity.ts";
import { checkAssignee, listAssignees } from "./rest/assignees.ts";
import * as checks from "./rest/checks.ts";
import * as comments from "./rest/comments.ts";
import * as commits from "./rest/commits.ts";
import * as deployments from "./rest/deployments.ts";
import { HOOK_OPERATIONS } from "./rest/hooks/hook-operations.ts";
import * as issueEvents from "./rest/issue-events.ts";
import { getIssue, listIssueLabels, listIssues } from "./rest/issues.ts";
import { listIssuesAcross, listOrganizationIssues, listOwnIssues } from "./rest/issues-across.ts";
import { getLabel, getMilestone, listLabels, listMilestoneLabels, listMilestones } from "./rest/labels.ts";
import { numberParam } from "./rest/page.ts";
import * as people from "./rest/people.ts";
import { listPullCommits, listPullFiles } from "./rest/pull-lists.ts";
import { checkMerged, getPull, getRequestedReviewers, listPulls } from "./rest/pulls.ts";
import * as refs from "./rest/refs.ts";
import * as releases from "./rest/releases.ts";
import { getRepository, getTopics, getViewer, listViewerRepositories } from "./rest/repositories.ts";
import { getMeta, getRateLimit, getRoot, getVersions, getZen } from "./rest/root.ts";
import {
  getSearchedIssues,
  getSearchedLabels,
  getSearchedRepositories,
  isPartOfIssues,
  isPartOfRepositories,
} from "./rest/search.ts";
import { WRITE_OPERATIONS } from "./rest/write-operations.ts";

const SEARCH: Pick<Operation, "bucket"> = { bucket: "search" };

/** The mirror has a part of these lists at most: of the repositories of an account, or of their issues. */
const IS_PART: Pick<Operation, "isPart"> = { isPart: () => true };

/** What callers are shown of people rests on upstream's word about each of them. */
const IS_JUDGED: Pick<Operation, "isJudged"> = { isJudged: true };

type PartOperation = readonly [string, Right, (call: RepositoryCall) => Promise<Answer>, string];

/** The operations that are served where a part is mirrored. */
const OF_PARTS: Readonly<Partial<Record<MirrorPart, readonly PartOperation[]>>> = {
  actions: [
    ["/actions/workflows", "actions", actions.listWorkflows, "actions/workflows#list-repository-workflows"],
    ["/actions/workflows/:workflow", "actions", actions.getWorkflow, "actions/workflows#get-a-workflow"],
    [
      "/actions/workflows/:workflow/runs",
      "actions",
      actions.listRunsOfWorkflow,
      "actions/workflow-runs#list-workflow-runs-for-a-workflow",
    ],
    ["/actions/runs", "actions", actions.listWorkflowRuns, "actions/workflow-runs#list-workflow-runs-for-a-repository"],
    ["/actions/runs/:id", "actions", actions.getWorkflowRun, "actions/workflow-runs#get-a-workflow-run"],
    ["/actions/runs/:id/jobs", "actions", actions.listJobs, "actions/workflow-jobs#list-jobs-for-a-workflow-run"],
    ["/actions/jobs/:id", "actions", actions.getJob, "actions/workflow-jobs#get-a-job-for-a-workflow-run"],
  ],
  checks: [
    ["/commits/:ref/check-runs", "checks", checks.listCheckRuns, "checks/runs#list-check-runs-for-a-git-reference"],
    [
      "/commits/:ref/check-suites",
      "checks",
      checks.listCheckSuites,
      "checks/suites#list-check-suites-for-a-git-reference",
    ],
    [
      "/commits/:ref/status",
      "statuses",
      checks.getCombinedStatus,
      "commits/statuses#get-the-combined-status-for-a-specific-reference",
    ],
    [
      "/commits/:ref/statuses",
      "statuses",
      checks.listStatuses,
      "commits/statuses#list-commit-statuses-for-a-reference",
    ],
    ["/check-runs/:id", "checks", checks.getCheckRun, "checks/runs#get-a-check-run"],
    ["/check-suites/:id", "checks", checks.getCheckSuite, "checks/suites#get-a-check-suite"],
    ["/check-suites/:id/check-runs", "checks", checks.listSuiteRuns, "checks/runs#list-check-runs-in-a-check-suite"],
  ],
  commits: [
    ["/pulls/:number/commits", "pulls", listPullCommits, "pulls/pulls#list-commits-on-a-pull-request"],
    ["/pulls/:number/files", "pulls", listPullFiles, "pulls/pulls#list-pull-requests-files"],
    ["/commits", "contents", commits.listCommits, "commits/commits#list-commits"],
    ["/commits/:ref", "contents", commits.getCommit, "commits/commits#get-a-commit"],
    [
      "/commits/:ref/pulls",
      "pulls",
      commits.listPullsOfCommit,
      "commits/commits#list-pull-requests-associated-with-a-commit",
    ],
  ],
  deployments: [
    ["/deployments", "deployments", deployments.listDeployments, "deployments/deployments#list-deployments"],
    ["/deployments/:id", "deployments", deployments.getDeployment, "deployments/deployments#get-a-deployment"],
    [
      "/deployments/:id/statuses",
      "deployments",
      deployments.listDeploymentStatuses,
      "deployments/statuses#list-deployment-statuses",
    ],
    [
      "/deployments/:id/statuses/:status",
      "deployments",
      deployments.getDeploymentStatus,
      "deployments/statuses#get-a-deployment-status",
    ],
  ],
  "issue-events": [
    [
      "/issues/events",
      "issues or pulls",
      issueEvents.listRepositoryEvents,
      "issues/events#list-issue-events-for-a-repository",
    ],
    ["/issues/events/:id", "issues or pulls", issueEvents.getIssueEvent, "issues/events#get-an-issue-event"],
    ["/issues/:number/events", "issues or pulls", issueEvents.listIssueEvents, "issues/events#list-issue-events"],
  ],
  people: [
    [
      "/collaborators",
      "metadata",
      people.listCollaborators,
      "collaborators/collaborators#list-repository-collaborators",
    ],
    [
      "/collaborators/:username",
      "metadata",
      people.checkCollaborator,
      "collaborators/collaborators#check-if-a-user-is-a-repository-collaborator",
    ],
    [
      "/collaborators/:username/permission",
      "metadata",
      people.getPermission,
      "collaborators/collaborators#get-repository-permissions-for-a-user",
    ],
    ["/teams", "metadata", people.listRepositoryTeams, "repos/repos#list-repository-teams"],
  ],
  releases: [
    ["/releases", "contents", releases.listReleases, "releases/releases#list-releases"],
    ["/releases/latest", "contents", releases.getLatestRelease, "releases/releases#get-the-latest-release"],
    ["/releases/tags/:tag", "contents", releases.getReleaseByTag, "releases/releases#get-a-release-by-tag-name"],
    ["/releases/:id", "contents", releases.getRelease, "releases/releases#get-a-release"],
  ],
  refs: [
    ["/branches", "contents", refs.listBranches, "branches/branches#list-branches"],
    ["/branches/:branch", "contents", refs.getBranch, "branches/branches#get-a-branch"],
    ["/tags", "contents", refs.listTags, "repos/repos#list-repository-tags"],
    ["/git/ref/:ref", "contents", refs.getRef, "git/refs#get-a-reference"],
    ["/git/matching-refs/:ref", "contents", refs.listMatchingRefs, "git/refs#list-matching-references"],
  ],
};

/** Reads of an organisation's people. It is named by its login or its id, and a team by its slug or its id. */
const PEOPLE_OF_ORGANIZATIONS: readonly ServedOperation[] = [
  ...["/orgs/:login", "/organizations/:id"].flatMap((named) => [
    service(`${named}/members`, people.listMembers, "orgs/members#list-organization-members"),
    service(`${named}/members/:username`, people.checkMember, "orgs/members#check-organization-membership-for-a-user"),
    service(`${named}/public_members`, people.listPublicMembers, "orgs/members#list-public-organization-members"),
    service(
      `${named}/public_members/:username`,
      people.checkPublicMember,
      "orgs/members#check-public-organization-membership-for-a-user",
    ),
    service(`${named}/teams`, people.listTeams, "teams/teams#list-teams"),
  ]),
  ...["/orgs/:login/teams/:slug", "/organizations/:id/team/:team"].flatMap((named) => [
    service(named, people.getTeam, "teams/teams#get-a-team-by-name"),
    service(`${named}/members`, people.listTeamMembers, "teams/members#list-team-members"),
    service(`${named}/memberships/:username`, people.getTeamMembership, "teams/members#get-team-membership-for-a-user"),
  ]),
];

/** Every read of a part that is only mirrored on request. */
export const PART_OPERATIONS: readonly ServedOperation[] = [
  ...MIRROR_PARTS.flatMap((part) =>
    (OF_PARTS[part] ?? []).map(([path, takes, run, docs]) => ({
      ...readBelow(path, takes, run, docs, { part, ...(part === "people" && IS_JUDGED) }),
      // Names of branches and tags may have slashes.
      ...(part === "refs" && path.includes(":") && { takesRest: true }),
    })),
  ),
  ...PEOPLE_OF_ORGANIZATIONS,
];

/**
 * Every REST operation on what is mirrored. The function that answers is followed by the operation's page in the
 * service's documentation. Below a repository, the right that the operation takes comes before the function (GitHub
 * docs, "Permissions required for fine-grained personal access tokens").
 */
export const MIRROR_OPERATIONS: readonly ServedOperation[] = [
  service("/", getRoot, "meta/meta#github-api-root"),
  service("/meta", getMeta, "meta/meta#get-github-meta-information"),
  service("/versions", getVersions, "meta/meta#get-all-api-versions"),
  service("/zen", getZen, "meta/meta#get-the-zen-of-github"),
  service("/rate_limit", getRateLimit, "rate-limit/rate-limit#get-rate-limit-status-for-the-authenticated-user", {
    isFree: true,
  }),
  service("/search/issues", getSearchedIssues, "search/search#search-issues-and-pull-requests", {
    ...SEARCH,
    isPart: isPartOfIssues,
  }),
  service("/search/repositories", getSearchedRepositories, "search/search#search-repositories", {
    ...SEARCH,
    isPart: isPartOfRepositories,
  }),
  service("/search/labels", getSearchedLabels, "search/search#search-labels", SEARCH),
  service("/user", getViewer, "users/users#get-the-authenticated-user"),
  service("/user/repos", listViewerRepositories, "repos/repos#list-repositories-for-the-authenticated-user", IS_PART),
  service("/user/:id", getUser, "users/users#get-a-user-using-their-id"),
  service("/user/:id/repos", listUserRepositories, "repos/repos#list-repositories-for-a-user", IS_PART),
  service("/users/:login", getUser, "users/users#get-a-user"),
  service(
    "/users/:login/received_events",
    listReceivedEvents,
    "activity/events#list-events-received-by-the-authenticated-user",
  ),
  service("/notifications", listNotifications, "activity/notifications#list-notifications-for-the-authenticated-user"),
  service("/users/:login/repos", listUserRepositories, "repos/repos#list-repositories-for-a-user", IS_PART),
  ...["/orgs/:login", "/organizations/:id"].flatMap((named) => [
    service(named, getOrganization, "orgs/orgs#get-an-organization"),
    service(`${named}/repos`, listOrganizationRepositories, "repos/repos#list-organization-repositories", IS_PART),
    service(
      `${named}/issues`,
      listOrganizationIssues,
      "issues/issues#list-organization-issues-assigned-to-the-authenticated-user",

      IS_PART,
    ),
  ]),
  service("/issues", listIssuesAcross, "issues/issues#list-issues-assigned-to-the-authenticated-user", IS_PART),
  service(
    "/user/issues",
    listOwnIssues,
    "issues/issues#list-user-account-issues-assigned-to-the-authenticated-user",
    IS_PART,
  ),

  readBelow("/", "metadata", getRepository, "repos/repos#get-a-repository", { showsRights: true }),
  readBelow("/issues", "issues", listIssues, "issues/issues#list-repository-issues"),
  readBelow(
    "/issues/comments",
    "issues or pulls",
    comments.listRepositoryComments,
    "issues/comments#list-issue-comments-for-a-repository",
  ),
  readBelow(
    "/issues/comments/:id",
    "issues or pulls",
    comments.getIssueComment,
    "issues/comments#get-an-issue-comment",
  ),
  readBelow("/issues/:number", "issues", getIssue, "issues/issues#get-an-issue"),
  readBelow(
    "/issues/:number/comments",
    "issues or pulls",
    comments.listIssueComments,
    "issues/comments#list-issue-comments",
  ),
  readBelow("/issues/:number/labels", "issues or pulls", listIssueLabels, "issues/labels#list-labels-for-an-issue"),
  readBelow("/pulls", "pulls", listPulls, "pulls/pulls#list-pull-requests"),
  readBelow(
    "/pulls/comments",
    "pulls",
    comments.listRepositoryReviewComments,
    "pulls/comments#list-review-comments-in-a-repository",
  ),
  readBelow(
    "/pulls/comments/:id",
    "pulls",
    comments.getReviewComment,
    "pulls/comments#get-a-review-comment-for-a-pull-request",
  ),
  readBelow("/pulls/:number", "pulls", getPull, "pulls/pulls#get-a-pull-request"),
  readBelow(
    "/pulls/:number/comments",
    "pulls",
    comments.listPullReviewComments,
    "pulls/comments#list-review-comments-on-a-pull-request",
  ),
  readBelow("/pulls/:number/reviews", "pulls", comments.listReviews, "pulls/reviews#list-reviews-for-a-pull-request"),
  readBelow("/pulls/:number/reviews/:id", "pulls", comments.getReview, "pulls/reviews#get-a-review-for-a-pull-request"),
  readBelow(
    "/pulls/:number/reviews/:id/comments",
    "pulls",
    comments.listReviewComments,
    "pulls/reviews#list-comments-for-a-pull-request-review",
  ),
  readBelow("/pulls/:number/merge", "pulls", checkMerged, "pulls/pulls#check-if-a-pull-request-has-been-merged"),
  readBelow(
    "/pulls/:number/requested_reviewers",
    "pulls",
    getRequestedReviewers,
    "pulls/review-requests#get-all-requested-reviewers-for-a-pull-request",
  ),
  readBelow("/labels", "issues or pulls", listLabels, "issues/labels#list-labels-for-a-repository"),
  { ...readBelow("/labels/:name", "issues or pulls", getLabel, "issues/labels#get-a-label"), takesRest: true },
  readBelow("/milestones", "issues or pulls", listMilestones, "issues/milestones#list-milestones"),
  readBelow("/milestones/:number", "issues or pulls", getMilestone, "issues/milestones#get-a-milestone"),
  readBelow(
    "/milestones/:number/labels",
    "issues or pulls",
    listMilestoneLabels,
    "issues/labels#list-labels-for-issues-in-a-milestone",
  ),
  readBelow("/assignees", "issues or pulls", listAssignees, "issues/assignees#list-assignees", IS_JUDGED),
  readBelow(
    "/assignees/:assignee",
    "issues or pulls",
    checkAssignee,
    "issues/assignees#check-if-a-user-can-be-assigned",
    IS_JUDGED,
  ),
  readBelow("/topics", "metadata", getTopics, "repos/repos#get-all-repository-topics"),
  ...WRITE_OPERATIONS,
];

/** Every REST operation that we serve. Hooks are our own. */
export const REST_OPERATIONS: readonly ServedOperation[] = [
  ...MIRROR_OPERATIONS,
  ...PART_OPERATIONS,
  ...HOOK_OPERATIONS,
];

/** Each operation at `/` and at `/api/v3`; below a repository by its name and by its id. */
export function restRoutes(handle: RestDoor): Route[] {
  const at = (
    path: string,
    { route: operation, takesRest = false }: ServedOperation,
    match: (exchange: Exchange, params: Params) => Match,
  ): Route[] =>
    [path, ENTERPRISE_PREFIX + path, ...(path === "/" ? [ENTERPRISE_PREFIX] : [])].map((whole) => ({
      method: operation.method,
      path: whole,
      takesRest,
      handle: (exchange, at) => handle(exchange, () => match(exchange, at.params)),
    }));
  return REST_OPERATIONS.flatMap((served) => {
    const { path, route } = served;
    return route.run.of === "service"
      ? at(path, served, (_exchange, params) => ({ route, params, repository: null }))
      : [
          ...at(`/repos/:owner/:repo${pathBelowRepository(path)}`, served, (exchange, params) => ({
            route,
            params,
            repository: { fullName: `${params.owner}/${params.repo}`, id: null, rest: pathAfter(exchange, 3) },
          })),
          ...at(`/repositories/:repositoryId${pathBelowRepository(path)}`, served, (exchange, params) => ({
            route,
            params,
            repository: { fullName: null, id: numberParam(params.repositoryId), rest: pathAfter(exchange, 2) },
          })),
        ];
  });
}

/** The operation's path by name, with a star for each value, as the forms of other routes have it. */
export function operationForm(path: string, { run }: Operation): string {
  return (run.of === "service" ? path : `/repos/:owner/:repo${pathBelowRepository(path)}`).replace(/:\w+/g, "*");
}

/** An operation on the repository itself has the path `/`. */
function pathBelowRepository(path: string): string {
  return path === "/" ? "" : path;
}

/** What follows so many segments of a path, as it was sent. */
function pathAfter(exchange: Exchange, segments: number): string {
  const { path } = pathInApi(exchange);
  let at = 0;
  for (let left = segments; left > 0 && at >= 0; left--) at = path.indexOf("/", at + 1);
  return at < 0 ? "" : path.slice(at);
}

function service(
  path: string,
  run: (call: Call) => Promise<Answer>,
  docs: string,
  more: Partial<Pick<Operation, "isFree" | "bucket" | "isPart">> = {},
): ServedOperation {
  const route = { method: "GET", docs: `${REST_DOCS}/${docs}`, isFree: false, ...more } as const;
  return { path, route: { ...route, run: { of: "service", with: run } } };
}

/** An operation below a repository. `takes` is the right in the repository that the service asks for. */
function readBelow(
  path: string,
  takes: Right,
  run: (call: RepositoryCall) => Promise<Answer>,
  docs: string,
  more: Pick<Operation, "part" | "showsRights" | "isPart" | "isJudged"> = {},
): ServedOperation {
  const route = { method: "GET", docs: `${REST_DOCS}/${docs}`, isFree: false, ...more } as const;
  return { path, route: { ...route, run: { of: "repository", takes, with: run } } };
}
