/** What commits show of their checks and statuses. */

import { type Json, numberOf, objectOf } from "../../../json.ts";
import { findSuiteRuns, type SuiteRun } from "../../../mirror/read/actions.ts";
import {
  type CheckedHead,
  FAILED_STATES,
  findCheckedHeads,
  findRollups,
  findSuitesOf,
  PASSED_STATES,
  type Rollup,
  suiteRunSource,
} from "../../../mirror/read/checks.ts";
import { findResources } from "../../../mirror/read/resources.ts";
import type { StoredDocument } from "../../../mirror/render/rendering.ts";
import { readsCode } from "../../callers/permissions.ts";
import type { GraphqlCall } from "../call/call.ts";
import { actorOf, type Node } from "../call/node.ts";
import { typedError } from "../run/errors.ts";
import type { FieldInfo } from "../run/plan.ts";
import { selects } from "../run/plan.ts";
import { type Connection, heldConnection, type PageArguments, storedConnection } from "./connection.ts";
import {
  commitNode,
  databaseId,
  enumValue,
  fieldNotHeld,
  nodeId,
  nodeIdOnceRead,
  ofRepository,
  onceRead,
  type Resolver,
  readsCodeOf,
  resourcePath,
  rest,
  type TypeResolvers,
  upper,
  utcTime,
} from "./fields.ts";
import { isRequired } from "./held-refs.ts";

/** A commit whose checks a field asks for. */
interface CommitKey {
  repositoryId: number;
  sha: string;
}

/** A rollup on its way to be shown. */
class RollupNode implements Node {
  readonly kind = "StatusCheckRollup";
  readonly rest = {};
  readonly repositoryId: number;
  readonly sha: string;
  readonly rollup: Rollup;

  constructor({ repositoryId, sha }: CommitKey, rollup: Rollup) {
    this.repositoryId = repositoryId;
    this.sha = sha;
    this.rollup = rollup;
  }

  /** A resolver is given any node by its type, and one of these by the schema. */
  static from(node: Node): RollupNode {
    if (node instanceof RollupNode) return node;
    throw new TypeError(`A ${node.kind} was taken for the rollup of a commit`);
  }
}

/**
 * The rollup of a commit. Null: the commit has neither check runs nor statuses. Upstream answers if the commit's checks
 * are not followed.
 * @throws GraphQLError FORBIDDEN to those who may not read it
 */
export async function rollupOf(
  call: GraphqlCall,
  info: FieldInfo,
  repositoryId: number,
  oid: Json | undefined,
): Promise<Node | null> {
  if (!(await readsCodeOf(call, repositoryId, "checks", "statuses"))) return lackingChecks(call, repositoryId);
  const sha = String(oid);
  const place = { repositoryId, sha };
  const head = await headAt(call, place);
  if (!head?.runs) return lackingChecks(call, repositoryId);
  const withDocuments = selects(info, ({ name }) => name.value === "nodes" || name.value === "edges");
  const rollup = await loadRollup(call, place, { withDocuments });
  if (rollup.runs.length + rollup.statuses.length === 0) return null;
  return new RollupNode(place, rollup);
}

/** What is certain of the checks of a commit. Null: it is no head that the mirror knows. */
function headAt(call: GraphqlCall, place: CommitKey): Promise<CheckedHead | null> {
  return call
    .loader<CommitKey, CheckedHead | null>("checked heads", (places, db) => findCheckedHeads(db, places))
    .load(place);
}

function loadRollup(call: GraphqlCall, place: CommitKey, wanted: { withDocuments: boolean }): Promise<Rollup> {
  return call
    .loader<CommitKey, Rollup>(`rollups ${wanted.withDocuments}`, (places, db) => findRollups(db, places, wanted))
    .load(place);
}

/**
 * The answer for a commit whose checks are not mirrored: null. Clients read null as a commit without checks, and can
 * show that. Another mirror would store it as the truth.
 * @throws GraphQLError when another mirror asks
 */
async function lackingChecks(call: GraphqlCall, repositoryId: number): Promise<null> {
  call.lacks();
  if (!call.isForMirror) return null;
  const repository = await call.ctx.mirror.repositories.byId(repositoryId, call.access);
  if (!repository?.mirrors.includes("checks"))
    throw typedError("UNPROCESSABLE", "The checks of this repository are not mirrored.");
  throw typedError("SERVICE_UNAVAILABLE", "The checks of this commit are not mirrored yet.");
}

