/** Changes of what hangs on code, by name: see `mutations.ts`. */
import * as checks from "./changes/checks.ts";
import { commitOf } from "./commits.ts";
import type { Arguments } from "./mutation-arguments.ts";
import { CHECK_CONCLUSIONS, CHECK_STATUSES, STATUS_STATES } from "./records-code.ts";
import { runView, statusView, suiteView } from "./views/check.ts";
import type { View } from "./views/view.ts";
import type { World } from "./world.ts";

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
  createStatus: (world, by, given, view) => {
    const state = given.choice("state", STATUS_STATES);
    if (!state) throw new Error("state is missing");
    const input = { repository: given.repository(), sha: shaOf(world, given), state };
    const more = given.picked("context", "description", "targetUrl");
    return statusView(view, checks.createStatus(world, by, { ...input, ...more }));
  },
};
