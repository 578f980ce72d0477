/** Check runs, check suites, statuses, and the rollup that sums them up for one commit. */
import type { GraphQLResolveInfo } from "graphql";
import { combinedState, latestRuns, latestStatuses } from "../changes/checks.ts";
import { repositoryPage, time, timeOrNull } from "../views/view.ts";
import { legacyNodeId } from "../world/node-id.ts";
import type { Repository } from "../world/records.ts";
import type { Workflow, WorkflowRun } from "../world/records-actions.ts";
import type { Annotation, CheckApp, CheckRun, CheckSuite, CommitStatus } from "../world/records-code.ts";
import { actor, type Call, forbidden, pathOf, requireRead } from "./call.ts";
import { arraySource, connection, type PageArguments } from "./connection.ts";
import { pullsSource } from "./issue-lists.ts";
import type { Fields } from "./resolvers.ts";

/** A commit, by what its checks are found with. */
interface Head {
  readonly oid: string;
  readonly repository: Repository;
}

interface Rollup extends Head {
  readonly runs: readonly CheckRun[];
  readonly statuses: readonly CommitStatus[];
}

const FAILED: readonly (string | null)[] = ["failure", "cancelled", "timed_out", "action_required", "stale"];

function suitesOf({ world }: Pick<Call, "world">, { oid, repository }: Head): readonly CheckSuite[] {
  return (world.code.of(repository).suites.get(oid) ?? []).flatMap((suite) => world.lag.seen(suite) ?? []);
}

function statusesOf({ world }: Pick<Call, "world">, { oid, repository }: Head): readonly CommitStatus[] {
  const all = (world.code.of(repository).statuses.get(oid) ?? []).flatMap((row) => world.lag.seen(row) ?? []);
  return latestStatuses(all);
}

/** Null for a commit without runs and statuses. Reruns supersede only inside a suite: older suites still count. */
export function rollupOf(call: Pick<Call, "world">, head: Head): Rollup | null {
  const runs = suitesOf(call, head)
    .flatMap(latestRuns)
    .flatMap((run) => call.world.lag.seen(run) ?? [])
    .sort((a, b) => a.id - b.id);
  const statuses = statusesOf(call, head);
  return runs.length + statuses.length === 0 ? null : { ...head, runs, statuses };
}

/** Unconfirmed: that an `error` of a status shows as such, and what each conclusion but a failure's counts as. */
export function stateOf({ runs, statuses }: Rollup): string {
  if (runs.some((run) => FAILED.includes(run.conclusion)) || statuses.some(({ state }) => state === "failure"))
    return "FAILURE";
  if (statuses.some(({ state }) => state === "error")) return "ERROR";
  const isPending = runs.some((run) => run.status !== "completed") || statuses.some(({ state }) => state === "pending");
  return isPending ? "PENDING" : "SUCCESS";
}

function contexts(
  call: Call,
  info: GraphQLResolveInfo,
  args: PageArguments,
  head: Head,
  rows: Pick<Rollup, "runs" | "statuses">,
) {
  const { repository } = head;
  const all: (CheckRun | CommitStatus)[] = [...rows.runs, ...rows.statuses];
  const source = arraySource(all, { keyOf: (row) => (isRun(row) ? 0 : 1) });
  const page = connection(call, info, args, source);
  // Refused one by one: the rollup's state and its counts stay readable.
  const shown = <Node extends CheckRun | CommitStatus | null>(row: Node) => {
    if (row === null) return row;
    const permission = isRun(row) ? "checks" : "statuses";
    return call.caller.may(repository, [{ permission, level: "read" }]) ? row : forbidden(call);
  };
  return {
    ...page,
    nodes: () => page.nodes().map(shown),
    edges: () => page.edges().map(({ cursor, node }) => ({ cursor, node: shown(node) })),
    checkRunCount: rows.runs.length,
    statusContextCount: rows.statuses.length,
    checkRunCountsByState: counts(rows.runs.map((run) => (run.conclusion ?? run.status).toUpperCase())),
    statusContextCountsByState: counts(rows.statuses.map(({ state }) => state.toUpperCase())),
  };
}

function counts(states: readonly string[]) {
  return Object.entries(Object.groupBy(states, (state) => state)).map(([state, all]) => ({
    state,
    count: all?.length ?? 0,
  }));
}

function isRun(row: CheckRun | CommitStatus): row is CheckRun {
  return "suite" in row;
}