const runStates = ({ runs }: Rollup): string[] =>
  runs.map(({ status, conclusion }) => (status === "completed" ? conclusion : status)?.toUpperCase() ?? "COMPLETED");
const statusStates = ({ statuses }: Rollup): string[] => statuses.map(({ state }) => state.toUpperCase());

/**
 * The state of a rollup: failure beats pending beats success. How upstream ranks a status' error is not known. Pure.
 */
function rollupState(rollup: Rollup): "FAILURE" | "PENDING" | "SUCCESS" | "ERROR" {
  const states = [...runStates(rollup), ...statusStates(rollup)];
  if (states.some((state) => FAILED_STATES.has(state))) return "FAILURE";
  if (states.includes("ERROR")) return "ERROR";
  return states.every((state) => PASSED_STATES.has(state)) ? "SUCCESS" : "PENDING";
}

function countsOf(states: readonly string[]): { state: string; count: number }[] {
  return [...Map.groupBy(states, (state) => state)].map(([state, { length }]) => ({ state, count: length }));
}

/** The check runs, then the statuses, each in the order in which they were made. */
async function contextNodes(call: GraphqlCall, { repositoryId, rollup }: RollupNode): Promise<Node[]> {
  const documents = (rows: readonly { document: string }[]): StoredDocument[] =>
    rows.map(({ document }) => ({ repositoryId, document }));
  const [runs, statuses] = await Promise.all([
    call.unfold("CheckRun", documents(rollup.runs)),
    call.unfold("StatusContext", documents(rollup.statuses)),
  ]);
  return [...runs, ...statuses];
}

function contexts(node: RollupNode, args: PageArguments, call: GraphqlCall, info: FieldInfo): object {
  const { rollup } = node;
  const counted = {
    totalCount: () => rollup.runs.length + rollup.statuses.length,
    checkRunCount: rollup.runs.length,
    statusContextCount: rollup.statuses.length,
    checkRunCountsByState: countsOf(runStates(rollup)),
    statusContextCountsByState: countsOf(statusStates(rollup)),
  };
  const placeOf = (_node: Node, at: number) => String(at).padStart(6, "0");
  // The bounds are judged at once. The rows are loaded only when they are asked for.
  const empty = heldConnection(info, args, [], { keyOf: placeOf });
  let loading: Promise<Connection> | null = null;
  const loaded = () => {
    loading ??= contextNodes(call, node).then((held) => heldConnection(info, args, held, { keyOf: placeOf }));
    return loading;
  };
  return {
    ...empty,
    ...counted,
    nodes: async () => (await loaded()).nodes(),
    edges: async () => (await loaded()).edges(),
    pageInfo: async () => (await loaded()).pageInfo(),
  };
}

/**
 * The statuses of a commit. Null: it has none.
 * @throws GraphQLError FORBIDDEN to those who may not read them; as `fieldNotHeld`
 */
export async function statusOf(
  call: GraphqlCall,
  info: FieldInfo,
  repositoryId: number,
  oid: Json | undefined,
): Promise<Node | null> {
  const place = { repositoryId, sha: String(oid) };
  if (!(await readsCodeOf(call, repositoryId, "statuses"))) return fieldNotHeld(call, info, "Commit");
  if (!(await headAt(call, place))?.statuses) return fieldNotHeld(call, info, "Commit");
  const rollup = await loadRollup(call, place, { withDocuments: true });
  if (rollup.statuses.length === 0) return null;
  return new RollupNode(place, { runs: [], statuses: rollup.statuses });
}

const contextsOf = async (call: GraphqlCall, node: Node): Promise<Node[]> => {
  const { repositoryId, rollup } = RollupNode.from(node);
  return call.unfold(
    "StatusContext",
    rollup.statuses.map(({ document }) => ({ repositoryId, document })),
  );
};

/** As REST combines them: a failure or an error fails all. */
const combinedState = (node: Node): string => {
  const states = statusStates(RollupNode.from(node).rollup);
  if (states.includes("FAILURE") || states.includes("ERROR")) return "FAILURE";
  return states.every((state) => state === "SUCCESS") ? "SUCCESS" : "PENDING";
};

