import { MIRROR_PARTS, type MirrorPart } from "../config/parts.ts";
import type { Exchange } from "../http/exchange.ts";
import type { Params, Route } from "../http/router.ts";
import type { Right } from "../kinds/contract/rights.ts";
import type { Answer, Call, RepositoryCall } from "./call/call.ts";
import type { Match, Operation, RestDoor, ServedOperation } from "./call/operation.ts";
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

/** Clients ask for a diff here and read JSON (danger-js, `getPullRequestDiff`). */
const HAS_NO_PATCH: Pick<Operation, "hasNoPatch"> = { hasNoPatch: true };

type PartOperation = readonly [
  string,
  Right,
  (call: RepositoryCall) => Promise<Answer>,
  Pick<Operation, "hasNoPatch">?,
];

/** The operations that are served where a part is mirrored. */
const OF_PARTS: Readonly<Partial<Record<MirrorPart, readonly PartOperation[]>>> = {
  actions: [
    ["/actions/workflows", "actions", actions.listWorkflows],
    ["/actions/workflows/:workflow", "actions", actions.getWorkflow],
    ["/actions/workflows/:workflow/runs", "actions", actions.listRunsOfWorkflow],
    ["/actions/runs", "actions", actions.listWorkflowRuns],
    ["/actions/runs/:id", "actions", actions.getWorkflowRun],
    ["/actions/runs/:id/jobs", "actions", actions.listJobs],
    ["/actions/jobs/:id", "actions", actions.getJob],
  ],
  checks: [
    ["/commits/:ref/check-runs", "checks", checks.listCheckRuns],
    ["/commits/:ref/check-suites", "checks", checks.listCheckSuites],
    ["/commits/:ref/status", "statuses", checks.getCombinedStatus],
    ["/commits/:ref/statuses", "statuses", checks.listStatuses],
    ["/check-runs/:id", "checks", checks.getCheckRun],
    ["/check-runs/:id/annotations", "checks", checks.listAnnotations],
    ["/check-suites/:id", "checks", checks.getCheckSuite],
    ["/check-suites/:id/check-runs", "checks", checks.listSuiteRuns],
  ],
  commits: [
    ["/pulls/:number/commits", "pulls", listPullCommits],
    ["/pulls/:number/files", "pulls", listPullFiles, HAS_NO_PATCH],
    ["/commits", "contents", commits.listCommits],
    ["/commits/:ref", "contents", commits.getCommit],
    ["/commits/:ref/pulls", "pulls", commits.listPullsOfCommit],
    ["/git/commits/:sha", "contents", commits.getGitCommit],
  ],
  deployments: [
    ["/deployments", "deployments", deployments.listDeployments],
    ["/deployments/:id", "deployments", deployments.getDeployment],
    ["/deployments/:id/statuses", "deployments", deployments.listDeploymentStatuses],
    ["/deployments/:id/statuses/:status", "deployments", deployments.getDeploymentStatus],
  ],
  "issue-events": [
    ["/issues/events", "issues or pulls", issueEvents.listRepositoryEvents],
    ["/issues/events/:id", "issues or pulls", issueEvents.getIssueEvent],
    ["/issues/:number/events", "issues or pulls", issueEvents.listIssueEvents],
  ],
  people: [
    ["/collaborators", "metadata", people.listCollaborators],
    ["/collaborators/:username", "metadata", people.checkCollaborator],
    ["/collaborators/:username/permission", "metadata", people.getPermission],
    ["/teams", "metadata", people.listRepositoryTeams],
  ],
  releases: [
    ["/releases", "contents", releases.listReleases],
    ["/releases/latest", "contents", releases.getLatestRelease],
    ["/releases/tags/:tag", "contents", releases.getReleaseByTag],
    ["/releases/:id", "contents", releases.getRelease],
  ],
  refs: [
    ["/branches", "contents", refs.listBranches],
    ["/branches/:branch", "contents", refs.getBranch],
    ["/tags", "contents", refs.listTags],
    ["/git/ref/:ref", "contents", refs.getRef],
    ["/git/matching-refs/:ref", "contents", refs.listMatchingRefs],
  ],
};

/** Reads of an organisation's people. It is named by its login or its id, and a team by its slug or its id. */
const PEOPLE_OF_ORGANIZATIONS: readonly ServedOperation[] = [
  ...["/orgs/:login", "/organizations/:id"].flatMap((named) => [
    service(`${named}/members`, people.listMembers),
    service(`${named}/members/:username`, people.checkMember),
    service(`${named}/public_members`, people.listPublicMembers),
    service(`${named}/public_members/:username`, people.checkPublicMember),
    service(`${named}/teams`, people.listTeams),
  ]),
  ...["/orgs/:login/teams/:slug", "/organizations/:id/team/:team"].flatMap((named) => [
    service(named, people.getTeam),
    service(`${named}/members`, people.listTeamMembers),
    service(`${named}/memberships/:username`, people.getTeamMembership),
  ]),
];

/** Every read of a part that is only mirrored on request. */
export const PART_OPERATIONS: readonly ServedOperation[] = [
  ...MIRROR_PARTS.flatMap((part) =>
    (OF_PARTS[part] ?? []).map(([path, takes, run, more]) => ({
      ...readBelow(path, takes, run, { part, ...more, ...(part === "people" && IS_JUDGED) }),
      // Names of branches and tags may have slashes.
      ...(part === "refs" && path.includes(":") && { takesRest: true }),
    })),
  ),
  ...PEOPLE_OF_ORGANIZATIONS,
];