export const rollupFields: Fields<Rollup> = {
  id: (row) => `SCR_${Buffer.from(`${row.repository.id}:${row.oid}`).toString("base64url")}`,
  state: stateOf,
  commit: (row): Head => ({ oid: row.oid, repository: row.repository }),
  contexts: (row, args, call, info) => contexts(call, info, args, row, row),
};

/** Statuses alone; null where there are none. */
export function statusOf(call: Call, head: Head): Rollup | null {
  const statuses = statusesOf(call, head);
  if (statuses.length > 0 && !call.caller.may(head.repository, [{ permission: "statuses", level: "read" }]))
    throw forbidden(call);
  return statuses.length === 0 ? null : { ...head, runs: [], statuses };
}

export const statusFields: Fields<Rollup> = {
  id: (row) => `S_${Buffer.from(`${row.repository.id}:${row.oid}`).toString("base64url")}`,
  state: (row) => combinedState(row.statuses).toUpperCase(),
  commit: (row): Head => ({ oid: row.oid, repository: row.repository }),
  contexts: (row) => row.statuses,
  context: (row, { name }) => row.statuses.find(({ context }) => context === name) ?? null,
  combinedContexts: (row, args, call, info) => contexts(call, info, args, row, row),
};

interface SuiteArguments extends PageArguments {
  readonly filterBy?: { readonly appId?: number | null; readonly checkName?: string | null } | null;
}

export function suitesConnection(call: Call, info: GraphQLResolveInfo, args: SuiteArguments, head: Head) {
  requireRead(call, head.repository, "checks");
  const { appId, checkName } = args.filterBy ?? {};
  const suites = suitesOf(call, head).filter(
    (suite) =>
      (appId == null || suite.app.id === appId) &&
      (checkName == null || suite.runs.some((run) => run.name === checkName)),
  );
  return connection(call, info, args, arraySource(suites, { keyOf: () => null }));
}

interface RunArguments extends PageArguments {
  readonly filterBy?: {
    readonly appId?: number | null;
    readonly checkName?: string | null;
    readonly checkType?: "ALL" | "LATEST" | null;
    readonly status?: string | null;
    readonly statuses?: readonly string[] | null;
    readonly conclusions?: readonly string[] | null;
  } | null;
}

/** Unconfirmed: that all are meant where no type is given. */
function runsOf(call: Call, suite: CheckSuite, args: RunArguments): readonly CheckRun[] {
  const { appId, checkName, checkType, status, statuses, conclusions } = args.filterBy ?? {};
  if (appId != null && suite.app.id !== appId) return [];
  const wanted = statuses ?? (status == null ? null : [status]);
  return (checkType === "LATEST" ? latestRuns(suite) : suite.runs)
    .flatMap((run) => call.world.lag.seen(run) ?? [])
    .filter(
      (run) =>
        (checkName == null || run.name === checkName) &&
        (wanted === null || wanted.includes(run.status.toUpperCase())) &&
        (conclusions == null || conclusions.includes((run.conclusion ?? "").toUpperCase())),
    );
}

const suitePage = (call: Call, suite: CheckSuite) =>
  `${repositoryPage(call.view, suite.repository)}/commit/${suite.headSha}/checks?check_suite_id=${suite.id}`;

export const suiteFields: Fields<CheckSuite> = {
  id: (row, _, call) => call.world.nodeId("CheckSuite", row, row.repository.id, call.view.nextIds),
  databaseId: (row) => row.id,
  status: (row) => row.status.toUpperCase(),
  conclusion: (row) => row.conclusion?.toUpperCase() ?? null,
  createdAt: (row) => time(row.createdAt),
  updatedAt: (row) => time(row.updatedAt),
  url: (row, _, call) => suitePage(call, row),
  resourcePath: (row, _, call) => pathOf(call, suitePage(call, row)),
  commit: (row): Head => ({ oid: row.headSha, repository: row.repository }),
  checkRuns: (row, args, call, info) => {
    requireRead(call, row.repository, "checks");
    return connection(call, info, args, arraySource(runsOf(call, row, args), { keyOf: () => null }));
  },
  matchingPullRequests: (row, args, call, info) => {
    requireRead(call, row.repository, "pull_requests");
    const source = pullsSource(
      row.repository,
      args,
      ({ pull, state }) => state === "open" && pull?.head.sha === row.headSha,
    );
    return connection(call, info, args, source);
  },
  // Unconfirmed: that the right to the suite suffices.
  workflowRun: (row, _, call) => {
    const runs = call.world.lag.rows(call.world.code.of(row.repository).workflowRuns);
    return runs.find(({ suite }) => suite.id === row.id) ?? null;
  },
};