/** The check suites of a commit, as far as all of them are held. @throws GraphQLError as `statusOf` */
export async function suitesOf(
  call: GraphqlCall,
  info: FieldInfo,
  args: PageArguments,
  place: CommitKey,
): Promise<Connection> {
  if (!(await readsCodeOf(call, place.repositoryId, "checks"))) return fieldNotHeld(call, info, "Commit");
  if (!(await headAt(call, place))?.suites) return fieldNotHeld(call, info, "Commit");
  const found = await call
    .loader<CommitKey, StoredDocument[]>("suites of commits", (places, db) => findSuitesOf(db, places))
    .load(place);
  const held = await call.unfold("CheckSuite", found);
  return heldConnection(info, args, held, { keyOf: ({ rest: { id } }) => String(id).padStart(20, "0") });
}

/** The whole suite of a node that may hold its id alone. @throws GraphQLError as `fieldNotHeld` */
async function wholeSuite(node: Node, call: GraphqlCall, info: FieldInfo): Promise<Node> {
  const { repositoryId, rest: shown } = node;
  if (shown.head_sha !== undefined) return node;
  const id = numberOf(shown.id);
  if (id === null || !(await readsCodeOf(call, repositoryId, "checks"))) return fieldNotHeld(call, info, "CheckSuite");
  const found = await call
    .loader<{ repositoryId: number; id: number }, Node | null>("suites by id", async (suites, db) =>
      call.unfoldEach("CheckSuite", await findResources(db, "check_suite", suites)),
    )
    .load({ repositoryId, id });
  return found ?? fieldNotHeld(call, info, "CheckSuite");
}

const ofSuite =
  (show: (suite: Node, call: GraphqlCall, info: FieldInfo) => unknown): Resolver =>
  async (node, _args, call, info) =>
    show(await wholeSuite(node, call, info), call, info);

const suiteField = (key: string, show: (value: Json) => Json = (value) => value): Resolver =>
  ofSuite(({ rest: { [key]: value } }, call, info) =>
    value === undefined ? fieldNotHeld(call, info, "CheckSuite") : show(value),
  );

/** The check runs of a suite, in the order in which they were made. */
const runsOfSuite: Resolver = async (node, args: PageArguments, call, info) => {
  const { repositoryId, rest: suite } = await wholeSuite(node, call, info);
  const head = await headAt(call, { repositoryId, sha: String(suite.head_sha) });
  if (!head?.runs) return fieldNotHeld(call, info, "CheckSuite");
  const parent = { r: repositoryId, n: Number(suite.id) };
  return storedConnection(call, info, args, { kind: "CheckRun", source: suiteRunSource, parent });
};

/** The run that a suite sums up, if Actions made it. Where Actions are not mirrored, nothing tells its workflow. */
async function workflowRunOf(call: GraphqlCall, { repositoryId, rest: { id, app } }: Node): Promise<Node | null> {
  const { slug } = objectOf(app);
  if (slug !== undefined && slug !== "github-actions") return null;
  const repository = await call.ctx.mirror.repositories.byId(repositoryId, call.access);
  const suite = numberOf(id);
  if (
    suite === null ||
    !repository?.mirrors.includes("actions") ||
    !readsCode(call.caller, call.access, repository, "actions")
  )
    return await lackingChecks(call, repositoryId);
  const found = await call
    .loader<{ repositoryId: number; id: number }, SuiteRun | null>("runs of suites", (suites, db) =>
      findSuiteRuns(db, suites),
    )
    .load({ repositoryId, id: suite });
  if (!found) return await lackingChecks(call, repositoryId);
  const [[run], [workflow]] = await Promise.all([
    call.unfold("WorkflowRun", [{ repositoryId, document: found.run }]),
    call.unfold("Workflow", [{ repositoryId, document: found.workflow }]),
  ]);
  return run && workflow ? { ...run, rest: { ...run.rest, workflow: workflow.rest } } : null;
}