/**
 * Every REST operation on what is mirrored. Below a repository, the right that the operation takes comes before
 * the function that answers (GitHub docs, "Permissions required for fine-grained personal access tokens").
 */
export const MIRROR_OPERATIONS: readonly ServedOperation[] = [
  service("/", getRoot),
  service("/meta", getMeta),
  service("/versions", getVersions),
  service("/zen", getZen),
  service("/rate_limit", getRateLimit, {
    isFree: true,
  }),
  service("/search/issues", getSearchedIssues, {
    ...SEARCH,
    isPart: isPartOfIssues,
  }),
  service("/search/repositories", getSearchedRepositories, {
    ...SEARCH,
    isPart: isPartOfRepositories,
  }),
  service("/search/labels", getSearchedLabels, SEARCH),
  service("/user", getViewer),
  service("/user/repos", listViewerRepositories, IS_PART),
  service("/user/:id", getUser),
  service("/user/:id/repos", listUserRepositories, IS_PART),
  service("/users/:login", getUser),
  service("/users/:login/received_events", listReceivedEvents),
  service("/notifications", listNotifications),
  service("/users/:login/repos", listUserRepositories, IS_PART),
  ...["/orgs/:login", "/organizations/:id"].flatMap((named) => [
    service(named, getOrganization),
    service(`${named}/repos`, listOrganizationRepositories, IS_PART),
    service(
      `${named}/issues`,
      listOrganizationIssues,

      IS_PART,
    ),
  ]),
  service("/issues", listIssuesAcross, IS_PART),
  service("/user/issues", listOwnIssues, IS_PART),

  readBelow("/", "metadata", getRepository, { showsRights: true }),
  readBelow("/issues", "issues", listIssues),
  readBelow("/issues/comments", "issues or pulls", comments.listRepositoryComments),
  readBelow("/issues/comments/:id", "issues or pulls", comments.getIssueComment),
  readBelow("/issues/:number", "issues", getIssue),
  readBelow("/issues/:number/comments", "issues or pulls", comments.listIssueComments),
  readBelow("/issues/:number/labels", "issues or pulls", listIssueLabels),
  readBelow("/pulls", "pulls", listPulls),
  readBelow("/pulls/comments", "pulls", comments.listRepositoryReviewComments),
  readBelow("/pulls/comments/:id", "pulls", comments.getReviewComment),
  readBelow("/pulls/:number", "pulls", getPull),
  readBelow("/pulls/:number/comments", "pulls", comments.listPullReviewComments),
  readBelow("/pulls/:number/reviews", "pulls", comments.listReviews),
  readBelow("/pulls/:number/reviews/:id", "pulls", comments.getReview),
  readBelow("/pulls/:number/reviews/:id/comments", "pulls", comments.listReviewComments),
  readBelow("/pulls/:number/merge", "pulls", checkMerged),
  readBelow("/pulls/:number/requested_reviewers", "pulls", getRequestedReviewers),
  readBelow("/labels", "issues or pulls", listLabels),
  { ...readBelow("/labels/:name", "issues or pulls", getLabel), takesRest: true },
  readBelow("/milestones", "issues or pulls", listMilestones),
  readBelow("/milestones/:number", "issues or pulls", getMilestone),
  readBelow("/milestones/:number/labels", "issues or pulls", listMilestoneLabels),
  readBelow("/assignees", "issues or pulls", listAssignees, IS_JUDGED),
  readBelow("/assignees/:assignee", "issues or pulls", checkAssignee, IS_JUDGED),
  readBelow("/topics", "metadata", getTopics),
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
    [path, ENTERPRISE_PREFIX + path, ...(path === "/" ? [ENTERPRISE_PREFIX] : [])]
      .flatMap(withSlashes)
      .map((whole) => ({
        method: operation.method,
        path: whole,
        takesRest,
        handle: (exchange, at) => handle(exchange, () => match(exchange, joinedRef(at.params))),
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

/** The segments of a ref in front of what is asked of it. A longer one is upstream's to find. */
const SEGMENTS: readonly string[] = ["ref", "ref2", "ref3", "ref4", "ref5"];

/** The path, once for each number of segments that a ref within it may have: clients send slashes as they are. */
function withSlashes(path: string): string[] {
  if (!path.includes("/:ref/")) return [path];
  const named = SEGMENTS.map((name) => `:${name}`);
  return named.map((_, at) => path.replace(":ref", named.slice(0, at + 1).join("/")));
}

/** The params with the whole ref under its own name. */
function joinedRef(params: Params): Params {
  const segments = SEGMENTS.flatMap((name) => params[name] ?? []);
  return segments.length < 2 ? params : { ...params, ref: segments.join("/") };
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
  more: Partial<Pick<Operation, "isFree" | "bucket" | "isPart">> = {},
): ServedOperation {
  const route = { method: "GET", isFree: false, ...more } as const;
  return { path, route: { ...route, run: { of: "service", with: run } } };
}

/** An operation below a repository. `takes` is the right in the repository that the service asks for. */
function readBelow(
  path: string,
  takes: Right,
  run: (call: RepositoryCall) => Promise<Answer>,
  more: Pick<Operation, "part" | "showsRights" | "hasNoPatch" | "isPart" | "isJudged"> = {},
): ServedOperation {
  const route = { method: "GET", isFree: false, ...more } as const;
  return { path, route: { ...route, run: { of: "repository", takes, with: run } } };
}
