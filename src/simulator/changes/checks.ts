/** What Apps and people say of commits: check runs, the suites that sum them up, and statuses. */
import type { Repository } from "../world/records.ts";
import type {
  Annotation,
  CheckApp,
  CheckConclusion,
  CheckRun,
  CheckStatus,
  CheckSuite,
  CommitStatus,
  StatusState,
} from "../world/records-code.ts";
import { invalid } from "../world/refusal.ts";
import { isPull, type World } from "../world/world.ts";

const RUNS_OF_A_NAME = 1_000;
const STATUSES_OF_A_CONTEXT = 1_000;
/** Actions' App and its owner, as every repository of the service shows them. */
const ACTIONS = { id: 15_368, clientId: "Iv1.05c79e9ad1f6bdfa", slug: "github-actions", name: "GitHub Actions" };
const SERVICE = { id: 9_919, login: "github", type: "Organization", name: "GitHub", createdAt: 1_210_294_164 } as const;

/** The App of this name. One that is not installed anywhere is made: checks may be older than a world's Apps. */
export function checkApp(world: World, slug: string): CheckApp {
  const known = world.code.apps.get(slug);
  if (known) return known;
  const owner = world.users.get(SERVICE.id) ?? world.userByLogin(SERVICE.login) ?? world.addUser(SERVICE);
  let number = 0;
  for (const letter of slug) number = (number * 31 + (letter.codePointAt(0) ?? 0)) % 900_000;
  const app: CheckApp = {
    ...(slug === ACTIONS.slug
      ? ACTIONS
      : { id: 100_000 + number, clientId: `Iv1.${number.toString(16).padStart(16, "0")}`, slug, name: slug }),
    ownerId: owner.id,
    permissions: { metadata: "read", checks: "write", contents: "read", statuses: "write" },
    events: ["check_run", "check_suite", "push"],
    createdAt: 1_532_983_391,
    updatedAt: 1_532_983_391,
  };
  world.code.apps.set(slug, app);
  return app;
}

/** The App's newest suite of the commit; made if there is none. */
function suiteFor(world: World, repository: Repository, app: CheckApp, headSha: string): CheckSuite {
  const suites = world.code.of(repository).suites.get(headSha) ?? [];
  return suites.findLast((one) => one.app.id === app.id) ?? createSuite(world, repository, app, headSha);
}

/** Another suite beside those that the App has of the commit, as each run of a workflow has one. */
export function createSuite(
  world: World,
  repository: Repository,
  app: CheckApp,
  headSha: string,
  at = world.now(),
): CheckSuite {
  const { suites, commits } = world.code.of(repository);
  const suite: CheckSuite = {
    id: world.nextId("checkSuite"),
    repository,
    app,
    headSha,
    headBranch: branchOf(repository, headSha),
    before: commits.get(headSha)?.parents?.[0] ?? null,
    status: "queued",
    conclusion: null,
    createdAt: at,
    updatedAt: at,
    runs: [],
    deleted: false,
  };
  suites.set(headSha, [...(suites.get(headSha) ?? []), suite]);
  world.code.checkSuites.set(suite.id, suite);
  world.lag.created(suite);
  return suite;
}

/** Only of branches of the repository itself: a fork's commit has none. */
function branchOf(repository: Repository, sha: string): string | null {
  for (const [name, head] of repository.branches) if (head === sha) return name;
  for (const row of repository.rows.pullsByCreated.descending()) {
    if (isPull(row) && row.pull.head.sha === sha)
      return row.pull.head.repositoryId === repository.id ? row.pull.head.ref : null;
  }
  return null;
}

export interface RunEdit {
  readonly name?: string;
  readonly status?: CheckStatus;
  readonly conclusion?: CheckConclusion;
  readonly startedAt?: number | null;
  readonly completedAt?: number | null;
  readonly detailsUrl?: string | null;
  readonly externalId?: string;
  readonly output?: CheckRun["output"];
  /** They come on top of those that are there. */
  readonly annotations?: readonly Annotation[];
}