export const checkResolvers: Readonly<Record<string, TypeResolvers>> = {
  StatusCheckRollup: {
    state: (node, _args, call) => {
      const state = rollupState(RollupNode.from(node).rollup);
      // How upstream shows a status' error is not documented.
      if (state === "ERROR") call.lacks();
      return state;
    },
    commit: (node) => commitNode(node.repositoryId, RollupNode.from(node).sha),
    contexts: (node, args: PageArguments, call, info) => contexts(RollupNode.from(node), args, call, info),
  },
  CheckRun: {
    ...ofRepository,
    id: nodeIdOnceRead,
    databaseId,
    name: rest("name"),
    status: upper("status"),
    conclusion: upper("conclusion"),
    startedAt: rest("started_at"),
    completedAt: rest("completed_at"),
    detailsUrl: rest("details_url"),
    externalId: rest("external_id"),
    url: rest("html_url"),
    permalink: rest("html_url"),
    resourcePath,
    title: ({ rest: { output } }) => objectOf(output).title ?? null,
    summary: ({ rest: { output } }) => objectOf(output).summary ?? null,
    text: ({ rest: { output } }) => objectOf(output).text ?? null,
    isRequired,
    checkSuite: ({ repositoryId, rest: { check_suite, app } }) => ({
      kind: "CheckSuite",
      repositoryId,
      rest: { id: objectOf(check_suite).id ?? null, app: app ?? null },
    }),
  },
  CheckSuite: {
    ...ofRepository,
    databaseId,
    id: ofSuite(({ repositoryId, rest: { node_id } }, call) => call.idOf(node_id, repositoryId)),
    status: suiteField("status", enumValue),
    conclusion: suiteField("conclusion", enumValue),
    createdAt: suiteField("created_at"),
    updatedAt: suiteField("updated_at"),
    commit: ofSuite(({ repositoryId, rest: { head_sha } }) => commitNode(repositoryId, head_sha)),
    checkRuns: runsOfSuite,
    app: async (node, _args, call, info) => {
      const { repositoryId } = node;
      const { app } = node.rest.app === undefined ? (await wholeSuite(node, call, info)).rest : node.rest;
      return app == null ? null : { kind: "App", repositoryId, rest: objectOf(app) };
    },
    workflowRun: (node, _args, call) => workflowRunOf(call, node),
  },
  WorkflowRun: {
    id: nodeId,
    databaseId,
    createdAt: rest("created_at"),
    updatedAt: rest("updated_at"),
    event: rest("event"),
    runNumber: rest("run_number"),
    url: rest("html_url"),
    resourcePath,
    checkSuite: ({ repositoryId, rest: { check_suite_id } }) => ({
      kind: "CheckSuite",
      repositoryId,
      rest: { id: check_suite_id ?? null },
    }),
    workflow: ({ repositoryId, rest: { workflow } }) => ({
      kind: "Workflow",
      repositoryId,
      rest: objectOf(workflow),
    }),
  },
  Workflow: {
    id: nodeId,
    databaseId,
    name: rest("name"),
    state: upper("state"),
    createdAt: ({ rest: { created_at } }) => utcTime(created_at),
    updatedAt: ({ rest: { updated_at } }) => utcTime(updated_at),
  },
  Status: {
    commit: (node) => commitNode(node.repositoryId, RollupNode.from(node).sha),
    context: async (node, { name }: { name: string }, call) =>
      (await contextsOf(call, node)).find(({ rest: { context } }) => context === name) ?? null,
    contexts: (node, _args, call) => contextsOf(call, node),
    state: combinedState,
  },
  App: {
    id: nodeIdOnceRead,
    databaseId,
    name: rest("name"),
    slug: onceRead("slug"),
    createdAt: onceRead("created_at"),
    updatedAt: onceRead("updated_at"),
    description: onceRead("description"),
    url: onceRead("html_url"),
  },
  StatusContext: {
    id: nodeIdOnceRead,
    commit: (node) => commitNode(node.repositoryId, /\/statuses\/([0-9a-f]+)$/.exec(String(node.rest.url))?.[1]),
    context: rest("context"),
    createdAt: rest("created_at"),
    creator: ({ rest: { creator } }) => actorOf(creator),
    description: rest("description"),
    isRequired,
    state: ({ rest: { state } }) => enumValue(state),
    targetUrl: rest("target_url"),
  },
};
