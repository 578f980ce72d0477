/**
 * Builds as a busy repository has them: pushes to the heads of pull requests, each with runs that wait, go on and end,
 * and a status about them all. When each happens is drawn beforehand and told by the world's clock. So a day of it
 * passes as fast as the clock is set forward.
 */
import { checkApp, createCheckRun, createStatus, createSuite, editCheckRun } from "../changes/checks.ts";
import { pushToPull } from "../changes/pulls.ts";
import { type Random, seededRandom } from "../world/random.ts";
import { GHOST_ID, type PullIssue } from "../world/records.ts";
import type { CheckRun } from "../world/records-code.ts";
import type { World } from "../world/world.ts";
import { conclusionOf } from "./code-acts.ts";

export interface BuildOptions {
  /** Those that are built; what is closed or lost its head branch meanwhile is left alone. */
  readonly pulls: readonly PullIssue[];
  readonly seed: number;
  /** Mean time between two pushes to one head. Default ten minutes. */
  readonly pushEveryMs?: number;
  /** How long a build takes from its push to its last run's end. Default four minutes. */
  readonly buildMs?: number;
  /** Runs of each build. Default 4. */
  readonly runs?: number;
  /** Slug of the App that makes them. Default `github-actions`. */
  readonly app?: string;
  /** Real time between two looks at the clock. 0, the default: only `catchUp()`. */
  readonly tickMs?: number;
}

export interface Builds {
  /** Does all that is due by the world's clock, in its order, and answers how many things that were. */
  catchUp(): number;
  /** When the next thing is due, in epoch milliseconds. */
  readonly nextAt: number;
  stop(): void;
  /** Resolves once stopped. Rejects when something failed: that is a bug. */
  readonly done: Promise<void>;
}

interface Due {
  readonly at: number;
  readonly run: () => void;
}

export function startBuilds(world: World, options: BuildOptions): Builds {
  const random = seededRandom(options.seed);
  const due: Due[] = [];
  const plan = (at: number, run: () => void): void => {
    let place = due.length;
    while (place > 0 && (due[place - 1]?.at ?? 0) > at) place -= 1;
    due.splice(place, 0, { at, run });
  };
  const { pushEveryMs = 600_000 } = options;
  for (const pull of options.pulls) {
    const push = (at: number) => {
      if (pull.state === "open" && pull.pull.head.repositoryId !== null) {
        pushToPull(world, authorOf(pull), pull);
        build(world, random, pull, at, options, plan);
      }
      const next = at + Math.ceil(pushEveryMs * (0.5 + random.next()));
      plan(next, () => push(next));
    };
    const first = world.clock.now() + Math.floor(random.next() * pushEveryMs);
    plan(first, () => push(first));
  }

  const catchUp = (): number => {
    let count = 0;
    for (let next = due[0]; next && next.at <= world.clock.now(); next = due[0]) {
      due.shift();
      next.run();
      count += 1;
    }
    return count;
  };
  const { promise: done, resolve, reject } = Promise.withResolvers<void>();
  let timer: NodeJS.Timeout | undefined;
  if (options.tickMs) {
    timer = setInterval(() => {
      try {
        catchUp();
      } catch (error) {
        clearInterval(timer);
        reject(error);
      }
    }, options.tickMs);
    timer.unref();
  }
  return {
    catchUp,
    get nextAt() {
      return due[0]?.at ?? Number.POSITIVE_INFINITY;
    },
    stop() {
      clearInterval(timer);
      resolve();
    },
    done,
  };
}

function authorOf(pull: PullIssue): number {
  return pull.authorId ?? GHOST_ID;
}

/** All runs wait at once, begin within the first third of the time, and the last ends with it. */
function build(
  world: World,
  random: Random,
  pull: PullIssue,
  at: number,
  { runs = 4, buildMs = 240_000, app: slug = "github-actions" }: BuildOptions,
  plan: (at: number, run: () => void) => void,
): void {
  const { repository } = pull;
  const by = authorOf(pull);
  const app = checkApp(world, slug);
  const headSha = pull.pull.head.sha;
  const suite = createSuite(world, repository, app, headSha);
  const told = { repository, sha: headSha, context: "ci/all" };
  createStatus(world, by, { ...told, state: "pending" });
  const made: CheckRun[] = [];
  for (let number = 1; number <= runs; number++) {
    const run = createCheckRun(world, by, { repository, app, headSha, suite, name: `job ${number}` });
    made.push(run);
    const begin = at + Math.floor((random.next() * buildMs) / 3);
    const end = number === runs ? at + buildMs : begin + Math.floor((0.2 + 0.4 * random.next()) * buildMs);
    const conclusion = conclusionOf(random);
    plan(begin, () => editCheckRun(world, by, run, { status: "in_progress" }));
    plan(end, () => {
      editCheckRun(world, by, run, { conclusion });
      if (made.some((one) => one.status !== "completed")) return;
      createStatus(world, by, { ...told, state: suite.conclusion === "success" ? "success" : "failure" });
    });
  }
}
