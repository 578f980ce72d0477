/** Changes of what hangs on code, by name: see `mutations.ts`. */
import * as actions from "../changes/actions.ts";
import * as checks from "../changes/checks.ts";
import * as deployments from "../changes/deployments.ts";
import * as refs from "../changes/refs.ts";
import * as releases from "../changes/releases.ts";
import { resolveThread } from "../changes/threads.ts";
import { runView, statusView, suiteView } from "../views/check.ts";
import { deploymentStatusView, deploymentView } from "../views/deployment.ts";
import { releaseView } from "../views/release.ts";
import type { View } from "../views/view.ts";
import { workflowJobView, workflowRunView, workflowView } from "../views/workflow.ts";
import { commitOf } from "../world/commits.ts";
import {
  CHECK_CONCLUSIONS,
  CHECK_STATUSES,
  DEPLOYMENT_STATES,
  STATUS_STATES,
  type Tag,
} from "../world/records-code.ts";
import type { World } from "../world/world.ts";
import type { Arguments } from "./mutation-arguments.ts";

type Mutation = (world: World, by: number, given: Arguments, view: View) => unknown;

const DEFAULT_APP = "github-actions";

/** `sha`, or the head of the pull request `number`, or of the branch `ref`, or of the default branch. */
function shaOf(world: World, given: Arguments): string {
  const repository = given.repository();
  const sha =
    given.optional("sha") ??
    (given.has("number")
      ? given.pull().pull.head.sha
      : repository.branches.get(given.optional("ref") ?? repository.defaultBranch));
  if (sha === undefined || !commitOf(world, repository, sha)) throw new Error(`There is no commit ${sha}`);
  return sha;
}

function tagOf(world: World, given: Arguments): Tag {
  const tag = world.code.of(given.repository()).tags.get(given.text("name"));
  if (!tag) throw new Error(`There is no tag ${given.text("name")}`);
  return tag;
}

function runEdit(given: Arguments): checks.RunEdit {
  const status = given.choice("status", CHECK_STATUSES);
  const conclusion = given.choice("conclusion", CHECK_CONCLUSIONS);
  return {
    ...given.picked("startedAt", "completedAt", "detailsUrl", "externalId", "output", "annotations"),
    ...(status === undefined ? {} : { status }),
    ...(conclusion === undefined ? {} : { conclusion }),
  };
}

