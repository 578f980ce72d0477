/** What commits show of their checks and statuses. */

import { type Json, numberOf, objectOf } from "../../../json.ts";
import { findWorkflowNames } from "../../../mirror/read/actions.ts";
import {
  FAILED_STATES,
  findCheckedHeads,
  findRollups,
  PASSED_STATES,
  type Rollup,
} from "../../../mirror/read/checks.ts";
import type { StoredDocument } from "../../../mirror/render/rendering.ts";
import { readsCode } from "../../callers/permissions.ts";
import type { GraphqlCall } from "../call/call.ts";
import { actorOf, type Node } from "../call/node.ts";
import { typedError } from "../run/errors.ts";
import type { FieldInfo } from "../run/plan.ts";
import { selects } from "../run/plan.ts";
import { type Connection, heldConnection, type PageArguments } from "./connection.ts";
import {
  commitNode,
  databaseId,
  enumValue,
  nodeIdOnceRead,
  ofRepository,
  onceRead,
  readsCodeOf,
  rest,
  type TypeResolvers,
  upper,
} from "./fields.ts";

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
  const head = await call
    .loader<CommitKey, Awaited<ReturnType<typeof findCheckedHeads>>[number]>("checked heads", (places) =>
      findCheckedHeads(call.db, places),
    )
    .load(place);
  if (!head?.runs) return lackingChecks(call, repositoryId);
  const withDocuments = selects(info, ({ name }) => name.value === "nodes" || name.value === "edges");
  const rollup = await call
    .loader<CommitKey, Rollup>(`rollups ${withDocuments}`, (places) => findRollups(call.db, places, { withDocuments }))
    .load(place);
  if (rollup.runs.length + rollup.statuses.length === 0) return null;
  return new RollupNode(place, rollup);
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
  const workflow = await call
    .loader<{ repositoryId: number; id: number }, string | null>("workflows of suites", (suites) =>
      findWorkflowNames(call.db, suites),
    )
    .load({ repositoryId, id: suite });
  return workflow === null
    ? await lackingChecks(call, repositoryId)
    : { kind: "WorkflowRun", repositoryId, rest: { workflow } };
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
    title: ({ rest: { output } }) => objectOf(output).title ?? null,
    summary: ({ rest: { output } }) => objectOf(output).summary ?? null,
    text: ({ rest: { output } }) => objectOf(output).text ?? null,
    checkSuite: ({ repositoryId, rest: { check_suite, app } }) => ({
      kind: "CheckSuite",
      repositoryId,
      rest: { id: objectOf(check_suite).id ?? null, app: app ?? null },
    }),
  },
  CheckSuite: {
    databaseId,
    app: ({ repositoryId, rest: { app } }) =>
      app === null ? null : { kind: "App", repositoryId, rest: objectOf(app) },
    workflowRun: (node, _args, call) => workflowRunOf(call, node),
  },
  WorkflowRun: {
    workflow: ({ repositoryId, rest: { workflow } }) => ({
      kind: "Workflow",
      repositoryId,
      rest: { name: workflow ?? null },
    }),
  },
  Workflow: { name: rest("name") },
  App: { id: nodeIdOnceRead, databaseId, name: rest("name"), slug: onceRead("slug") },
  StatusContext: {
    id: nodeIdOnceRead,
    commit: (node) => commitNode(node.repositoryId, /\/statuses\/([0-9a-f]+)$/.exec(String(node.rest.url))?.[1]),
    context: rest("context"),
    createdAt: rest("created_at"),
    creator: ({ rest: { creator } }) => actorOf(creator),
    description: rest("description"),
    state: ({ rest: { state } }) => enumValue(state),
    targetUrl: rest("target_url"),
  },
};
