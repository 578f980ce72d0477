import { checkApp, createCheckRun, createStatus, createSuite, editCheckRun } from "../changes/checks.ts";
import { createRelease } from "../changes/releases.ts";
import type { Random } from "../random.ts";
import type { PullIssue } from "../records.ts";
import type { CheckConclusion, CheckRun } from "../records-code.ts";
import type { World } from "../world.ts";
import type { Act } from "./act.ts";

const JOBS = ["build", "lint", "test (node 24)", "test (node 26)", "docs", "e2e / chromium"] as const;
const APPS = ["github-actions", "github-actions", "octo-ci"] as const;
const CONTEXTS = ["ci/deploy", "coverage/project", "license/cla"] as const;

/** Mostly well. */
export function conclusionOf(random: Random): CheckConclusion {
  const roll = random.next();
  if (roll < 0.78) return "success";
  return roll < 0.9 ? "failure" : random.pick(["cancelled", "skipped", "neutral", "timed_out"] as const);
}

/** What machines do for pull requests, and what is released of them. */
export const CODE_ACTS = {
  startBuild: (stage, repository, by) => {
    const { world, random } = stage;
    const pull = stage.pull(repository, isOpen);
    if (!pull) return undefined;
    const app = checkApp(world, random.pick(APPS));
    const headSha = pull.pull.head.sha;
    // A rerun has a suite of its own beside the one that it supersedes.
    const suite = createSuite(world, repository, app, headSha);
    for (const name of JOBS.slice(0, random.int(1, JOBS.length)))
      createCheckRun(world, by, { repository, app, headSha, name, suite });
    return pull;
  },

  advanceBuild: (stage, repository, by) => {
    const { world, random } = stage;
    const pull = stage.pull(repository, (one) => isOpen(one) && unfinished(world, one).length > 0);
    if (!pull) return undefined;
    const run = random.pick(unfinished(world, pull));
    if (run.status === "queued" && random.chance(0.5)) editCheckRun(world, by, run, { status: "in_progress" });
    else editCheckRun(world, by, run, { conclusion: conclusionOf(random) });
    return pull;
  },

  reportStatus: (stage, repository, by) => {
    const { world, random } = stage;
    const pull = stage.pull(repository, isOpen);
    if (!pull) return undefined;
    const state = random.pick(["pending", "success", "success", "failure", "error"] as const);
    createStatus(world, by, { repository, sha: pull.pull.head.sha, state, context: random.pick(CONTEXTS) });
    return pull;
  },

  release: (stage, repository, by) => {
    const { world, random } = stage;
    if (!repository.branches.has(repository.defaultBranch)) return undefined;
    const tagName = `v${world.code.of(repository).releases.size}.${random.int(0, 99_999)}`;
    const body = stage.body(repository);
    const more = { name: random.chance(0.3) ? null : `Release ${tagName}`, draft: random.chance(0.2) };
    createRelease(world, by, { repository, tagName, body, prerelease: random.chance(0.2), ...more });
    return repository;
  },
} satisfies Record<string, Act>;

function isOpen({ state }: PullIssue): boolean {
  return state === "open";
}

function unfinished(world: World, { repository, pull }: PullIssue): CheckRun[] {
  const suites = world.code.of(repository).suites.get(pull.head.sha) ?? [];
  return suites.flatMap((suite) => suite.runs).filter((run) => run.status !== "completed");
}