export const CODE_MUTATIONS: Readonly<Record<string, Mutation>> = {
  /** Another suite beside the App's others of the commit, as a rerun of a workflow makes. */
  createCheckSuite: (world, _by, given, view) => {
    const app = checks.checkApp(world, given.optional("app") ?? DEFAULT_APP);
    return suiteView(view, checks.createSuite(world, given.repository(), app, shaOf(world, given)));
  },
  createCheckRun: (world, by, given, view) => {
    const app = checks.checkApp(world, given.optional("app") ?? DEFAULT_APP);
    const suite = given.has("suite") ? { suite: given.row("suite", world.code.checkSuites) } : {};
    const repository = given.repository();
    const input = {
      repository,
      app,
      headSha: shaOf(world, given),
      name: given.text("name"),
      ...suite,
      ...runEdit(given),
    };
    return runView(view, checks.createCheckRun(world, by, input));
  },
  editCheckRun: (world, by, given, view) => {
    const run = given.row("run", world.code.checkRuns);
    checks.editCheckRun(world, by, run, { ...given.picked("name"), ...runEdit(given) });
    return runView(view, run);
  },
  rerequestCheckRun: (world, by, given) => checks.rerequestRun(world, by, given.row("run", world.code.checkRuns)),
  rerequestCheckSuite: (world, by, given) =>
    checks.rerequestSuite(world, by, given.row("suite", world.code.checkSuites)),
  /** Several at once are one push: with more than three nobody hears of it. */
  createTags: (world, by, given) => {
    const sha = shaOf(world, given);
    const message = given.optional("message");
    const names = given.text("names").split(",");
    refs.createTags(
      world,
      by,
      given.repository(),
      names.map((name) => ({ name, sha, ...(message === undefined ? {} : { message }) })),
    );
    return { sha };
  },
  deleteTag: (world, by, given) => refs.deleteTag(world, by, given.repository(), tagOf(world, given)),
  moveTag: (world, by, given) => refs.moveTag(world, by, given.repository(), tagOf(world, given), shaOf(world, given)),
  deleteBranch: (world, by, given) => refs.deleteBranch(world, by, given.repository(), given.text("ref")),
  /** The branch `branch`, to `sha`, forward or not. */
  moveBranch: (world, by, given) =>
    refs.moveBranch(world, by, given.repository(), given.text("branch"), { sha: given.text("sha"), force: true }),
  createRelease: (world, by, given, view) => {
    const more = given.picked("name", "body", "draft", "prerelease", "makeLatest", "targetCommitish");
    const input = { repository: given.repository(), tagName: given.text("tagName"), ...more };
    return releaseView(view, releases.createRelease(world, by, input));
  },
  editRelease: (world, by, given, view) => {
    const release = given.row("release", world.code.releases);
    const edit = given.picked("tagName", "name", "body", "draft", "prerelease", "makeLatest", "targetCommitish");
    releases.editRelease(world, by, release, edit);
    return releaseView(view, release);
  },
  deleteRelease: (world, by, given) => releases.deleteRelease(world, by, given.row("release", world.code.releases)),
  addReleaseAsset: (world, by, given, view) => {
    const release = given.row("release", world.code.releases);
    const more = given.picked("label", "contentType", "size", "downloads");
    releases.addAsset(world, by, release, { name: given.text("name"), ...more });
    return releaseView(view, release);
  },
  downloadReleaseAsset: (world, _by, given) => {
    const release = given.row("release", world.code.releases);
    const asset = release.assets.find(({ name }) => name === given.text("name"));
    if (!asset) throw new Error(`There is no asset ${given.text("name")}`);
    releases.download(world, release, asset.id);
  },
  /** Of `ref`, or of the default branch. */
  createDeployment: (world, by, given, view) => {
    const repository = given.repository();
    const more = given.picked("task", "payload", "environment", "description");
    const kind = given.picked("transientEnvironment", "productionEnvironment");
    const input = { repository, ref: given.optional("ref") ?? repository.defaultBranch, ...more, ...kind };
    return deploymentView(view, deployments.createDeployment(world, by, input));
  },
  createDeploymentStatus: (world, by, given, view) => {
    const state = given.choice("state", DEPLOYMENT_STATES);
    if (!state) throw new Error("state is missing");
    const deployment = given.row("deployment", world.code.deployments);
    const more = given.picked("description", "environment", "logUrl", "environmentUrl", "autoInactive");
    return deploymentStatusView(view, deployments.createDeploymentStatus(world, by, deployment, { state, ...more }));
  },
  deleteDeployment: (world, _by, given) =>
    deployments.deleteDeployment(world, given.row("deployment", world.code.deployments)),
  /** A run of the workflow `workflow` (a name), which is made if there is none. `jobs`: names, parted by commas. */
  startWorkflowRun: (world, by, given, view) => {
    const name = given.optional("workflow");
    const workflow = actions.workflowOf(world, {
      repository: given.repository(),
      ...(name === undefined ? {} : { name }),
    });
    const jobs = given.optional("jobs")?.split(",");
    const input = { workflow, headSha: shaOf(world, given), ...given.picked("event", "title") };
    return workflowRunView(view, actions.startWorkflowRun(world, by, { ...input, ...(jobs && { jobs }) }));
  },
  beginJob: (world, by, given, view) => {
    const job = given.row("job", world.code.workflowJobs);
    actions.beginJob(world, by, job);
    return workflowJobView(view, job);
  },
  endJob: (world, by, given, view) => {
    const job = given.row("job", world.code.workflowJobs);
    actions.endJob(world, by, job, given.choice("conclusion", CHECK_CONCLUSIONS) ?? "success");
    return workflowJobView(view, job);
  },
  endStep: (world, _by, given) => actions.endStep(world, given.row("job", world.code.workflowJobs)),
  rerunWorkflow: (world, by, given) => actions.rerun(world, by, given.row("run", world.code.workflowRuns)),
  cancelWorkflowRun: (world, by, given) => actions.cancelRun(world, by, given.row("run", world.code.workflowRuns)),
  deleteWorkflowRun: (world, _by, given) => actions.deleteWorkflowRun(world, given.row("run", world.code.workflowRuns)),
  disableWorkflow: (world, _by, given, view) => {
    const workflow = given.row("workflow", world.code.workflows);
    actions.setWorkflowState(world, workflow, "disabled_manually");
    return workflowView(view, workflow);
  },
  deleteWorkflow: (world, _by, given) => actions.deleteWorkflow(world, given.row("workflow", world.code.workflows)),
  /** The thread that the review comment `comment` began. */
  resolveThread: (world, by, given) => {
    const { id, issue } = given.row("comment", world.reviewComments);
    resolveThread(world, by, issue, id, true);
  },
  unresolveThread: (world, by, given) => {
    const { id, issue } = given.row("comment", world.reviewComments);
    resolveThread(world, by, issue, id, false);
  },
  createStatus: (world, by, given, view) => {
    const state = given.choice("state", STATUS_STATES);
    if (!state) throw new Error("state is missing");
    const input = { repository: given.repository(), sha: shaOf(world, given), state };
    const more = given.picked("context", "description", "targetUrl");
    return statusView(view, checks.createStatus(world, by, { ...input, ...more }));
  },
};
