/** Routes of what hangs on code: git objects, commits, what machines say of them, refs, releases, deployments, Actions. */
import * as actions from "./actions.ts";
import * as checks from "./checks.ts";
import * as code from "./code.ts";
import * as commits from "./commits.ts";
import * as deployments from "./deployments.ts";
import { putUpdateBranch } from "./pulls.ts";
import * as refs from "./refs.ts";
import * as releases from "./releases.ts";
import { inRepository, type Route } from "./router.ts";
import * as statuses from "./statuses.ts";

export const CODE_ROUTES: readonly Route[] = [
  inRepository("POST", "/git/refs", "git/refs#create-a-reference", refs.postRef),
  inRepository("PATCH", "/git/refs/*ref", "git/refs#update-a-reference", refs.patchRef),
  inRepository("DELETE", "/git/refs/*ref", "git/refs#delete-a-reference", refs.deleteRef),
  inRepository("GET", "/git/ref/*ref", "git/refs#get-a-reference", refs.getRef),
  inRepository("GET", "/git/matching-refs/*ref", "git/refs#list-matching-references", refs.listMatchingRefs),
  inRepository("GET", "/git/tags/:sha", "git/tags#get-a-tag", refs.getTagObject),
  inRepository("GET", "/branches", "branches/branches#list-branches", refs.listBranches),
  inRepository("GET", "/branches/*branch", "branches/branches#get-a-branch", refs.getBranch),
  inRepository("GET", "/tags", "repos/repos#list-repository-tags", refs.listTags),
  inRepository("GET", "/releases", "releases/releases#list-releases", releases.listReleases),
  inRepository("POST", "/releases", "releases/releases#create-a-release", releases.postRelease, { content: true }),
  inRepository("GET", "/releases/latest", "releases/releases#get-the-latest-release", releases.getLatest),
  inRepository("GET", "/releases/tags/*tag", "releases/releases#get-a-release-by-tag-name", releases.getByTag),
  inRepository("GET", "/releases/assets/:id", "releases/assets#get-a-release-asset", releases.getAsset),
  inRepository("GET", "/releases/:id", "releases/releases#get-a-release", releases.getRelease),
  inRepository("PATCH", "/releases/:id", "releases/releases#update-a-release", releases.patchRelease),
  inRepository("DELETE", "/releases/:id", "releases/releases#delete-a-release", releases.removeRelease),
  inRepository("GET", "/releases/:id/assets", "releases/assets#list-release-assets", releases.listAssets),

  inRepository("GET", "/deployments", "deployments/deployments#list-deployments", deployments.listDeployments),
  inRepository("POST", "/deployments", "deployments/deployments#create-a-deployment", deployments.postDeployment),
  inRepository("GET", "/deployments/:id", "deployments/deployments#get-a-deployment", deployments.getDeployment),
  inRepository(
    "DELETE",
    "/deployments/:id",
    "deployments/deployments#delete-a-deployment",
    deployments.removeDeployment,
  ),
  inRepository(
    "GET",
    "/deployments/:id/statuses",
    "deployments/statuses#list-deployment-statuses",
    deployments.listStatuses,
  ),
  inRepository(
    "POST",
    "/deployments/:id/statuses",
    "deployments/statuses#create-a-deployment-status",
    deployments.postStatus,
  ),
  inRepository(
    "GET",
    "/deployments/:id/statuses/:status",
    "deployments/statuses#get-a-deployment-status",
    deployments.getStatus,
  ),

  inRepository("GET", "/git/blobs/:sha", "git/blobs#get-a-blob", code.getBlob),
  inRepository("GET", "/git/commits/:sha", "git/commits#get-a-commit-object", commits.getGitCommit),
  inRepository("GET", "/git/trees/:sha", "git/trees#get-a-tree", code.getTree),
  inRepository("GET", "/commits", "commits/commits#list-commits", commits.listCommits),
  inRepository(
    "GET",
    "/commits/*ref/pulls",
    "commits/commits#list-pull-requests-associated-with-a-commit",
    commits.listPullsOfCommit,
  ),
  inRepository(
    "GET",
    "/commits/*ref/branches-where-head",
    "commits/commits#list-branches-for-head-commit",
    commits.listBranchesAtHead,
  ),
  inRepository(
    "GET",
    "/commits/*ref/check-runs",
    "checks/runs#list-check-runs-for-a-git-reference",
    checks.listRunsOfRef,
  ),
  inRepository(
    "GET",
    "/commits/*ref/check-suites",
    "checks/suites#list-check-suites-for-a-git-reference",
    checks.listSuites,
  ),
  inRepository("GET", "/actions/workflows", "actions/workflows#list-repository-workflows", actions.listWorkflows),
  inRepository("GET", "/actions/workflows/:workflow", "actions/workflows#get-a-workflow", actions.getWorkflow),
  inRepository(
    "PUT",
    "/actions/workflows/:workflow/enable",
    "actions/workflows#enable-a-workflow",
    actions.putWorkflowState("active"),
  ),
  inRepository(
    "PUT",
    "/actions/workflows/:workflow/disable",
    "actions/workflows#disable-a-workflow",
    actions.putWorkflowState("disabled_manually"),
  ),
  inRepository(
    "POST",
    "/actions/workflows/:workflow/dispatches",
    "actions/workflows#create-a-workflow-dispatch-event",
    actions.postDispatch,
  ),
  inRepository(
    "GET",
    "/actions/workflows/:workflow/runs",
    "actions/workflow-runs#list-workflow-runs-for-a-workflow",
    actions.listRunsOfWorkflow,
  ),
  inRepository("GET", "/actions/runs", "actions/workflow-runs#list-workflow-runs-for-a-repository", actions.listRuns),
  inRepository("GET", "/actions/runs/:id", "actions/workflow-runs#get-a-workflow-run", actions.getRun),
  inRepository("DELETE", "/actions/runs/:id", "actions/workflow-runs#delete-a-workflow-run", actions.removeRun),
  inRepository("POST", "/actions/runs/:id/rerun", "actions/workflow-runs#re-run-a-workflow", actions.postRerun),
  inRepository("POST", "/actions/runs/:id/cancel", "actions/workflow-runs#cancel-a-workflow-run", actions.postCancel),
  inRepository("GET", "/actions/jobs/:id", "actions/workflow-jobs#get-a-job-for-a-workflow-run", actions.getJob),
  inRepository("GET", "/actions/runs/:id/jobs", "actions/workflow-jobs#list-jobs-for-a-workflow-run", actions.listJobs),
  inRepository(
    "GET",
    "/actions/runs/:id/artifacts",
    "actions/artifacts#list-workflow-run-artifacts",
    actions.listArtifacts,
  ),
  inRepository("POST", "/check-runs", "checks/runs#create-a-check-run", checks.postRun),
  inRepository("GET", "/check-runs/:id", "checks/runs#get-a-check-run", checks.getRun),
  inRepository("PATCH", "/check-runs/:id", "checks/runs#update-a-check-run", checks.patchRun),
  inRepository("GET", "/check-runs/:id/annotations", "checks/runs#list-check-run-annotations", checks.listAnnotations),
  inRepository("POST", "/check-runs/:id/rerequest", "checks/runs#rerequest-a-check-run", checks.postRunAgain),
  inRepository("POST", "/check-suites", "checks/suites#create-a-check-suite", checks.postSuite),
  inRepository("GET", "/check-suites/:id", "checks/suites#get-a-check-suite", checks.getSuite),
  inRepository(
    "GET",
    "/check-suites/:id/check-runs",
    "checks/runs#list-check-runs-in-a-check-suite",
    checks.listRunsOfSuite,
  ),
  inRepository("POST", "/check-suites/:id/rerequest", "checks/suites#rerequest-a-check-suite", checks.postSuiteAgain),
  inRepository(
    "GET",
    "/commits/*ref/statuses",
    "commits/statuses#list-commit-statuses-for-a-reference",
    statuses.listStatuses,
  ),
  inRepository("GET", "/statuses/*ref", "commits/statuses#list-commit-statuses-for-a-reference", statuses.listStatuses),
  inRepository(
    "GET",
    "/commits/*ref/status",
    "commits/statuses#get-the-combined-status-for-a-specific-reference",
    statuses.getCombined,
  ),
  inRepository("POST", "/statuses/:sha", "commits/statuses#create-a-commit-status", statuses.postStatus),
  inRepository("GET", "/commits/*ref", "commits/commits#get-a-commit", commits.getCommit),
  inRepository("GET", "/compare/*basehead", "commits/commits#compare-two-commits", commits.compareCommits),
  inRepository("GET", "/contents/*path", "repos/contents#get-repository-content", code.getContents),
  inRepository("GET", "/pulls/:number/commits", "pulls/pulls#list-commits-on-a-pull-request", commits.listPullCommits),
  inRepository("GET", "/pulls/:number/files", "pulls/pulls#list-pull-requests-files", commits.listPullFiles),
  inRepository("PUT", "/pulls/:number/update-branch", "pulls/pulls#update-a-pull-request-branch", putUpdateBranch),
];