export interface RunInput extends RunEdit {
  readonly repository: Repository;
  readonly app: CheckApp;
  readonly headSha: string;
  readonly name: string;
  /** Default: the App's newest of the commit. */
  readonly suite?: CheckSuite;
  /** When it was made. Default: now. */
  readonly at?: number;
}

/** Tells `created`; a run that is made completed tells `completed` as well. */
export function createCheckRun(world: World, by: number, input: RunInput): CheckRun {
  const suite = input.suite ?? suiteFor(world, input.repository, input.app, input.headSha);
  const wasCompleted = suite.status === "completed";
  const run = addCheckRun(world, { ...input, suite });
  tellRun(world, by, run, "created");
  if (run.status === "completed") tellRun(world, by, run, "completed");
  if (suite.status === "completed" && !wasCompleted) tellSuite(world, by, suite, "completed");
  return run;
}

/** Puts a run in its place and tells nobody: for worlds that are generated. */
export function addCheckRun(world: World, input: RunInput & { readonly suite: CheckSuite }): CheckRun {
  const { suite, name, at = world.now() } = input;
  const run: CheckRun = {
    id: world.nextId("checkRun"),
    suite,
    name,
    externalId: input.externalId ?? "",
    detailsUrl: input.detailsUrl ?? null,
    status: input.conclusion ? "completed" : (input.status ?? "queued"),
    conclusion: input.conclusion ?? null,
    startedAt: input.startedAt ?? at,
    completedAt: input.conclusion ? (input.completedAt ?? at) : null,
    output: input.output ?? { title: null, summary: null, text: null },
    annotations: input.annotations ?? [],
    createdAt: at,
    deleted: false,
  };
  world.changing(suite);
  suite.runs = [...bounded(world, suite, name), run];
  world.code.checkRuns.set(run.id, run);
  world.lag.created(run);
  sum(suite, at);
  return run;
}

/** The oldest goes when there are too many of a name. */
function bounded(world: World, suite: CheckSuite, name: string): readonly CheckRun[] {
  const ofName = suite.runs.filter((one) => one.name === name);
  const [oldest] = ofName;
  if (ofName.length < RUNS_OF_A_NAME || !oldest) return suite.runs;
  oldest.deleted = true;
  world.code.checkRuns.delete(oldest.id);
  return suite.runs.filter((one) => one !== oldest);
}

/** Only the end of a run is told to hooks; what happens before is not. */
export function editCheckRun(world: World, by: number, run: CheckRun, edit: RunEdit): void {
  const { suite } = run;
  const status = edit.conclusion ? "completed" : (edit.status ?? run.status);
  if (run.status === "completed" && status !== "completed")
    throw invalid({ resource: "CheckRun", field: "status", code: "invalid", value: status });
  if (status === "completed" && !(edit.conclusion ?? run.conclusion))
    throw invalid({ resource: "CheckRun", field: "conclusion", code: "missing_field" });
  const wasCompleted = run.status === "completed";
  const suiteWasCompleted = suite.status === "completed";
  world.changing(run);
  world.changing(suite);
  run.name = edit.name ?? run.name;
  run.status = status;
  run.conclusion = edit.conclusion ?? run.conclusion;
  run.startedAt = edit.startedAt === undefined ? (run.startedAt ?? world.now()) : edit.startedAt;
  if (status === "completed") run.completedAt = edit.completedAt ?? run.completedAt ?? world.now();
  run.detailsUrl = edit.detailsUrl === undefined ? run.detailsUrl : edit.detailsUrl;
  run.externalId = edit.externalId ?? run.externalId;
  run.output = edit.output ?? run.output;
  if (edit.annotations?.length) run.annotations = [...run.annotations, ...edit.annotations];
  sum(suite, world.now());
  if (status === "completed" && !wasCompleted) tellRun(world, by, run, "completed");
  if (suite.status === "completed" && !suiteWasCompleted) tellSuite(world, by, suite, "completed");
}

/** Asks the App to run it again: its suite begins anew, the run stays as it is. */
export function rerequestRun(world: World, by: number, run: CheckRun): void {
  requeue(world, run.suite);
  tellRun(world, by, run, "rerequested");
}