const workflowRunPage = (call: Call, { id, repository }: WorkflowRun) =>
  `${repositoryPage(call.view, repository)}/actions/runs/${id}`;

export const workflowRunFields: Fields<WorkflowRun> = {
  id: (row, _, call) => call.world.nodeId("WorkflowRun", row, row.repository.id, call.view.nextIds),
  url: (row, _, call) => workflowRunPage(call, row),
  resourcePath: (row, _, call) => pathOf(call, workflowRunPage(call, row)),
  checkSuite: (row) => row.suite,
  databaseId: (row) => row.id,
  createdAt: (row) => time(row.createdAt),
  updatedAt: (row) => time(row.updatedAt),
  runNumber: (row) => row.number,
};

export const workflowFields: Fields<Workflow> = {
  id: (row, _, call) => call.world.nodeId("Workflow", row, row.repository.id, call.view.nextIds),
  state: (row) => row.state.toUpperCase(),
  databaseId: (row) => row.id,
  createdAt: (row) => time(row.createdAt),
  updatedAt: (row) => time(row.updatedAt),
};

const runPage = (call: Call, { id, suite }: CheckRun) => `${repositoryPage(call.view, suite.repository)}/runs/${id}`;

export const runFields: Fields<CheckRun> = {
  id: (row, _, call) => call.world.nodeId("CheckRun", row, row.suite.repository.id, call.view.nextIds),
  databaseId: (row) => row.id,
  repository: (row) => row.suite.repository,
  checkSuite: (row) => row.suite,
  status: (row) => row.status.toUpperCase(),
  conclusion: (row) => row.conclusion?.toUpperCase() ?? null,
  startedAt: (row) => timeOrNull(row.startedAt),
  completedAt: (row) => timeOrNull(row.completedAt),
  detailsUrl: (row, _, call) => row.detailsUrl ?? runPage(call, row),
  url: (row, _, call) => runPage(call, row),
  permalink: (row, _, call) => runPage(call, row),
  resourcePath: (row, _, call) => pathOf(call, runPage(call, row)),
  title: (row) => row.output.title,
  summary: (row) => row.output.summary,
  text: (row) => row.output.text,
  // No branch of this world is protected.
  isRequired: () => false,
  annotations: (row, args, call, info) => {
    const notes = row.annotations.map((note, at) => ({ ...note, id: at + 1, run: row }));
    return connection(call, info, args, arraySource(notes, { keyOf: () => null }));
  },
};

export const annotationFields: Fields<Annotation & { readonly run: CheckRun }> = {
  annotationLevel: (row) => row.level.toUpperCase(),
  databaseId: () => null,
  blobUrl: (row, _, call) =>
    `${repositoryPage(call.view, row.run.suite.repository)}/blob/${row.run.suite.headSha}/${row.path}`,
  location: (row) => ({
    start: { line: row.startLine, column: row.startColumn },
    end: { line: row.endLine, column: row.endColumn },
  }),
};

export const contextFields: Fields<CommitStatus> = {
  id: (row, _, call) => call.world.nodeId("StatusContext", row, row.repository.id, call.view.nextIds),
  state: (row) => row.state.toUpperCase(),
  createdAt: (row) => time(row.createdAt),
  creator: (row, _, call) => actor(call, row.creatorId),
  avatarUrl: (row, { size }) => `https://avatars.githubusercontent.com/u/${row.creatorId}?s=${size}&v=4`,
  commit: (row): Head => ({ oid: row.sha, repository: row.repository }),
  isRequired: () => false,
};

export const appFields: Fields<CheckApp> = {
  id: (row) => legacyNodeId("Integration", row.id),
  databaseId: (row) => row.id,
  description: () => "",
  createdAt: (row) => time(row.createdAt),
  updatedAt: (row) => time(row.updatedAt),
  url: (row, _, call) => `${call.view.htmlUrl}/apps/${row.slug}`,
  logoUrl: (row, { size }) => `https://avatars.githubusercontent.com/in/${row.id}?${size ? `s=${size}&` : ""}v=4`,
};