export function rerequestSuite(world: World, by: number, suite: CheckSuite): void {
  requeue(world, suite);
  tellSuite(world, by, suite, "rerequested");
}

function requeue(world: World, suite: CheckSuite): void {
  world.changing(suite);
  suite.status = "queued";
  suite.conclusion = null;
  suite.updatedAt = world.now();
}

/** The newest of each name: what `filter=latest` leaves. */
export function latestRuns(suite: CheckSuite): readonly CheckRun[] {
  return [...new Map(suite.runs.map((run) => [run.name, run])).values()];
}

// The worst decides. Runs that were left out or say nothing do no harm.
const BY_WEIGHT: readonly CheckConclusion[] = [
  "failure",
  "timed_out",
  "action_required",
  "cancelled",
  "stale",
  "success",
  "neutral",
  "skipped",
];

function sum(suite: CheckSuite, at: number): void {
  const runs = latestRuns(suite);
  suite.updatedAt = at;
  if (runs.every((run) => run.status === "completed")) {
    suite.status = "completed";
    suite.conclusion = BY_WEIGHT.find((one) => runs.some((run) => run.conclusion === one)) ?? null;
    return;
  }
  suite.status = runs.every((run) => run.status === "queued") ? "queued" : "in_progress";
  suite.conclusion = null;
}

export interface StatusInput {
  readonly repository: Repository;
  readonly sha: string;
  readonly state: StatusState;
  readonly context?: string;
  readonly description?: string | null;
  readonly targetUrl?: string | null;
  /** When it was said. Default: now. */
  readonly at?: number;
}

export function createStatus(world: World, by: number, input: StatusInput): CommitStatus {
  const status = addStatus(world, by, input);
  world.emit({ event: "status", action: null, repository: input.repository, senderId: by, status });
  return status;
}

/** Puts a status in its place and tells nobody: for worlds that are generated. */
export function addStatus(world: World, by: number, input: StatusInput): CommitStatus {
  const { repository, sha, state, context = "default", at = world.now() } = input;
  const { statuses } = world.code.of(repository);
  const before = statuses.get(sha) ?? [];
  if (before.filter((one) => sameContext(one.context, context)).length >= STATUSES_OF_A_CONTEXT) {
    const message = "This SHA and context has reached the maximum number of statuses.";
    throw invalid({ resource: "Status", code: "custom", message });
  }
  const status: CommitStatus = {
    id: world.nextId("status"),
    repository,
    sha,
    state,
    context,
    description: input.description ?? null,
    targetUrl: input.targetUrl ?? null,
    creatorId: by,
    createdAt: at,
    updatedAt: at,
    deleted: false,
  };
  statuses.set(sha, [...before, status]);
  world.lag.created(status);
  return status;
}

function sameContext(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}

/** One of each context, the latest; oldest first. */
export function latestStatuses(statuses: readonly CommitStatus[]): readonly CommitStatus[] {
  const latest = new Map(statuses.map((one) => [one.context.toLowerCase(), one]));
  return [...latest.values()].sort((a, b) => a.id - b.id);
}

/** `failure` if anything failed, `pending` if anything is or nothing is there. */
export function combinedState(latest: readonly CommitStatus[]): "failure" | "pending" | "success" {
  if (latest.some(({ state }) => state === "failure" || state === "error")) return "failure";
  return latest.length > 0 && latest.every(({ state }) => state === "success") ? "success" : "pending";
}

function tellRun(world: World, by: number, checkRun: CheckRun, action: string): void {
  const { repository, app } = checkRun.suite;
  const onlyApp = action === "rerequested" ? { onlyApp: app.id } : {};
  world.emit({ event: "check_run", action, repository, senderId: by, checkRun, ...onlyApp });
}

function tellSuite(world: World, by: number, checkSuite: CheckSuite, action: string): void {
  const { repository, app } = checkSuite;
  const onlyApp = action === "completed" ? {} : { onlyApp: app.id };
  world.emit({ event: "check_suite", action, repository, senderId: by, checkSuite, ...onlyApp });
}
